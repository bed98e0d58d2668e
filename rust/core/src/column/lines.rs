//! Numbers along a line: instants of a clock that ticks evenly, but for a little.

use super::survey::{Step, Survey};
use super::vector::vectorised;

/// A run must have so many numbers for a line to be laid through it.
const LENGTH_MIN: usize = 16;

/// Bits behind the point of a slope.
const FRACTION_BITS: u32 = 32;

/// Steps from one number to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slope {
    pub(super) whole: u64,
    /// In parts of 2^32.
    pub(super) fraction: u32,
}

impl Slope {
    /// The line's height at a number, modulo 2^64; `at` is below 2^32.
    #[inline]
    const fn at(self, at: u64) -> i64 {
        let fraction = at.wrapping_mul(self.fraction as u64) >> FRACTION_BITS;
        at.wrapping_mul(self.whole).wrapping_add(fraction).cast_signed()
    }
}

/// Numbers as heights above lines of one slope, a line for each run.
pub(super) struct Lines {
    pub(super) step: Step,
    pub(super) slope: Slope,
    /// Where each line begins, low enough that no number is below its line.
    pub(super) bases: Vec<i64>,
    /// In steps above the line.
    pub(super) heights: Vec<i64>,
}

impl Lines {
    /// Lines through the runs, if there is a run that is long enough and does not fall.
    pub(super) fn through(values: &[i64], run_lengths: &[u32], survey: &Survey) -> Option<Self> {
        survey.max.checked_sub(survey.min)?;
        let mut end = 0;
        let runs = run_lengths.iter().map(|length| {
            let start = end;
            end += *length as usize;
            start..end
        });
        let longest =
            runs.max_by_key(ExactSizeIterator::len).filter(|run| run.len() >= LENGTH_MIN)?;
        let slopes = slopes(&values[longest], survey)?;
        let lines = slopes
            .into_iter()
            .flatten()
            .map(|slope| Self::with_slope(values, run_lengths, survey, slope));
        lines.min_by_key(|lines| lines.heights.iter().max().copied())
    }

    fn with_slope(values: &[i64], run_lengths: &[u32], survey: &Survey, slope: Slope) -> Self {
        let mut heights = vec![0; values.len()];
        let mut bases = Vec::with_capacity(run_lengths.len());
        let (mut rest, mut rest_of_values) = (heights.as_mut_slice(), values);
        for length in run_lengths {
            let (run, values);
            (run, rest) = rest.split_at_mut(*length as usize);
            (values, rest_of_values) = rest_of_values.split_at(*length as usize);
            let base = heights_of(values, survey.min, survey.step, slope, run);
            bases.push(survey.min.wrapping_add(base.wrapping_mul(survey.step.size.cast_signed())));
        }
        Self { step: survey.step, slope, bases, heights }
    }
}

/// Slopes that may fit a run: in whole steps, and as exact as can be told.
fn slopes(run: &[i64], survey: &Survey) -> Option<[Option<Slope>; 2]> {
    let half = run.len() / 2;
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let mean = |values: &[i64]| {
        let steps =
            values.iter().map(|value| survey.step.steps(value.wrapping_sub(survey.min)) as f64);
        steps.sum::<f64>() / half as f64
    };
    #[expect(clippy::cast_precision_loss, reason = "a block has fewer rows")]
    let distance = (run.len() - half) as f64;
    let slope = (mean(&run[run.len() - half..]) - mean(&run[..half])) / distance;
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

vectorised! {
    /// Heights of a run above the line that touches it from below, whose beginning is returned in
    /// steps above `min`.
    fn heights_of(values: &[i64], min: i64, step: Step, slope: Slope, heights: &mut [i64]) -> i64 {
        let mut base = i64::MAX;
        for ((height, value), at) in heights.iter_mut().zip(values).zip(0_u64..) {
            *height = step.steps(value.wrapping_sub(min)).wrapping_sub(slope.at(at));
            base = base.min(*height);
        }
        for height in heights {
            *height = height.wrapping_sub(base);
        }
        base
    }
}

vectorised! {
    /// Turns the heights of a run into its numbers.
    pub(super) fn raise(heights: &mut [i64], base: i64, step: u64, slope: Slope) {
        for (height, at) in heights.iter_mut().zip(0_u64..) {
            let steps = height.wrapping_add(slope.at(at));
            *height = base.wrapping_add(steps.wrapping_mul(step.cast_signed()));
        }
    }
}
