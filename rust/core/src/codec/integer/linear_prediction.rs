//! Numbers along a line: instants of a clock that ticks evenly, but for a little.

use super::number::{Number, Numbers};
use super::profile::{Profile, distance};
use super::step::Step;
use crate::codec::simd::{mapped, multiversioned};

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

/// Numbers as heights above lines of one slope, a line for each run.
pub(super) struct Lines {
    pub(super) step: Step,
    pub(super) slope: Slope,
    /// Where each line begins, low enough that no number is below its line.
    pub(super) bases: Vec<i64>,
    /// In steps above the line.
    pub(super) heights: Numbers,
}

impl Lines {
    /// Lines through the runs, if there is a run that is long enough and does not fall.
    pub(super) fn through(values: &[i64], run_lengths: &[u32], profile: &Profile) -> Option<Self> {
        profile.max.checked_sub(profile.min)?;
        let mut end = 0;
        let runs = run_lengths.iter().map(|length| {
            let start = end;
            end += *length as usize;
            start..end
        });
        let longest =
            runs.max_by_key(ExactSizeIterator::len).filter(|run| run.len() >= LENGTH_MIN)?;
        let slopes = slopes(&values[longest], profile)?;
        let lines = slopes
            .into_iter()
            .flatten()
            .map(|slope| Self::with_slope(values, run_lengths, profile, slope));
        lines.min_by_key(|(highest, _)| *highest).map(|(_, lines)| lines)
    }

    /// The lines, and the largest height above them.
    fn with_slope(
        values: &[i64],
        run_lengths: &[u32],
        profile: &Profile,
        slope: Slope,
    ) -> (i64, Self) {
        let mut heights = vec![0; values.len()];
        let mut bases = Vec::with_capacity(run_lengths.len());
        let mut highest = 0;
        let (mut rest, mut rest_of_values) = (heights.as_mut_slice(), values);
        for length in run_lengths {
            let (run, values);
            (run, rest) = rest.split_at_mut(*length as usize);
            (values, rest_of_values) = rest_of_values.split_at(*length as usize);
            let (base, top) = heights_of(values, profile.min, profile.step, slope, run);
            highest = highest.max(top);
            bases
                .push(profile.min.wrapping_add(base.wrapping_mul(profile.step.size.cast_signed())));
        }
        let heights = Numbers::up_to(heights, highest);
        (highest, Self { step: profile.step, slope, bases, heights })
    }
}

/// Slopes that may fit a run: in whole steps, and as exact as can be told.
fn slopes(run: &[i64], profile: &Profile) -> Option<[Option<Slope>; 2]> {
    let half = run.len() / 2;
    let steps = profile.step.steps_of(distance(profile.max, profile.min));
    steps.checked_mul(half as u64)?;
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let mean = |values| sum_of_steps(values, profile.min, profile.step) as f64 / half as f64;
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

multiversioned! {
    fn sum_of_steps(values: &[i64], min: i64, step: Step) -> u64 {
        values.iter().fold(0_u64, |sum, value| sum.wrapping_add(step.steps_of(distance(*value, min))))
    }
}

multiversioned! {
    /// Heights of a run above the line that touches it from below, whose beginning is returned in
    /// steps above `min`, with the largest height.
    fn heights_of(values: &[i64], min: i64, step: Step, slope: Slope, heights: &mut [i64]) -> (i64, i64) {
        let (mut base, mut top) = (i64::MAX, i64::MIN);
        let (mut line, mut fraction) = (0_u64, 0_u64);
        for (height, value) in heights.iter_mut().zip(values) {
            let at = line.wrapping_add(fraction >> FRACTION_BITS).cast_signed();
            *height = step.signed_steps(value.wrapping_sub(min)).wrapping_sub(at);
            base = base.min(*height);
            top = top.max(*height);
            line = line.wrapping_add(slope.whole);
            fraction = fraction.wrapping_add(slope.fraction.into());
        }
        for height in heights {
            *height = height.wrapping_sub(base);
        }
        (base, top.wrapping_sub(base))
    }
}

/// The numbers at these heights above the lines of the runs.
pub(super) fn raise(
    heights: &Numbers,
    bases: &[i64],
    run_lengths: &[u32],
    step: u64,
    slope: Slope,
) -> Vec<i64> {
    match heights {
        Numbers::Narrow(heights) => raise_runs(heights, bases, run_lengths, step, slope),
        Numbers::Wide(heights) => raise_runs(heights, bases, run_lengths, step, slope),
    }
}

fn raise_runs<T: Number>(
    heights: &[T],
    bases: &[i64],
    run_lengths: &[u32],
    step: u64,
    slope: Slope,
) -> Vec<i64> {
    if let [base] = bases {
        return raise_run(heights, *base, step.cast_signed(), slope);
    }
    let mut numbers = Vec::with_capacity(heights.len());
    let mut rest = heights;
    for (base, length) in bases.iter().zip(run_lengths) {
        let run;
        (run, rest) = rest.split_at(*length as usize);
        numbers.append(&mut raise_run(run, *base, step.cast_signed(), slope));
    }
    numbers
}

multiversioned! {
    /// Turns the heights of a run into its numbers.
    fn raise_run[T: Number](heights: &[T], base: i64, step: i64, slope: Slope) -> Vec<i64> {
        // What is added from one number to the next is added up; the rest takes a multiplication.
        let rise = slope.whole.cast_signed().wrapping_mul(step);
        let (mut line, mut fraction) = (base, 0_u64);
        mapped(heights, |height| {
            let steps = height.into().wrapping_add((fraction >> FRACTION_BITS).cast_signed());
            let number = line.wrapping_add(steps.wrapping_mul(step));
            line = line.wrapping_add(rise);
            fraction = fraction.wrapping_add(slope.fraction.into());
            number
        })
    }
}
