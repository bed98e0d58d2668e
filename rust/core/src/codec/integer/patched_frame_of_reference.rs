//! Numbers that lie in one range, in fractions of a bit, and the few that do not.

use super::bit_packing::GROUP;
use super::number::{Number, Numbers};
use super::profile::Profile;
use super::radix_packing::{RADIX_END, Words};
use super::step::Step;
use crate::codec::bytes::{Cursor, put_len, put_varint, put_zigzag, varint_len, zigzag_len};
use crate::codec::simd::kernels;
use crate::codec::simd::{mapped, multiversioned};
use crate::model::error::Result;

/// Bits that an exception is taken to cost while a range is chosen: its position, its value, and
/// its place in the range that stays.
const EXCEPTION_BITS: f64 = 40.0;

/// Numbers further apart than this are not for this form; so differences do not overflow.
const SPAN_END: i64 = 1 << 62;

/// Runs of so many numbers are worth moving before they are added up.
const LONG_RUN: u32 = 64;

/// Magnitudes that 32 bits hold with either sign.
const NARROW_MAX: u128 = i32::MAX as u128;

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
pub(super) fn plan<T: Number>(values: &[T], profile: &Profile) -> Option<Plan> {
    profile.max.checked_sub(profile.min).filter(|span| *span < SPAN_END)?;
    let whole = words(values.len(), profile, (profile.min, profile.max));
    let range = range(values.len(), profile);
    if let Some(words) = words(values.len(), profile, range) {
        // Whatever is saved, the exceptions may take.
        let whole_len = whole.map_or(values.len(), |whole| whole.len(values.len()));
        let left = whole_len.saturating_sub(words.len(values.len()));
        if let Some(exceptions) = list_exceptions(values, profile, range, left) {
            return Some(Plan::new(range.0, profile.step, words, exceptions, values.len()));
        }
    }
    Some(Plan::new(profile.min, profile.step, whole?, vec![0], values.len()))
}

/// Fewer bytes than any range takes: the writer leaves out half of the groups at most, and words
/// are no shorter than what they tell.
pub(super) fn len_floor(count: usize, profile: &Profile) -> usize {
    let Some(_) = profile.max.checked_sub(profile.min).filter(|span| *span < SPAN_END) else {
        return usize::MAX;
    };
    let half = profile.ranges.len() / 2;
    let mut ends: Vec<i64> = profile.ranges.iter().map(|range| range.0).collect();
    let low = *ends.select_nth_unstable(half).1;
    ends.clear();
    ends.extend(profile.ranges.iter().map(|range| range.1));
    let high = *ends.select_nth_unstable_by_key(half, |high| std::cmp::Reverse(*high)).1;
    let steps = profile.step.signed_steps(high.saturating_sub(low).max(0));
    #[expect(clippy::cast_precision_loss, reason = "a bound that is not tight")]
    let bits = (steps as f64 + 1.0).log2() * count as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded down")]
    let len = (bits / 8.0) as usize;
    len
}

