//! Query parameters: decoded and checked. Every problem of a request is listed together.
//!
//! Values are bytes until they are checked to be text. Invalid UTF-8 thus fails the check of its
//! own parameter, and not the reading of the whole request.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use fleetcast_core::model::fault::LocationStep;
use fleetcast_core::model::time;
use percent_encoding::percent_decode;

use crate::{ContextValue, DetailFault, Refusal};

const NOT_A_TIME: &str = "Input should be an ISO 8601 datetime";
const PLUS_HINT: &str = "; in a URL a + is written %2B, or give the time in UTC with Z";
const NOT_WHOLE: &str = "Input should be a valid integer, unable to parse string as an integer";
const NOT_A_NUMBER: &str = "Input should be a valid number, unable to parse string as a number";

/// A decoded name or value.
pub(super) type Bytes<'q> = Cow<'q, [u8]>;

/// The parameters of one request. Each is read once, in the order in which faults are listed.
pub(super) struct Parameters<'q> {
    /// Names and values that have not been read, in their order.
    left: Vec<(Bytes<'q>, Bytes<'q>)>,
    faults: Vec<DetailFault>,
}

impl<'q> Parameters<'q> {
    /// Splits a query string. Empty pairs are left out.
    pub(super) fn of(query: &'q str) -> Self {
        let left = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        Self { left: left.collect(), faults: Vec::new() }
    }

    /// Reads a parameter that may be given once.
    pub(super) fn text(&mut self, name: &'static str) -> Option<Bytes<'q>> {
        let mut values = self.take(name);
        if values.len() > 1 {
            self.fault("multiple_values", name, "Input should be given once");
            return None;
        }
        values.pop()
    }

    /// Reads a parameter whose last value counts. Returns an empty value if the parameter is
    /// missing.
    pub(super) fn last(&mut self, name: &str) -> Bytes<'q> {
        self.take(name).pop().unwrap_or_default()
    }

    /// Reads an ISO 8601 datetime. Returns nanoseconds since 1970.
    pub(super) fn time(&mut self, name: &'static str) -> Option<i64> {
        let text = self.text(name)?;
        let time_ns = time::parse_ns(&text);
        if time_ns.is_none() {
            let hint = if has_lost_plus(&text) { PLUS_HINT } else { "" };
            self.fault("datetime_from_date_parsing", name, format!("{NOT_A_TIME}{hint}"));
        }
        time_ns
    }

    /// Reads a time like [`Self::time`], and notes a fault if it is missing. After a fault it
    /// returns 1970.
    pub(super) fn required_time(&mut self, name: &'static str) -> i64 {
        if !self.left.iter().any(|(given, _)| **given == *name.as_bytes()) {
            self.fault("missing", name, "Field required");
        }
        self.time(name).unwrap_or_default()
    }

    /// Reads a number in the grammar of JSON, with a leading + allowed.
    pub(super) fn number(
        &mut self,
        name: &'static str,
        bounds: &RangeInclusive<f64>,
    ) -> Option<f64> {
        let text = self.text(name)?;
        let number = number(&text);
        match number {
            None => self.fault("float_parsing", name, NOT_A_NUMBER),
            Some(value) if value < *bounds.start() => {
                let bound = format!("Input should be greater than or equal to {}", bounds.start());
                self.fault("greater_than_equal", name, bound);
            }
            Some(value) if value > *bounds.end() => {
                let bound = format!("Input should be less than or equal to {}", bounds.end());
                self.fault("less_than_equal", name, bound);
            }
            Some(_) => {}
        }
        number
    }

