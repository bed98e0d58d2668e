//! Columns of signed numbers: constant, packed, or differences within runs.

use super::bytes::{Cursor, put_zigzag, zigzag_len};
use super::packed;
use crate::error::Result;

const CONSTANT: u8 = 0;
const PACKED: u8 = 1;
const DELTA: u8 = 2;

/// Appends `values`, which lie in runs of the given lengths, in their shortest form.
///
/// # Panics
///
/// If the lengths do not add up to the number of values.
pub(super) fn encode(values: &[i64], run_lengths: &[u32], out: &mut Vec<u8>) {
    let Some(&first) = values.first() else { return };
    if values.iter().all(|value| *value == first) {
        out.push(CONSTANT);
        put_zigzag(out, first);
        return;
    }
    let whole = packed::plan(values);
    // Runs of one value each have no differences.
    if run_lengths.len() < values.len() {
        let (heads, tails) = split(values, run_lengths);
        let head_plan = packed::plan(&heads);
        // Only where the tails have a chance are they looked at.
        if head_plan.len + zigzag_len(0) < whole.len {
            let tail_plan = packed::plan(&tails);
            if head_plan.len + tail_plan.len < whole.len {
                out.push(DELTA);
                packed::write(&heads, &head_plan, out);
                packed::write(&tails, &tail_plan, out);
                return;
            }
        }
    }
    out.push(PACKED);
    packed::write(values, &whole, out);
}

/// First values of the runs, and differences of all others from the one before.
fn split(values: &[i64], run_lengths: &[u32]) -> (Vec<i64>, Vec<i64>) {
    let mut heads = Vec::with_capacity(run_lengths.len());
    let mut tails = Vec::with_capacity(values.len() - run_lengths.len());
    let mut rest = values;
    for &length in run_lengths {
        let (run, after) = rest.split_at(length as usize);
        heads.push(run[0]);
        tails.extend(run.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])));
        rest = after;
    }
    assert!(rest.is_empty(), "runs cover {} of {} values", values.len() - rest.len(), values.len());
    (heads, tails)
}

/// Reads `count` numbers; `run_lengths` are positive and add up to `count`.
///
/// A constant column has as many numbers as its few bytes claim: the caller bounds `count`.
pub(super) fn decode(
    input: &mut Cursor<'_>,
    count: usize,
    run_lengths: &[u32],
) -> Result<Vec<i64>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    match input.byte()? {
        CONSTANT => Ok(vec![input.zigzag()?; count]),
        PACKED => packed::read(input, count),
        DELTA => {
            let heads = packed::read(input, run_lengths.len())?;
            let tails = packed::read(input, count - run_lengths.len())?;
            Ok(join(&heads, &tails, run_lengths))
        }
        _ => Err(input.corrupt()),
    }
}

/// The inverse of [`split`].
fn join(heads: &[i64], tails: &[i64], run_lengths: &[u32]) -> Vec<i64> {
    let mut values = Vec::with_capacity(heads.len() + tails.len());
    let mut rest = tails;
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

/// Appends numbers that are one run.
///
/// # Panics
///
/// If there are more than `u32::MAX`.
pub(crate) fn encode_run(values: &[i64], out: &mut Vec<u8>) {
    let length = u32::try_from(values.len()).expect("a block has fewer rows");
    encode(values, &[length], out);
}

/// Reads `count` numbers that are one run; see [`decode`] for `count`.
pub(crate) fn decode_long_run(input: &mut Cursor<'_>, count: usize) -> Result<Vec<i64>> {
    let length = u32::try_from(count).map_err(|_| input.corrupt())?;
    decode(input, count, &[length])
}

/// Reads `count` numbers that are one run and each fit a `u32` below `end`.
pub(super) fn decode_run(input: &mut Cursor<'_>, count: usize, end: u32) -> Result<Vec<u32>> {
    let length = u32::try_from(count).map_err(|_| input.corrupt())?;
    let values = decode(input, count, &[length])?;
    let fit = |value: &i64| u32::try_from(*value).ok().filter(|value| *value < end);
    values.iter().map(|value| fit(value).ok_or_else(|| input.corrupt())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(values: &[i64], run_lengths: &[u32]) -> (u8, usize) {
        let mut bytes = Vec::new();
        encode(values, run_lengths, &mut bytes);
        let mut input = Cursor::new(&bytes, "numbers");
        assert_eq!(decode(&mut input, values.len(), run_lengths).unwrap(), values);
        input.end().unwrap();
        (bytes[0], bytes.len())
    }

    #[test]
    fn the_shortest_form_is_taken() {
        assert_eq!(round_trip(&[-7; 500], &[500]), (CONSTANT, 2));
        // Steps of ten seconds cost nothing once the step is known.
        let times: Vec<i64> =
            (0..512).map(|at| 1_700_000_000_000_000_000 + at * 10_000_000_000).collect();
        let (form, len) = round_trip(&times, &[512]);
        assert_eq!(form, DELTA);
        assert!(len < 40, "{len}");
        // Jumps between runs do not widen the steps within them.
        let walks: Vec<i64> = (0..1_000).map(|at| (at / 10) * 7_919 % 36_000 + at % 10).collect();
        let (form, len) = round_trip(&walks, &[10; 100]);
        assert_eq!(form, DELTA);
        assert!(len < 100 * 2 + 30, "{len}");
        assert_eq!(round_trip(&[3, 1, 2], &[1; 3]).0, PACKED);
    }

    #[test]
    fn the_whole_range_comes_back() {
        let extremes = [i64::MIN, i64::MAX, -1, 0, i64::MAX, i64::MIN, 1];
        round_trip(&extremes, &[7]);
        round_trip(&extremes, &[3, 4]);
        round_trip(&extremes, &[1; 7]);
        round_trip(&[i64::MIN, i64::MAX].repeat(200), &[400]);
    }
}
