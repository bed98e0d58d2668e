//! What every way of packing numbers wants to know of them first.

use super::bit_packing::GROUP;
use super::number::Number;
use crate::codec::simd::multiversioned;

/// Numbers that a first guess at their step is made from.
const SAMPLE: usize = 64;

/// Ranges of groups of numbers, and what divides the distances between them.
pub(super) struct Survey {
    /// Smallest and largest of each [`GROUP`].
    pub(super) ranges: Vec<(i64, i64)>,
    /// Smallest of all.
    pub(super) min: i64,
    /// Largest of all.
    pub(super) max: i64,
    pub(super) step: Step,
}

impl Survey {
    /// # Panics
    ///
    /// If `values` is empty.
    pub(super) fn of<T: Number>(values: &[T]) -> Self {
        assert!(!values.is_empty(), "nothing to pack");
        let mut ranges = vec![(0, 0); values.len().div_ceil(GROUP)];
        ranges_of(values, &mut ranges);
        let all = |(min, max): (i64, i64), range: &(i64, i64)| (min.min(range.0), max.max(range.1));
        let (min, max) = ranges.iter().fold((i64::MAX, i64::MIN), all);
        Self { ranges, min, max, step: common_step(values, min, max) }
    }
}

multiversioned! {
    fn ranges_of[T: Number](values: &[T], ranges: &mut [(i64, i64)]) {
        for (range, group) in ranges.iter_mut().zip(values.chunks(GROUP)) {
            let (mut low, mut high) = (group[0], group[0]);
            for value in group {
                low = low.min(*value);
                high = high.max(*value);
            }
            *range = (low.into(), high.into());
        }
    }
}

/// Distance of a number from a smaller or equal one; it always fits.
pub(super) const fn above(value: i64, low: i64) -> u64 {
    value.wrapping_sub(low).cast_unsigned()
}

/// A positive number that others are known to be multiples of: dividing is multiplying then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(super) size: u64,
    /// Twos in it.
    shift: u32,
    /// The number that its odd part times makes 1, modulo 2^64.
    inverse: u64,
}

impl Step {
    pub(super) const fn new(size: u64) -> Self {
        let shift = size.trailing_zeros();
        let odd = size >> shift;
        // Newton's iteration: right in its lowest 3 bits at first, in twice as many each time.
        let mut inverse = odd;
        let mut round = 0;
        while round < 5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
            round += 1;
        }
        Self { size, shift, inverse }
    }

    /// `distance / size`, which leaves no rest.
    #[inline]
    pub(super) const fn steps_of(self, distance: u64) -> u64 {
        (distance >> self.shift).wrapping_mul(self.inverse)
    }

    /// `distance / size`, which leaves no rest, where both fit 32 bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32 it is an inverse as well")]
    pub(super) const fn narrow_steps(self, distance: u32) -> u32 {
        distance.wrapping_shr(self.shift).wrapping_mul(self.inverse as u32)
    }

    /// `distance / size`, which leaves no rest; signed, as distances below a reference are.
    #[inline]
    pub(super) const fn steps(self, distance: i64) -> i64 {
        (distance >> self.shift).wrapping_mul(self.inverse.cast_signed())
    }
}

/// Greatest common divisor of all distances from `min`, at least 1.
fn common_step<T: Number>(values: &[T], min: i64, max: i64) -> Step {
    let stride = values.len().div_ceil(SAMPLE);
    let guess = gcd_of(values.iter().step_by(stride), min);
    if guess == 1 || (guess > 1 && divides_all(values, min, max, Step::new(guess))) {
        return Step::new(guess);
    }
    Step::new(gcd_of(values.iter(), min).max(1))
}

fn gcd_of<'a, T: Number + 'a>(values: impl Iterator<Item = &'a T>, min: i64) -> u64 {
    let mut step = 0;
    for value in values {
        let distance = above((*value).into(), min);
        if !distance.is_multiple_of(step) {
            step = gcd(step, distance);
            if step == 1 {
                break;
            }
        }
    }
    step
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

multiversioned! {
    /// Whether a step divides all distances from `min`. Those that it does not divide become a
    /// number that is larger than any quotient can be.
    fn divides_all[T: Number](values: &[T], min: i64, max: i64, step: Step) -> bool {
        let most = above(max, min) / step.size;
        let low_bits = (1_u64 << step.shift).wrapping_sub(1);
        let (mut low, mut misses) = (0, 0_u64);
        for value in values {
            let distance = above((*value).into(), min);
            low |= distance & low_bits;
            let steps = step.steps_of(distance);
            misses |= u64::from(steps > most);
        }
        low | misses == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_step_is_the_greatest_common_divisor(
            step in prop_oneof![1_u64..2_000, Just(1_000_000), Just(3 << 40), Just(1 << 62)],
            mut numbers in prop::collection::vec(0_u64..3_000, 1..400),
            start: i64,
            stranger: bool,
        ) {
            if stranger {
                numbers.push(1);
            }
            let most = (u64::MAX / step).min(3_000);
            let value = |number: &u64| start.wrapping_add_unsigned(number.min(&most) * step);
            let values: Vec<i64> = numbers.iter().map(value).collect();
            let survey = Survey::of(&values);
            let min = *values.iter().min().unwrap();
            let expected = values.iter().fold(0, |step, value| gcd(step, above(*value, min)));
            prop_assert_eq!(survey.step.size, expected.max(1));
            prop_assert_eq!((survey.min, survey.max), (min, *values.iter().max().unwrap()));
            for value in &values {
                let distance = above(*value, min);
                if distance < 1 << 63 {
                    let steps = survey.step.steps(distance.cast_signed());
                    prop_assert_eq!(steps.cast_unsigned(), distance / survey.step.size);
                }
            }
        }
    }
}
