//! Choice of the exponent with which a column is scaled.

use std::iter::StepBy;
use std::slice::Iter;

use super::decimal::{POWERS_OF_TEN, Power, SCALED_END, narrow_exceptions, scale};

/// Values looked at to choose an exponent.
const SAMPLE: usize = 32;

/// Exponents that are tried on a whole sample.
const QUICK_EXPONENTS: usize = 5;

/// Values of a sample for each exception that is put up with: an exception costs ten bytes, about as
/// much as three more bits on 24 other values.
const SAMPLE_PER_EXCEPTION: usize = 24;

/// The exponent that serves nearly all of a sample, if most of it are decimals.
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

/// Tells if the exponent that is chosen for `values`, which are decimals of some larger exponent, is
/// at least `min`: more of the sample are decimals of no smaller one than are put up with.
pub(super) fn is_chosen_at_least(values: &[f64], min: usize) -> bool {
    let Some(smaller) = min.checked_sub(1) else { return true };
    let exceptions_max = sample_of(values).len() / SAMPLE_PER_EXCEPTION;
    let mut exceptions = sample_of(values).filter(|value| !scale(**value, smaller).1);
    exceptions.nth(exceptions_max).is_some()
}

/// The values that are looked at.
fn sample_of(values: &[f64]) -> StepBy<Iter<'_, f64>> {
    values.iter().step_by(values.len().div_ceil(SAMPLE).max(1))
}

/// The same for decimals of few digits, each exponent tried on the whole sample at a time.
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

/// The same for any decimals, among which there may be other doubles.
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
fn exponent_of(value: f64) -> Option<usize> {
    (0..POWERS_OF_TEN.len())
        .take_while(|exponent| (value * POWERS_OF_TEN[*exponent]).abs() < SCALED_END)
        .find(|exponent| scale(value, *exponent).1)
}
