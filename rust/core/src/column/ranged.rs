//! Numbers that lie in one range, in fractions of a bit, and the few that do not.

use super::bitpack::GROUP;
use super::bytes::{Cursor, put_len, put_varint, put_zigzag, varint_len, zigzag_len};
use super::radix::{RADIX_END, Words};
use super::survey::{Step, Survey};
use super::vector::vectorised;
use crate::error::Result;

/// Bits that an exception is taken to cost while a range is chosen: its position, its value, and
/// its place in the range that stays.
const EXCEPTION_BITS: f64 = 40.0;

/// Numbers further apart than this are not for this form; so differences do not overflow.
const SPAN_END: i64 = 1 << 62;

/// How a slice of numbers will be packed, and how long that will be.
pub(super) struct Plan {
    low: i64,
    step: Step,
    words: Words,
    /// Number, positions and values of those outside of the range.
    exceptions: Vec<u8>,
    /// Bytes that [`write`] will append.
    pub(super) len: usize,
}

/// Chooses a range for `values`, unless there is none that pays.
pub(super) fn plan(values: &[i64], survey: &Survey) -> Option<Plan> {
    survey.max.checked_sub(survey.min).filter(|span| *span < SPAN_END)?;
    let whole = words(values.len(), survey, (survey.min, survey.max));
    let range = range(values.len(), survey);
    if let Some(words) = words(values.len(), survey, range) {
        // Whatever is saved, the exceptions may take.
        let whole_len = whole.map_or(values.len(), |whole| whole.len(values.len()));
        let left = whole_len.saturating_sub(words.len(values.len()));
        if let Some(exceptions) = list_exceptions(values, survey, range, left) {
            return Some(Plan::new(range.0, survey.step, words, exceptions, values.len()));
        }
    }
    Some(Plan::new(survey.min, survey.step, whole?, vec![0], values.len()))
}

/// Words for the numbers in a range, if it is not too wide.
fn words(count: usize, survey: &Survey, (low, high): (i64, i64)) -> Option<Words> {
    let radix = survey.step.steps(high - low).cast_unsigned() + 1;
    (radix < RADIX_END).then(|| Words::densest(radix, count))
}

impl Plan {
    fn new(low: i64, step: Step, words: Words, exceptions: Vec<u8>, count: usize) -> Self {
        let head_len = zigzag_len(low) + varint_len(step.size) + varint_len(words.radix().into());
        let len = head_len + 1 + exceptions.len() + words.len(count);
        Self { low, step, words, exceptions, len }
    }
}

/// How many numbers lie outside of a range, their positions and their steps from its low end, unless
/// that takes more than `len_max` bytes.
fn list_exceptions(
    values: &[i64],
    survey: &Survey,
    (low, high): (i64, i64),
    len_max: usize,
) -> Option<Vec<u8>> {
    let (mut count, mut next, mut listed) = (0, 0, Vec::new());
    let groups = values.chunks(GROUP).zip(&survey.ranges).zip((0..).step_by(GROUP));
    for ((group, _), first) in groups.filter(|((_, range), _)| range.0 < low || range.1 > high) {
        for (value, position) in group.iter().zip(first..) {
            if !(low..=high).contains(value) {
                count += 1;
                put_len(&mut listed, position - next);
                put_zigzag(&mut listed, survey.step.steps(value - low));
                next = position + 1;
            }
        }
        if listed.len() > len_max {
            return None;
        }
    }
    let mut exceptions = Vec::with_capacity(listed.len() + 2);
    put_len(&mut exceptions, count);
    exceptions.append(&mut listed);
    Some(exceptions)
}

/// The range that takes the fewest bits if what lies outside is kept aside: some groups' smallest
/// numbers are left out, then some groups' largest.
fn range(count: usize, survey: &Survey) -> (i64, i64) {
    let mut lows: Vec<i64> = survey.ranges.iter().map(|range| range.0).collect();
    let mut highs: Vec<i64> = survey.ranges.iter().map(|range| range.1).collect();
    lows.sort_unstable();
    highs.sort_unstable_by_key(|high| std::cmp::Reverse(*high));
    let low = cut(count, &lows, |low| survey.max - low);
    let high = cut(count, &highs, |high| high - low);
    (low, high)
}

/// The first of `ends` to keep, where each one left out is an exception; `span` is of the range
/// that ends there, negative if there is none.
fn cut(count: usize, ends: &[i64], span: impl Fn(i64) -> i64) -> i64 {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let bits = |(left_out, end): (usize, &i64)| {
        (span(*end) as f64 + 1.0).log2() * count as f64 + left_out as f64 * EXCEPTION_BITS
    };
    // Half of the groups are as they should be, or there is no range.
    let candidates = ends.iter().enumerate().take(ends.len() / 2 + 1);
    let candidates =
        candidates.filter(|(at, end)| *at == 0 || (ends[at - 1] != **end && span(**end) >= 0));
    let best = candidates.min_by(|a, b| bits(*a).total_cmp(&bits(*b)));
    best.map_or(0, |(_, end)| *end)
}