    /// Reads a choice among a few values, each known by its word.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        allowed: &[T],
        word: fn(T) -> &'static str,
    ) -> Option<T> {
        let text = self.text(name)?;
        let chosen = allowed.iter().copied().find(|each| *word(*each).as_bytes() == *text);
        if chosen.is_none() {
            let words: Vec<_> = allowed.iter().map(|each| format!("'{}'", word(*each))).collect();
            let (others, last) = words.split_at(words.len().saturating_sub(1));
            let listed = format!("Input should be {} or {}", others.join(", "), last.concat());
            self.fault("literal_error", name, listed);
        }
        chosen
    }

    /// Reads one to `count_max` values. No value is empty; values may repeat.
    pub(super) fn texts(&mut self, name: &'static str, count_max: usize) -> Vec<Bytes<'q>> {
        let values = self.take(name);
        let count = values.len();
        if count == 0 {
            self.fault("missing", name, "Field required");
        } else if count > count_max {
            let bound =
                format!("List should have at most {count_max} items after validation, not {count}");
            self.fault("too_long", name, bound);
        } else {
            let is_empty = |(index, value): (_, &Bytes<'_>)| value.is_empty().then_some(index);
            self.faults.extend(values.iter().enumerate().filter_map(is_empty).map(|index| {
                let message = "String should have at least 1 character";
                let mut fault = DetailFault::new("string_too_short", &["query", name], message);
                fault.place.push(LocationStep::Index(index));
                fault
            }));
        }
        values
    }

    /// Returns the value of a whole number: decimal digits, with a sign allowed. Returns `i64::MAX`
    /// for numbers beyond the range.
    pub(super) fn whole(&mut self, name: &'static str, text: &[u8]) -> Option<i64> {
        let digits = text.strip_prefix(b"+").or(text.strip_prefix(b"-")).unwrap_or(text);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            self.fault("int_parsing", name, NOT_WHOLE);
            return None;
        }
        Some(str::from_utf8(text).ok()?.parse().unwrap_or(i64::MAX))
    }

    /// Returns the first name that was not read.
    pub(super) fn unread(&self) -> Option<&[u8]> {
        self.left.first().map(|(name, _)| &**name)
    }

    /// Ends the reading of parameters.
    ///
    /// # Errors
    /// Returns `schema_faults` with every fault so far.
    pub(super) fn finish(self) -> Result<(), Refusal> {
        if self.faults.is_empty() {
            return Ok(());
        }
        Err(Refusal::of_faults(self.faults))
    }

    /// Takes all values of a parameter, unchecked.
    pub(super) fn take(&mut self, name: &str) -> Vec<Bytes<'q>> {
        let asked = self.left.extract_if(.., |(given, _)| **given == *name.as_bytes());
        asked.map(|(_, value)| value).collect()
    }

    fn fault(&mut self, kind: &'static str, name: &'static str, message: impl Into<String>) {
        self.faults.push(DetailFault::new(kind, &["query", name], message.into()));
    }
}

/// Returns the text of a value.
///
/// # Errors
/// Returns `invalid_input` for control characters and invalid UTF-8.
pub(super) fn checked(name: &'static str, value: &[u8]) -> Result<String, Refusal> {
    match str::from_utf8(value) {
        Ok(text) if !value.iter().any(u8::is_ascii_control) => Ok(text.to_owned()),
        _ => Err(Refusal::new("invalid_input").with("field", ContextValue::Text(name.to_owned()))),
    }
}

/// Decodes percent signs, and turns each `+` into a space.
fn decoded(text: &str) -> Bytes<'_> {
    if !text.contains('+') {
        return percent_decode(text.as_bytes()).into();
    }
    percent_decode(text.replace('+', " ").as_bytes()).collect::<Vec<_>>().into()
}

/// Returns true if `text` is one line that ends like a time whose offset was sent with a bare `+`.
/// Example: `2026-01-02T03:04:05 01:00`.
fn has_lost_plus(text: &[u8]) -> bool {
    let digits = match text {
        [.., b' ', h1, h2, b':', m1, m2] | [.., b' ', h1, h2, m1, m2] => [h1, h2, m1, m2],
        _ => return false,
    };
    digits.iter().all(|digit| digit.is_ascii_digit()) && !text.contains(&b'\n')
}

/// Returns the number that `[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?` describes. Rust
/// reads more forms; they are refused here.
fn number(text: &[u8]) -> Option<f64> {
    let unsigned = text.strip_prefix(b"+").or(text.strip_prefix(b"-")).unwrap_or(text);
    let starts_well = match unsigned {
        [b'0', second, ..] => !second.is_ascii_digit(),
        [first, ..] => first.is_ascii_digit(),
        [] => false,
    };
    let point = text.iter().position(|byte| *byte == b'.');
    let goes_on = point.is_none_or(|at| text.get(at + 1).is_some_and(u8::is_ascii_digit));
    if !starts_well || !goes_on {
        return None;
    }
    str::from_utf8(text).ok()?.parse().ok()
}
