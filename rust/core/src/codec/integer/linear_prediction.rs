//! Linear prediction: times of a clock that ticks evenly, as small residuals above a line.
//!
//! Example: above a line from 100 with a slope of 10, the times 100, 111, 120 and 132 are the
//! residuals 0, 1, 0 and 2.

use super::number::{SignedNumber, SignedNumbers};
use super::profile::{Profile, distance};
use super::step::Divisor;
use crate::codec::simd::{mapped, multiversioned};

/// Minimum length of a run for a line to be fitted to it.
pub(super) const LENGTH_MIN: usize = 16;

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
        let steps = steps_above(values, profile.min, profile.step);
        slopes(&steps[longest], profile)?
            .into_iter()
            .flatten()
            .map(|slope| Lines::below(&steps, run_lengths, slope))
            .min_by_key(|lines| lines.residual_max)
            .map(|lines| lines.prediction(&steps, run_lengths, profile))
    }
}

/// Lines that touch the runs from below, in steps.
struct Lines {
    slope: Slope,
    intercepts: Vec<i64>,
    /// Largest distance of a number from the line of its run.
    residual_max: i64,
}

impl Lines {
    fn below(steps: &[i64], run_lengths: &[u32], slope: Slope) -> Self {
        let mut residual_max = 0;
        let intercept = |run: &[i64]| {
            let (min, max) = range_above(run, slope);
            residual_max = residual_max.max(max.wrapping_sub(min));
            min
        };
        let intercepts = runs_of(steps, run_lengths).map(intercept).collect();
        Self { slope, intercepts, residual_max }
    }

    fn prediction(self, steps: &[i64], run_lengths: &[u32], profile: &Profile) -> LinearPrediction {
        let residuals = if i32::try_from(self.residual_max).is_ok() {
            SignedNumbers::Narrow(self.residuals(steps, run_lengths))
        } else {
            SignedNumbers::Wide(self.residuals(steps, run_lengths))
        };
        let of_steps = |steps: i64| steps.wrapping_mul(profile.step.size.cast_signed());
        let number = |intercept: i64| profile.min.wrapping_add(of_steps(intercept));
        let intercepts = self.intercepts.into_iter().map(number).collect();
        LinearPrediction { step: profile.step, slope: self.slope, intercepts, residuals }
    }

    fn residuals<T: SignedNumber>(&self, steps: &[i64], run_lengths: &[u32]) -> Vec<T> {
        let mut residuals = vec![T::of(0); steps.len()];
        let mut rest = residuals.as_mut_slice();
        for (run, intercept) in runs_of(steps, run_lengths).zip(&self.intercepts) {
            let of_run;
            (of_run, rest) = rest.split_at_mut(run.len());
            fill_residuals(run, *intercept, self.slope, of_run);
        }
        residuals
    }
}

/// Returns the numbers of each run.
fn runs_of<'n>(numbers: &'n [i64], run_lengths: &[u32]) -> impl Iterator<Item = &'n [i64]> {
    let mut rest = numbers;
    run_lengths.iter().map(move |length| {
        let run;
        (run, rest) = rest.split_at(*length as usize);
        run
    })
}

/// Slopes that may fit a run of steps: a slope of whole steps, and a slope with a fraction if that
/// differs.
fn slopes(run: &[i64], profile: &Profile) -> Option<[Option<Slope>; 2]> {
    let half = run.len() / 2;
    let steps = profile.step.steps_of(distance(profile.max, profile.min));
    steps.checked_mul(half as u64)?;
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let mean = |run| sum(run) as f64 / half as f64;
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
    /// Number of steps of each value above `min`.
    fn steps_above(values: &[i64], min: i64, step: Divisor) -> Vec<i64> {
        mapped(values, |value| step.signed_steps(value.wrapping_sub(min)))
    }
}

multiversioned! {
    fn sum(steps: &[i64]) -> u64 {
        steps.iter().fold(0_u64, |sum, steps| sum.wrapping_add(steps.cast_unsigned()))
    }
}

multiversioned! {
    /// Smallest and largest distance of a run from the line that begins at 0.
    fn range_above(run: &[i64], slope: Slope) -> (i64, i64) {
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        let (mut line, mut fraction) = (0_u64, 0_u64);
        for steps in run {
            let predicted = line.wrapping_add(fraction >> FRACTION_BITS).cast_signed();
            let distance = steps.wrapping_sub(predicted);
            min = min.min(distance);
            max = max.max(distance);
            line = line.wrapping_add(slope.whole);
            fraction = fraction.wrapping_add(slope.fraction.into());
        }
        (min, max)
    }
}

multiversioned! {
    /// Fills `residuals` with the distances of a run from the line that begins at `intercept`.
    fn fill_residuals[T: SignedNumber](run: &[i64], intercept: i64, slope: Slope, residuals: &mut [T]) {
        let (mut line, mut fraction) = (intercept.cast_unsigned(), 0_u64);
        for (residual, steps) in residuals.iter_mut().zip(run) {
            let predicted = line.wrapping_add(fraction >> FRACTION_BITS).cast_signed();
            *residual = T::of(steps.wrapping_sub(predicted));
            line = line.wrapping_add(slope.whole);
            fraction = fraction.wrapping_add(slope.fraction.into());
        }
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
