//! Answers as JSON, as Prometheus writes it.

use std::io::Write;

use fleetcast_core::model::json::{write_f64, write_i64, write_object_of_strings, write_string};
use fleetcast_core::query::labelled::Labels;

use crate::functions::numbers::in_digits;

/// Magnitudes outside of which a number has an exponent.
const WITHOUT_EXPONENT: std::ops::Range<f64> = 1e-6..1e21;

/// Magnitudes that JSON of the service has in digits, too, which it writes faster.
const WRITTEN_FAST: std::ops::Range<f64> = 1e-3..1e15;

/// Writes labels as an object.
pub(super) fn put_labels(out: &mut Vec<u8>, labels: &Labels) {
    write_object_of_strings(out, labels.iter().map(|(label, value)| (&**label, &**value)));
}

/// Writes a sample as its time in seconds and its value as a text. Example: `[1.5,"0.25"]`.
pub(super) fn put_point(out: &mut Vec<u8>, time_ms: i64, value: f64) {
    out.push(b'[');
    put_time(out, time_ms);
    out.extend_from_slice(b",\"");
    put_number(out, value);
    out.extend_from_slice(b"\"]");
}

/// Writes a time in seconds, with three digits of a fraction if there is one.
pub(super) fn put_time(out: &mut Vec<u8>, time_ms: i64) {
    if time_ms % 1_000 == 0 {
        return write_i64(out, time_ms / 1_000);
    }
    if -1_000 < time_ms && time_ms < 0 {
        out.push(b'-');
    }
    write_i64(out, time_ms / 1_000);
    out.push(b'.');
    let fraction = (time_ms % 1_000).abs();
    for digit in [fraction / 100, fraction / 10 % 10, fraction % 10] {
        write_i64(out, digit);
    }
}

fn put_number(out: &mut Vec<u8>, value: f64) {
    if WRITTEN_FAST.contains(&value.abs()) {
        write_f64(out, value);
        if out.ends_with(b".0") {
            out.truncate(out.len() - 2);
        }
    } else if value.is_finite() && value != 0.0 && !WITHOUT_EXPONENT.contains(&value.abs()) {
        let short = format!("{value:e}");
        let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{digits}e{sign}{:02}", exponent.abs());
    } else {
        out.extend_from_slice(in_digits(value).as_bytes());
    }
}

/// Writes items as an array.
pub(super) fn put_array<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    put: impl Fn(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        put(out, item);
    }
    out.push(b']');
}

/// Writes texts as an array.
pub(super) fn put_texts<T: AsRef<str>>(out: &mut Vec<u8>, texts: impl IntoIterator<Item = T>) {
    put_array(out, texts, |out, text| write_string(out, text.as_ref()));
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
        assert_eq!(point(-50, 1.0), r#"[-0.050,"1"]"#);
        assert_eq!(point(0, 1e-7), r#"[0,"1e-07"]"#);
        assert_eq!(point(0, 1.5e300), r#"[0,"1.5e+300"]"#);
        assert_eq!(point(0, 1e20), r#"[0,"100000000000000000000"]"#);
        assert_eq!(point(0, f64::NEG_INFINITY), r#"[0,"-Inf"]"#);
        assert_eq!(point(0, f64::INFINITY), r#"[0,"+Inf"]"#);
        assert_eq!(point(0, f64::NAN), r#"[0,"NaN"]"#);
        assert_eq!(point(0, -0.0), r#"[0,"-0"]"#);
    }

    #[test]
    fn numbers_are_written_in_the_same_digits_fast_or_not() {
        let mut bits = 1_u64;
        for at in 0..20_000_i32 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let wide = f64::from(u32::try_from(bits >> 32).unwrap());
            for value in [wide, wide / 10_f64.powi(at % 13), -wide * 10_f64.powi(at % 7)] {
                if WITHOUT_EXPONENT.contains(&value.abs()) {
                    assert_eq!(point(0, value), format!("[0,\"{value}\"]"));
                }
            }
        }
        for value in [1e-3, 1e15, 999_999_999_999_999.9, 1e14, 0.001_000_000_000_000_000_2] {
            assert_eq!(point(0, value), format!("[0,\"{value}\"]"));
        }
    }
}