/// Appends `values` as `plan`, made of the same values, says.
pub(super) fn write(values: &[i64], plan: &Plan, out: &mut Vec<u8>) {
    out.reserve(plan.len);
    put_zigzag(out, plan.low);
    put_varint(out, plan.step.size);
    put_varint(out, plan.words.radix().into());
    out.push(plan.words.digits().to_le_bytes()[0]);
    out.extend_from_slice(&plan.exceptions);
    let mut digits = vec![0; values.len()];
    digits_of(values, plan.low, plan.step, plan.words.radix(), &mut digits);
    plan.words.pack(&digits, out);
}

vectorised! {
    /// Steps above `low`; 0 for those outside of the range.
    fn digits_of(values: &[i64], low: i64, step: Step, radix: u32, digits: &mut [u32]) {
        for (digit, value) in digits.iter_mut().zip(values) {
            let steps = step.steps(value.wrapping_sub(low));
            let is_inside = steps >= 0 && steps < i64::from(radix);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a digit")]
            let inside = steps as u32;
            *digit = if is_inside { inside } else { 0 };
        }
    }
}

/// Numbers as they lie in their range, and those outside of it.
pub(super) struct Ranged {
    low: i64,
    step: u64,
    digits: Vec<u32>,
    exceptions: Vec<(usize, i64)>,
}

impl Ranged {
    /// Reads `count` numbers.
    ///
    /// Where the radix is 1 there are as many numbers as few bytes claim: the caller bounds `count`.
    pub(super) fn read(input: &mut Cursor<'_>, count: usize) -> Result<Self> {
        let low = input.zigzag()?;
        let step = input.varint()?;
        let radix = input.varint()?;
        let digits = input.byte()?;
        let words = Words::new(radix, digits.into()).ok_or(input.corrupt())?;
        input.check(step != 0)?;
        let exceptions = read_exceptions(input, count)?;
        let bytes = input.take(words.len(count))?;
        let mut digits = vec![0; count];
        words.unpack(bytes, &mut digits);
        Ok(Self { low, step, digits, exceptions })
    }

    /// The numbers themselves.
    pub(super) fn numbers(self) -> Vec<i64> {
        let mut numbers = numbers_of(&self.digits, self.low, self.step);
        for &(position, steps) in &self.exceptions {
            numbers[position] = self.number(steps);
        }
        numbers
    }

    /// What each run adds up to number by number, after one number that comes before it.
    pub(super) fn sums(self, heads: &[i64], run_lengths: &[u32]) -> Vec<i64> {
        if self.exceptions.is_empty() {
            return sums(heads, &self.digits, |digit| self.number(digit.into()), run_lengths);
        }
        sums(heads, &self.numbers(), |number| number, run_lengths)
    }

    #[inline]
    const fn number(&self, steps: i64) -> i64 {
        self.low.wrapping_add(steps.wrapping_mul(self.step.cast_signed()))
    }
}

/// Runs that begin with their head, where every other number is the one before plus its difference.
#[inline]
pub(super) fn sums<T: Copy>(
    heads: &[i64],
    differences: &[T],
    difference: impl Fn(T) -> i64,
    run_lengths: &[u32],
) -> Vec<i64> {
    let mut values = Vec::with_capacity(heads.len() + differences.len());
    let mut rest = differences;
    for (&head, &length) in heads.iter().zip(run_lengths) {
        let (run, after) = rest.split_at(length as usize - 1);
        rest = after;
        values.push(head);
        let mut value = head;
        values.extend(run.iter().map(|step| {
            value = value.wrapping_add(difference(*step));
            value
        }));
    }
    values
}

vectorised! {
    fn numbers_of(digits: &[u32], low: i64, step: u64) -> Vec<i64> {
        // A multiplication of 64 bits has no vector form on every machine.
        if step == 1 {
            digits.iter().map(|digit| low.wrapping_add(i64::from(*digit))).collect()
        } else {
            let distance = |digit: &u32| i64::from(*digit).wrapping_mul(step.cast_signed());
            digits.iter().map(|digit| low.wrapping_add(distance(digit))).collect()
        }
    }
}

/// Positions below `count`, ascending, and steps from the low end of the range.
fn read_exceptions(input: &mut Cursor<'_>, count: usize) -> Result<Vec<(usize, i64)>> {
    // Each takes two bytes or more.
    let exception_count = input.len(count.min(input.remaining() / 2))?;
    let mut exceptions = Vec::with_capacity(exception_count);
    let mut next = 0;
    for _ in 0..exception_count {
        let gap = input.len(count)?;
        let position = gap + next;
        input.check(position < count)?;
        exceptions.push((position, input.zigzag()?));
        next = position + 1;
    }
    Ok(exceptions)
}
