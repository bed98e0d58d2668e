//! Differences within runs. The first numbers of the runs are stored separately.

use super::number::SignedNumber;
use crate::codec::simd::kernels;

/// Length from which a run is moved as a whole before it is summed.
const LONG_RUN: u32 = 64;

/// Returns the first number of each run, and the difference of each other number from its
/// predecessor.
///
/// Example: the runs 7, 9, 12 and 5, 6 give the first numbers 7 and 5, and the differences 2, 3 and
/// 1.
///
/// # Panics
///
/// Panics if the lengths do not add up to the number of values.
pub(super) fn split<T: SignedNumber>(values: &[T], run_lengths: &[u32]) -> (Vec<T>, Vec<T>) {
    let mut firsts = Vec::with_capacity(run_lengths.len());
    let mut differences = Vec::with_capacity(values.len() - run_lengths.len());
    let mut rest = values;
    for &length in run_lengths {
        let (run, after) = rest.split_at(length as usize);
        firsts.push(run[0]);
        differences.extend(run[1..].iter().zip(run).map(|(value, before)| value.minus(*before)));
        rest = after;
    }
    assert!(rest.is_empty(), "runs cover {} of {} values", values.len() - rest.len(), values.len());
    (firsts, differences)
}

/// Returns the numbers that [`split`] was given, modulo 2^64.
pub(super) fn join(firsts: &[i64], differences: &[i64], run_lengths: &[u32]) -> Vec<i64> {
    let mut values = Vec::with_capacity(firsts.len() + differences.len());
    let mut rest = differences;
    for (&first, &length) in firsts.iter().zip(run_lengths) {
        let (run, after) = rest.split_at(length as usize - 1);
        rest = after;
        values.push(first);
        let mut value = first;
        values.extend(run.iter().map(|difference| {
            value = value.wrapping_add(*difference);
            value
        }));
    }
    values
}

/// Does the same as [`join`] modulo 2^32, in place. `values` starts with room for the first
/// numbers, followed by the differences.
pub(super) fn join_narrow(firsts: &[i64], mut values: Vec<i32>, run_lengths: &[u32]) -> Vec<i32> {
    let (mut from, mut to) = (firsts.len(), 0);
    for (first, &length) in firsts.iter().zip(run_lengths) {
        #[expect(clippy::cast_possible_truncation, reason = "modulo 2^32")]
        let first = *first as i32;
        let (start, end) = (from, from + length as usize - 1);
        if length < LONG_RUN {
            let mut sum = first;
            values[to] = sum;
            for index in start..end {
                sum = sum.wrapping_add(values[index]);
                to += 1;
                values[to] = sum;
            }
            to += 1;
        } else {
            values.copy_within(start..end, to + 1);
            values[to] = first;
            kernels::prefix_sums(&mut values[to..to + length as usize]);
            to += length as usize;
        }
        from = end;
    }
    values
}
