//! Parameters of a request, from its query string and from the form in its body.

use std::borrow::Cow;

use percent_encoding::percent_decode;
use promql_parser::util::duration::parse_duration;

use fleetcast_core::model::time::parse_ns;

use crate::language::invalid;
use crate::refusal::{EvaluationResult, bad_data};
use crate::selector::milliseconds;

/// Times that Prometheus takes, in seconds.
const SECONDS_MAX: f64 = 9.2e15;

/// Names and values, which are decoded when they are asked for: a body may have very many.
pub(super) struct ApiParameters<'r> {
    pub(super) query: &'r str,
    pub(super) form: &'r [u8],
}

impl ApiParameters<'_> {
    /// Returns the first value of a parameter, if it is not empty.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.all(name).next().filter(|text| !text.is_empty())
    }

    /// Returns all values of a parameter, first those of the form.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = String> {
        let pairs = [self.form, self.query.as_bytes()].into_iter();
        pairs.flat_map(|text| text.split(|byte| *byte == b'&')).filter_map(move |pair| {
            let equals = pair.iter().position(|byte| *byte == b'=');
            let (known, value) = pair.split_at(equals.unwrap_or(pair.len()));
            (decoded(known) == name).then(|| decoded(value.get(1..).unwrap_or_default()))
        })
    }

    /// Returns a time in milliseconds since 1970, if there is one.
    pub(super) fn time_ms(&self, name: &str) -> EvaluationResult<Option<i64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let parsed =
            seconds_of(&text).or_else(|| Some(parse_ns(text.as_bytes())?.div_euclid(1_000_000)));
        let refused = || invalid(name, &format!("cannot parse {text:?} to a valid timestamp"));
        parsed.map(Some).ok_or_else(refused)
    }

    /// Returns a duration in milliseconds, if there is one.
    pub(super) fn duration_ms(&self, name: &str) -> EvaluationResult<Option<i64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let is_number = text.parse::<f64>().is_ok();
        let parsed = if is_number {
            seconds_of(&text)
        } else {
            parse_duration(&text).ok().map(milliseconds)
        };
        let refused = || invalid(name, &format!("cannot parse {text:?} to a valid duration"));
        parsed.map(Some).ok_or_else(refused)
    }

    /// Returns a whole number, if there is one.
    pub(super) fn count(&self, name: &str) -> EvaluationResult<Option<usize>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| bad_data(format!("{name} must be a number")))
    }
}

/// Returns seconds in whole milliseconds.
#[expect(clippy::cast_possible_truncation, reason = "bounded")]
fn seconds_of(text: &str) -> Option<i64> {
    let seconds: f64 = text.parse().ok()?;
    (seconds.abs() <= SECONDS_MAX)
        .then(|| (seconds.trunc() as i64) * 1_000 + (seconds.fract() * 1e3).round() as i64)
}

fn decoded(text: &[u8]) -> String {
    let spaced: Cow<'_, [u8]> = if text.contains(&b'+') {
        text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect::<Vec<_>>().into()
    } else {
        text.into()
    };
    percent_decode(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_come_from_the_form_and_the_query_string() {
        let (query, form) = ("query=a%2Bb&match[]=x&empty=", b"match%5B%5D=y+z&time=1.5");
        let given = ApiParameters { query, form };
        assert_eq!(given.text("query").unwrap(), "a+b");
        assert_eq!(given.all("match[]").collect::<Vec<_>>(), ["y z", "x"]);
        assert_eq!(given.text("empty"), None);
        assert_eq!(given.time_ms("time").unwrap(), Some(1_500));
    }

    #[test]
    fn times_are_seconds_or_dates_and_durations_have_units() {
        let query = "a=1435781451.781&b=2015-07-01T20:10:51.781Z&c=soon&d=1m30s&e=15";
        let given = ApiParameters { query, form: b"" };
        assert_eq!(given.time_ms("a").unwrap(), Some(1_435_781_451_781));
        assert_eq!(given.time_ms("b").unwrap(), Some(1_435_781_451_781));
        assert!(given.time_ms("c").is_err() && given.duration_ms("c").is_err());
        assert_eq!(given.duration_ms("d").unwrap(), Some(90_000));
        assert_eq!(given.duration_ms("e").unwrap(), Some(15_000));
    }
}