/// Words for the numbers in a range, if it is not too wide.
fn words(count: usize, profile: &Profile, (low, high): (i64, i64)) -> Option<Words> {
    let radix = profile.step.signed_steps(high - low).cast_unsigned() + 1;
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
fn list_exceptions<T: Number>(
    values: &[T],
    profile: &Profile,
    (low, high): (i64, i64),
    len_max: usize,
) -> Option<Vec<u8>> {
    let (mut count, mut next, mut listed) = (0, 0, Vec::new());
    let groups = values.chunks(GROUP).zip(&profile.ranges).zip((0..).step_by(GROUP));
    for ((group, _), first) in groups.filter(|((_, range), _)| range.0 < low || range.1 > high) {
        for (value, position) in group.iter().zip(first..) {
            let value: i64 = (*value).into();
            if !(low..=high).contains(&value) {
                count += 1;
                put_len(&mut listed, position - next);
                put_zigzag(&mut listed, profile.step.signed_steps(value - low));
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
fn range(count: usize, profile: &Profile) -> (i64, i64) {
    let mut lows: Vec<i64> = profile.ranges.iter().map(|range| range.0).collect();
    let mut highs: Vec<i64> = profile.ranges.iter().map(|range| range.1).collect();
    lows.sort_unstable();
    highs.sort_unstable_by_key(|high| std::cmp::Reverse(*high));
    let low = cut(count, &lows, |low| profile.max - low);
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
pub(super) fn write<T: Number>(values: &[T], plan: &Plan, out: &mut Vec<u8>) {
    out.reserve(plan.len);
    put_zigzag(out, plan.low);
    put_varint(out, plan.step.size);
    put_varint(out, plan.words.radix().into());
    out.push(plan.words.digits().to_le_bytes()[0]);
    out.extend_from_slice(&plan.exceptions);
    let span = (u64::from(plan.words.radix()) - 1).wrapping_mul(plan.step.size);
    let high = plan.low.wrapping_add_unsigned(span);
    let digits = digits_of(values, T::of(plan.low), T::of(high), plan.step);
    plan.words.pack(&digits, out);
}

multiversioned! {
    /// Steps above `low`; 0 for those outside of the range.
    fn digits_of[T: Number](values: &[T], low: T, high: T, step: Step) -> Vec<u32> {
        mapped(values, |value| {
            let is_inside = low <= value && value <= high;
            if is_inside { value.steps_above(low, step) } else { 0 }
        })
    }
}

/// Numbers as they lie in their range, and those outside of it.
pub(super) struct Ranged<'a> {
    low: i64,
    step: u64,
    words: Words,
    count: usize,
    /// Positions, and steps from the low end.
    exceptions: Vec<(usize, i64)>,
    bytes: &'a [u8],
}

impl<'a> Ranged<'a> {
    /// Reads `count` numbers.
    ///
    /// Where the radix is 1 there are as many numbers as few bytes claim: the caller bounds `count`.
    pub(super) fn read(input: &mut Cursor<'a>, count: usize) -> Result<Self> {
        let low = input.zigzag()?;
        let step = input.varint()?;
        let radix = input.varint()?;
        let digits = input.byte()?;
        let words = Words::new(radix, digits.into()).ok_or_else(|| input.corrupt())?;
        input.check(step != 0)?;
        let exceptions = read_exceptions(input, count)?;
        let bytes = input.take(words.len(count))?;
        Ok(Self { low, step, words, count, exceptions, bytes })
    }

    /// The numbers themselves.
    pub(super) fn numbers(&self) -> Numbers {
        if self.largest_in_range().max(self.largest_exception()) <= NARROW_MAX {
            Numbers::Narrow(self.narrow(0))
        } else {
            Numbers::Wide(self.wide())
        }
    }

    /// What each run adds up to number by number, after one number that comes before it.
    pub(super) fn sums(&self, heads: &[i64], run_lengths: &[u32]) -> Numbers {
        let head = heads.iter().map(|head| head.unsigned_abs()).max().unwrap_or(0);
        let in_range = self.largest_in_range().saturating_mul(self.count as u128);
        let others = self.largest_exception().saturating_mul(self.exceptions.len() as u128);
        if in_range.saturating_add(others).saturating_add(head.into()) <= NARROW_MAX {
            Numbers::Narrow(narrow_sums(heads, self.narrow(heads.len()), run_lengths))
        } else {
            Numbers::Wide(sums(heads, &self.wide(), run_lengths))
        }
    }

    /// The largest magnitude of a number in the range.
    fn largest_in_range(&self) -> u128 {
        let high =
            i128::from(self.low) + i128::from(self.step) * i128::from(self.words.radix() - 1);
        high.unsigned_abs().max(self.low.unsigned_abs().into())
    }

    /// The largest magnitude of an exception.
    fn largest_exception(&self) -> u128 {
        let distance = |steps: i64| i128::from(self.step).saturating_mul(steps.into());
        let number = |steps| distance(steps).saturating_add(self.low.into()).unsigned_abs();
        self.exceptions.iter().map(|(_, steps)| number(*steps)).max().unwrap_or(0)
    }

    /// The numbers modulo 2^32, behind `gap` others.
    fn narrow(&self, gap: usize) -> Vec<i32> {
        let (low, step) = (low_half(self.low), low_half(self.step.cast_signed()));
        let mut numbers = if step == 1 {
            self.words.unpack(self.bytes, self.count, low, gap)
        } else {
            let mut digits = self.words.unpack(self.bytes, self.count, 0, gap);
            raise_narrow(&mut digits, low, step);
            digits
        };
        for (position, steps) in &self.exceptions {
            numbers[gap + *position] = low.wrapping_add(low_half(*steps).wrapping_mul(step));
        }
        // The same memory, seen as signed numbers.
        numbers.into_iter().map(u32::cast_signed).collect()
    }

    /// The numbers modulo 2^64.
    fn wide(&self) -> Vec<i64> {
        let digits = self.words.unpack(self.bytes, self.count, 0, 0);
        let mut numbers = raise_wide(&digits, self.low, self.step.cast_signed());
        for (position, steps) in &self.exceptions {
            numbers[*position] = self.low.wrapping_add(steps.wrapping_mul(self.step.cast_signed()));
        }
        numbers
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "modulo 2^32")]
const fn low_half(number: i64) -> u32 {
    number as u32
}

multiversioned! {
    fn raise_narrow(digits: &mut [u32], low: u32, step: u32) {
        for digit in digits {
            *digit = low.wrapping_add(digit.wrapping_mul(step));
        }
    }
}

multiversioned! {
    fn raise_wide(digits: &[u32], low: i64, step: i64) -> Vec<i64> {
        mapped(digits, |digit| low.wrapping_add(i64::from(digit).wrapping_mul(step)))
    }
}

/// Runs that begin with their head, where every other number is the one before plus its difference.
pub(super) fn sums(heads: &[i64], differences: &[i64], run_lengths: &[u32]) -> Vec<i64> {
    let mut values = Vec::with_capacity(heads.len() + differences.len());
    let mut rest = differences;
    for (&head, &length) in heads.iter().zip(run_lengths) {
        let (run, after) = rest.split_at(length as usize - 1);
        rest = after;
        values.push(head);
        let mut value = head;
        values.extend(run.iter().map(|difference| {
            value = value.wrapping_add(*difference);
            value
        }));
    }
    values
}

/// The same modulo 2^32, where room for the heads is in front of the differences.
fn narrow_sums(heads: &[i64], mut values: Vec<i32>, run_lengths: &[u32]) -> Vec<i32> {
    let (mut from, mut to) = (heads.len(), 0);
    for (head, &length) in heads.iter().zip(run_lengths) {
        let head = low_half(*head).cast_signed();
        let (start, end) = (from, from + length as usize - 1);
        if length < LONG_RUN {
            let mut sum = head;
            values[to] = sum;
            for at in start..end {
                sum = sum.wrapping_add(values[at]);
                to += 1;
                values[to] = sum;
            }
            to += 1;
        } else {
            values.copy_within(start..end, to + 1);
            values[to] = head;
            kernels::prefix_sums(&mut values[to..to + length as usize]);
            to += length as usize;
        }
        from = end;
    }
    values
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
