//! Linear prediction: times of a clock that ticks evenly, as small residuals above a line.
//!
//! Example: above a line from 100 with a slope of 10, the times 100, 111, 120 and 132 are the
//! residuals 0, 1, 0 and 2.

use super::number::{SignedNumber, SignedNumbers};
use super::profile::{Profile, distance};
use super::step::Divisor;
use crate::codec::simd::{mapped, multiversioned};

/// Minimum length of a run for a line to be fitted to it.
const LENGTH_MIN: usize = 16;

/// Number of bits of the fraction of a slope.
const FRACTION_BITS: u32 = 32;

/// Number of steps from one number to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slope {
    pub(super) whole: u64,
    /// Fraction in parts of 2^32.
    pub(super) fraction: u32,
}

/// Numbers as residuals above lines. Each run has its own line, and all lines have the same slope.
pub(super) struct LinearPrediction {
    pub(super) step: Divisor,
    pub(super) slope: Slope,
    /// Intercept of each line, low enough that no residual is negative.
    pub(super) intercepts: Vec<i64>,
    /// Residuals in steps above the line.
    pub(super) residuals: SignedNumbers,
}

impl LinearPrediction {
    /// Fits lines to the runs. Returns `None` if the longest run is too short or falls.
    pub(super) fn fit(values: &[i64], run_lengths: &[u32], profile: &Profile) -> Option<Self> {
        profile.max.checked_sub(profile.min)?;
        let mut end = 0;
        let runs = run_lengths.iter().map(|length| {
            let start = end;
            end += *length as usize;
            start..end
        });
        let longest =
            runs.max_by_key(ExactSizeIterator::len).filter(|run| run.len() >= LENGTH_MIN)?;
        slopes(&values[longest], profile)?
            .into_iter()
            .flatten()
            .map(|slope| Self::with_slope(values, run_lengths, profile, slope))
            .min_by_key(|(residual_max, _)| *residual_max)
            .map(|(_, prediction)| prediction)
    }

    /// Returns the largest residual and the prediction with this slope.
    fn with_slope(
        values: &[i64],
        run_lengths: &[u32],
        profile: &Profile,
        slope: Slope,
    ) -> (i64, Self) {
        let step = profile.step;
        let mut residuals = vec![0; values.len()];
        let mut intercepts = Vec::with_capacity(run_lengths.len());
        let mut residual_max = 0;
        let (mut rest, mut rest_of_values) = (residuals.as_mut_slice(), values);
        for length in run_lengths {
            let (run, values);
            (run, rest) = rest.split_at_mut(*length as usize);
            (values, rest_of_values) = rest_of_values.split_at(*length as usize);
            let (intercept, max) = residuals_of(values, profile.min, step, slope, run);
            residual_max = residual_max.max(max);
            let offset = intercept.wrapping_mul(step.size.cast_signed());
            intercepts.push(profile.min.wrapping_add(offset));
        }
        let residuals = SignedNumbers::up_to(residuals, residual_max);
        (residual_max, Self { step, slope, intercepts, residuals })
    }
}

/// Slopes that may fit a run: a slope of whole steps, and a slope with a fraction if that differs.
fn slopes(run: &[i64], profile: &Profile) -> Option<[Option<Slope>; 2]> {
    let half = run.len() / 2;
    let steps = profile.step.steps_of(distance(profile.max, profile.min));
    steps.checked_mul(half as u64)?;
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let mean = |values| sum_of_steps(values, profile.min, profile.step) as f64 / half as f64;
    #[expect(clippy::cast_precision_loss, reason = "a block has fewer rows")]
    let spacing = (run.len() - half) as f64;
    let slope = (mean(&run[run.len() - half..]) - mean(&run[..half])) / spacing;
    if !(0.0..1e15).contains(&slope) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let whole = |slope: f64| slope as u64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2^32")]
    let fraction = ((slope - slope.floor()) * 2_f64.powi(32)) as u32;
    let round = Slope { whole: whole(slope.round()), fraction: 0 };
    let exact = Slope { whole: whole(slope.floor()), fraction };
    Some([Some(round), Some(exact).filter(|exact| *exact != round)])
}

multiversioned! {
    fn sum_of_steps(values: &[i64], min: i64, step: Divisor) -> u64 {
        values.iter().fold(0_u64, |sum, value| sum.wrapping_add(step.steps_of(distance(*value, min))))
    }
}

multiversioned! {
    /// Fills `residuals` with the distances of a run from the line that touches it from below.
    /// Returns the intercept of that line, in steps above `min`, and the largest residual.
    fn residuals_of(values: &[i64], min: i64, step: Divisor, slope: Slope, residuals: &mut [i64]) -> (i64, i64) {
        let (mut intercept, mut max) = (i64::MAX, i64::MIN);
        let (mut line, mut fraction) = (0_u64, 0_u64);
        for (residual, value) in residuals.iter_mut().zip(values) {
            let predicted = line.wrapping_add(fraction >> FRACTION_BITS).cast_signed();
            *residual = step.signed_steps(value.wrapping_sub(min)).wrapping_sub(predicted);
            intercept = intercept.min(*residual);
            max = max.max(*residual);
            line = line.wrapping_add(slope.whole);
            fraction = fraction.wrapping_add(slope.fraction.into());
        }
        for residual in residuals {
            *residual = residual.wrapping_sub(intercept);
        }
        (intercept, max.wrapping_sub(intercept))
    }
}

/// Returns the numbers with these residuals above the lines of the runs.
pub(super) fn numbers(
    residuals: &SignedNumbers,
    intercepts: &[i64],
    run_lengths: &[u32],
    step: u64,
    slope: Slope,
) -> Vec<i64> {
    match residuals {
        SignedNumbers::Narrow(residuals) => {
            of_runs(residuals, intercepts, run_lengths, step, slope)
        }
        SignedNumbers::Wide(residuals) => of_runs(residuals, intercepts, run_lengths, step, slope),
    }
}

fn of_runs<T: SignedNumber>(
    residuals: &[T],
    intercepts: &[i64],
    run_lengths: &[u32],
    step: u64,
    slope: Slope,
) -> Vec<i64> {
    if let [intercept] = intercepts {
        return of_run(residuals, *intercept, step.cast_signed(), slope);
    }
    let mut numbers = Vec::with_capacity(residuals.len());
    let mut rest = residuals;
    for (intercept, length) in intercepts.iter().zip(run_lengths) {
        let run;
        (run, rest) = rest.split_at(*length as usize);
        numbers.append(&mut of_run(run, *intercept, step.cast_signed(), slope));
    }
    numbers
}

multiversioned! {
    /// The numbers of one run.
    fn of_run[T: SignedNumber](residuals: &[T], intercept: i64, step: i64, slope: Slope) -> Vec<i64> {
        // The whole part of the line is a running sum. Only the steps above it take a
        // multiplication.
        let rise = slope.whole.cast_signed().wrapping_mul(step);
        let (mut line, mut fraction) = (intercept, 0_u64);
        mapped(residuals, |residual| {
            let steps = residual.into().wrapping_add((fraction >> FRACTION_BITS).cast_signed());
            let number = line.wrapping_add(steps.wrapping_mul(step));
            line = line.wrapping_add(rise);
            fraction = fraction.wrapping_add(slope.fraction.into());
            number
        })
    }
}
