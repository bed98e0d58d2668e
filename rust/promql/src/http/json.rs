//! Answers as JSON, as Prometheus writes it.

use std::fmt::Write;

use fleetcast_core::model::json::write_string;
use fleetcast_core::query::labelled::Labels;

use crate::functions::numbers::in_digits;

/// Magnitudes outside of which a number has an exponent.
const WITHOUT_EXPONENT: std::ops::Range<f64> = 1e-6..1e21;

/// Writes labels as an object.
pub(super) fn put_labels(out: &mut Vec<u8>, labels: &Labels) {
    out.push(b'{');
    for (at, (label, value)) in labels.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(out, label);
        out.push(b':');
        write_string(out, value);
    }
    out.push(b'}');
}

/// Writes a sample as its time in seconds and its value as a text. Example: `[1.5,"0.25"]`.
pub(super) fn put_point(out: &mut Vec<u8>, time_ms: i64, value: f64) {
    let mut text = String::with_capacity(40);
    text.push('[');
    put_time(&mut text, time_ms);
    text.push_str(",\"");
    put_number(&mut text, value);
    text.push_str("\"]");
    out.extend_from_slice(text.as_bytes());
}

/// Writes a time in seconds, with three digits of a fraction if there is one.
pub(super) fn put_time(text: &mut String, time_ms: i64) {
    let sign = if time_ms < 0 { "-" } else { "" };
    let size = time_ms.unsigned_abs();
    let (seconds, fraction) = (size / 1_000, size % 1_000);
    let written = if fraction == 0 {
        write!(text, "{sign}{seconds}")
    } else {
        write!(text, "{sign}{seconds}.{fraction:03}")
    };
    written.expect("a text takes all");
}

fn put_number(text: &mut String, value: f64) {
    if value.is_finite() && value != 0.0 && !WITHOUT_EXPONENT.contains(&value.abs()) {
        let short = format!("{value:e}");
        let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(text, "{digits}e{sign}{:02}", exponent.abs()).expect("a text takes all");
    } else {
        text.push_str(&in_digits(value));
    }
}

/// Writes texts as an array.
pub(super) fn put_texts<T: AsRef<str>>(out: &mut Vec<u8>, texts: impl IntoIterator<Item = T>) {
    out.push(b'[');
    for (at, text) in texts.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(out, text.as_ref());
    }
    out.push(b']');
}

/// Writes a member of an object, without a comma.
pub(super) fn put_member(out: &mut Vec<u8>, name: &str, value: &str) {
    write_string(out, name);
    out.push(b':');
    write_string(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(time_ms: i64, value: f64) -> String {
        let mut out = Vec::new();
        put_point(&mut out, time_ms, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_and_times_are_written_as_prometheus_writes_them() {
        assert_eq!(point(1_435_781_451_781, 1.0), r#"[1435781451.781,"1"]"#);
        assert_eq!(point(-1_005, -0.1), r#"[-1.005,"-0.1"]"#);
        assert_eq!(point(0, 1e-7), r#"[0,"1e-07"]"#);
        assert_eq!(point(0, 1.5e300), r#"[0,"1.5e+300"]"#);
        assert_eq!(point(0, 1e20), r#"[0,"100000000000000000000"]"#);
        assert_eq!(point(0, f64::NEG_INFINITY), r#"[0,"-Inf"]"#);
        assert_eq!(point(0, f64::INFINITY), r#"[0,"+Inf"]"#);
        assert_eq!(point(0, f64::NAN), r#"[0,"NaN"]"#);
        assert_eq!(point(0, -0.0), r#"[0,"-0"]"#);
    }
}
