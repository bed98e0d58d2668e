//! Choosing the range and writing.

use crate::codec::bytes::{put_len, put_varint, put_zigzag, varint_len, zigzag_len};
use crate::codec::integer::bit_packing::GROUP;
use crate::codec::integer::number::SignedNumber;
use crate::codec::integer::profile::Profile;
use crate::codec::integer::radix_packing::{RADIX_END, WordLayout};
use crate::codec::integer::step::Divisor;
use crate::codec::simd::{mapped, multiversioned};

/// Assumed bits of an exception while a range is chosen: its position, its value, and its digit,
/// which remains.
const EXCEPTION_BITS: f64 = 40.0;

/// Columns with a larger distance between smallest and largest number do not take this form, so
/// that differences cannot overflow.
const SPAN_END: i64 = 1 << 62;

/// Layout of a column of numbers, and its length.
pub(crate) struct PatchedFrameOfReference {
    reference: i64,
    step: Divisor,
    words: WordLayout,
    /// Number, positions and values of the exceptions, as they are stored.
    exceptions: Vec<u8>,
    /// Bytes that [`Self::write`] will append.
    pub(crate) len: usize,
}

impl PatchedFrameOfReference {
    /// Chooses a range for `values`. Returns `None` if no range saves bytes.
    pub(crate) fn choose<T: SignedNumber>(values: &[T], profile: &Profile) -> Option<Self> {
        let count = values.len();
        span(profile)?;
        let whole = words_for(count, profile, (profile.min, profile.max));
        let range = cheapest_range(count, profile);
        if let Some(words) = words_for(count, profile, range) {
            // The exceptions may take the bytes that the smaller range saves.
            let whole_len = whole.map_or(count, |whole| whole.len(count));
            let saved = whole_len.saturating_sub(words.len(count));
            if let Some(exceptions) = list_exceptions(values, profile, range, saved) {
                return Some(Self::new(range.0, profile.step, words, exceptions, count));
            }
        }
        Some(Self::new(profile.min, profile.step, whole?, vec![0], count))
    }

    fn new(
        reference: i64,
        step: Divisor,
        words: WordLayout,
        exceptions: Vec<u8>,
        count: usize,
    ) -> Self {
        let head_len =
            zigzag_len(reference) + varint_len(step.size) + varint_len(words.radix().into());
        let len = head_len + 1 + exceptions.len() + words.len(count);
        Self { reference, step, words, exceptions, len }
    }

    /// Appends `values`. The layout must be chosen for the same values.
    pub(crate) fn write<T: SignedNumber>(&self, values: &[T], out: &mut Vec<u8>) {
        out.reserve(self.len);
        put_zigzag(out, self.reference);
        put_varint(out, self.step.size);
        put_varint(out, self.words.radix().into());
        out.push(self.words.digits().to_le_bytes()[0]);
        out.extend_from_slice(&self.exceptions);
        let span = (u64::from(self.words.radix()) - 1).wrapping_mul(self.step.size);
        let max = self.reference.wrapping_add_unsigned(span);
        let digits = digits_of(values, T::of(self.reference), T::of(max), self.step);
        self.words.pack(&digits, out);
    }
}

/// Distance between the smallest and the largest number. `None` if it is too large for this form.
fn span(profile: &Profile) -> Option<i64> {
    profile.max.checked_sub(profile.min).filter(|span| *span < SPAN_END)
}

/// A lower bound of the bytes that any range takes. A range leaves out at most half of the groups,
/// and words are never shorter than the information in them.
pub(crate) fn len_min(count: usize, profile: &Profile) -> usize {
    if span(profile).is_none() {
        return usize::MAX;
    }
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

/// Layout of words for the numbers in a range. `None` if the range is too wide.
fn words_for(count: usize, profile: &Profile, (min, max): (i64, i64)) -> Option<WordLayout> {
    let radix = profile.step.signed_steps(max - min).cast_unsigned() + 1;
    (radix < RADIX_END).then(|| WordLayout::densest(radix, count))
}

/// Returns the stored exceptions: their number, then the position of each and its steps from `min`.
/// Returns `None` if the exceptions take more than `len_max` bytes.
fn list_exceptions<T: SignedNumber>(
    values: &[T],
    profile: &Profile,
    (min, max): (i64, i64),
    len_max: usize,
) -> Option<Vec<u8>> {
    let (mut count, mut next, mut listed) = (0, 0, Vec::new());
    let groups = values.chunks(GROUP).zip(&profile.ranges).zip((0..).step_by(GROUP));
    for ((group, _), first) in groups.filter(|((_, range), _)| range.0 < min || range.1 > max) {
        for (value, position) in group.iter().zip(first..) {
            let value: i64 = (*value).into();
            if !(min..=max).contains(&value) {
                count += 1;
                put_len(&mut listed, position - next);
                put_zigzag(&mut listed, profile.step.signed_steps(value - min));
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

/// Returns the range that takes the fewest bits, exceptions included. First leaves out the smallest
/// numbers of some groups, then the largest numbers of some groups.
fn cheapest_range(count: usize, profile: &Profile) -> (i64, i64) {
    let mut minima: Vec<i64> = profile.ranges.iter().map(|range| range.0).collect();
    let mut maxima: Vec<i64> = profile.ranges.iter().map(|range| range.1).collect();
    minima.sort_unstable();
    maxima.sort_unstable_by_key(|max| std::cmp::Reverse(*max));
    let min = cheapest_end(count, &minima, |min| profile.max - min);
    let max = cheapest_end(count, &maxima, |max| max - min);
    (min, max)
}

/// Returns the cheapest of `ends`, if each end before it is an exception. `span` returns the width
/// of the range with this end, or a negative number if there is no such range.
fn cheapest_end(count: usize, ends: &[i64], span: impl Fn(i64) -> i64) -> i64 {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let bits = |(left_out, end): (usize, &i64)| {
        (span(*end) as f64 + 1.0).log2() * count as f64 + left_out as f64 * EXCEPTION_BITS
    };
    // At least half of the groups are kept.
    let candidates = ends.iter().enumerate().take(ends.len() / 2 + 1);
    let candidates = candidates
        .filter(|(index, end)| *index == 0 || (ends[index - 1] != **end && span(**end) >= 0));
    let candidates = candidates.map(|candidate| (bits(candidate), *candidate.1));
    candidates.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0, |(_, end)| end)
}

multiversioned! {
    /// Converts values to steps above `min`. Exceptions become 0.
    fn digits_of[T: SignedNumber](values: &[T], min: T, max: T, step: Divisor) -> Vec<u32> {
        mapped(values, |value| {
            let is_inside = min <= value && value <= max;
            if is_inside { value.steps_above(min, step) } else { 0 }
        })
    }
}
