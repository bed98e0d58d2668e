//! Profile of a column: ranges and common divisor. Every integer encoding uses the profile to
//! choose.

use super::bit_packing::GROUP;
use super::number::SignedNumber;
use super::step::Divisor;
use crate::codec::simd::multiversioned;

/// Number of sampled numbers that give a first guess of the step.
const SAMPLE: usize = 64;

/// Ranges of groups of numbers, and the common divisor of the distances between them.
pub(super) struct Profile {
    /// Smallest and largest number of each [`GROUP`].
    pub(super) ranges: Vec<(i64, i64)>,
    /// Smallest number of all.
    pub(super) min: i64,
    /// Largest number of all.
    pub(super) max: i64,
    pub(super) step: Divisor,
}

impl Profile {
    /// Computes the profile of `values`.
    ///
    /// # Panics
    ///
    /// Panics if `values` is empty.
    pub(super) fn of<T: SignedNumber>(values: &[T]) -> Self {
        assert!(!values.is_empty(), "nothing to pack");
        let mut ranges = vec![(0, 0); values.len().div_ceil(GROUP)];
        ranges_of(values, &mut ranges);
        let all = |(min, max): (i64, i64), range: &(i64, i64)| (min.min(range.0), max.max(range.1));
        let (min, max) = ranges.iter().fold((i64::MAX, i64::MIN), all);
        Self { ranges, min, max, step: common_step(values, min, max) }
    }
}

multiversioned! {
    fn ranges_of[T: SignedNumber](values: &[T], ranges: &mut [(i64, i64)]) {
        for (range, group) in ranges.iter_mut().zip(values.chunks(GROUP)) {
            let (mut min, mut max) = (group[0], group[0]);
            for value in group {
                min = min.min(*value);
                max = max.max(*value);
            }
            *range = (min.into(), max.into());
        }
    }
}

/// Distance of a number from a smaller or equal number. The distance always fits 64 bits.
pub(super) const fn distance(value: i64, min: i64) -> u64 {
    value.wrapping_sub(min).cast_unsigned()
}

/// Greatest common divisor of all distances from `min`, at least 1.
///
/// Example: the distances 20, 30 and 50 have the step 10.
fn common_step<T: SignedNumber>(values: &[T], min: i64, max: i64) -> Divisor {
    let stride = values.len().div_ceil(SAMPLE);
    let guess = gcd_of(values.iter().step_by(stride), min);
    if guess == 1 || (guess > 1 && divides_all(values, min, max, Divisor::new(guess))) {
        return Divisor::new(guess);
    }
    Divisor::new(gcd_of(values.iter(), min).max(1))
}

fn gcd_of<'a, T: SignedNumber + 'a>(values: impl Iterator<Item = &'a T>, min: i64) -> u64 {
    let mut step = 0;
    for value in values {
        let distance = distance((*value).into(), min);
        if distance != 0 && !distance.is_multiple_of(step) {
            step = gcd(step, distance);
            if step == 1 {
                break;
            }
        }
    }
    step
}

pub(super) const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

multiversioned! {
    /// Returns true if the step divides all distances from `min`. If the step does not divide a
    /// distance, the exact division gives a number larger than any quotient.
    fn divides_all[T: SignedNumber](values: &[T], min: i64, max: i64, step: Divisor) -> bool {
        let steps_max = distance(max, min) / step.size;
        let low_bits = (1_u64 << step.shift).wrapping_sub(1);
        let (mut remainders, mut misses) = (0, 0_u64);
        for value in values {
            let distance = distance((*value).into(), min);
            remainders |= distance & low_bits;
            misses |= u64::from(step.steps_of(distance) > steps_max);
        }
        remainders | misses == 0
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
            has_one_between: bool,
        ) {
            if has_one_between {
                numbers.push(1);
            }
            let steps_max = (u64::MAX / step).min(3_000);
            let value = |number: &u64| start.wrapping_add_unsigned(number.min(&steps_max) * step);
            let values: Vec<i64> = numbers.iter().map(value).collect();
            let profile = Profile::of(&values);
            let min = *values.iter().min().unwrap();
            let expected = values.iter().fold(0, |step, value| gcd(step, distance(*value, min)));
            prop_assert_eq!(profile.step.size, expected.max(1));
            prop_assert_eq!((profile.min, profile.max), (min, *values.iter().max().unwrap()));
            for value in &values {
                let distance = distance(*value, min);
                if distance < 1 << 63 {
                    let steps = profile.step.signed_steps(distance.cast_signed());
                    prop_assert_eq!(steps.cast_unsigned(), distance / profile.step.size);
                }
            }
        }
    }
}
