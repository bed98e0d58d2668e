//! Choice of the exponent that scales a column.

use std::iter::StepBy;
use std::slice::Iter;

use super::decimal::{POWERS_OF_TEN, Power, SCALED_END, narrow_exceptions, scale};

/// Number of values that are sampled to choose an exponent.
const SAMPLE: usize = 32;

/// Number of exponents that are tried on a whole sample.
const QUICK_EXPONENTS: usize = 5;

/// An exponent is accepted with one exception per this many sampled values. An exception costs ten
/// bytes, about as much as three more bits on 24 other values.
const SAMPLE_PER_EXCEPTION: usize = 24;

/// Returns an exponent that makes decimal integers of nearly all sampled values, if there is one.
pub(super) fn choose_exponent(values: &[f64]) -> Option<usize> {
    let mut sample = [0.0; SAMPLE];
    let mut len = 0;
    for value in sample_of(values) {
        sample[len] = *value;
        len += 1;
    }
    let sample = &sample[..len];
    quick_exponent(sample).or_else(|| any_exponent(sample))
}

/// Returns true if the exponent chosen for `values` is at least `min`. All values must be decimals
/// of some larger exponent.
///
/// The choice is at least `min` if the exponent below `min` has more exceptions in the sample than
/// are accepted.
pub(super) fn is_chosen_at_least(values: &[f64], min: usize) -> bool {
    let Some(smaller) = min.checked_sub(1) else { return true };
    let exceptions_max = sample_of(values).len() / SAMPLE_PER_EXCEPTION;
    let mut exceptions = sample_of(values).filter(|value| !scale(**value, smaller).1);
    exceptions.nth(exceptions_max).is_some()
}

/// The values of the sample.
fn sample_of(values: &[f64]) -> StepBy<Iter<'_, f64>> {
    values.iter().step_by(values.len().div_ceil(SAMPLE).max(1))
}

/// Chooses an exponent for decimals of few digits. Tries each exponent on the whole sample.
fn quick_exponent(sample: &[f64]) -> Option<usize> {
    let exceptions_max = sample.len() / SAMPLE_PER_EXCEPTION;
    let mut chosen = None;
    for exponent in 0..QUICK_EXPONENTS {
        let exceptions = narrow_exceptions(sample, Power::of(exponent));
        if exceptions <= exceptions_max as u64 {
            chosen = chosen.or(Some(exponent));
        }
        if exceptions == 0 {
            return chosen;
        }
    }
    None
}

/// Chooses an exponent for decimals of any length, with other doubles among them.
fn any_exponent(sample: &[f64]) -> Option<usize> {
    let mut exponents = Vec::with_capacity(sample.len());
    let mut others = 0;
    for &value in sample {
        match exponent_of(value) {
            Some(exponent) => exponents.push(exponent),
            None => others += 1,
        }
        if others > SAMPLE / 4 && others > exponents.len() {
            return None;
        }
    }
    exponents.sort_unstable();
    let exceptions_max = exponents.len() / SAMPLE_PER_EXCEPTION;
    exponents.len().checked_sub(1 + exceptions_max).map(|index| exponents[index])
}

/// Smallest exponent that makes a decimal integer of `value`.
///
/// Example: the exponent of 21.25 is 2.
fn exponent_of(value: f64) -> Option<usize> {
    (0..POWERS_OF_TEN.len())
        .take_while(|exponent| (value * POWERS_OF_TEN[*exponent]).abs() < SCALED_END)
        .find(|exponent| scale(value, *exponent).1)
}
