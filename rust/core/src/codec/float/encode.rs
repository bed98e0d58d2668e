//! Writing doubles as decimal integers, as ratios or as bits. Repeated values may be stored once.

use super::bounds::FloatBounds;
use super::decimal::{EXCEPTION, Power, scale, scale_all, scale_narrow, unscale};
use super::exponent::choose_exponent;
use super::ratio::Ratios;
use super::repeated::ranked;
use crate::codec::Effort;
use crate::codec::bytes::put_len;
use crate::codec::integer;
use crate::codec::integer::bit_packing::GROUP;
use crate::codec::integer::number::{self, SignedNumber};

/// Form byte: decimal integers.
pub(super) const SCALED: u8 = 0;
/// Form byte: decimal integers, with exceptions.
pub(super) const SCALED_WITH_EXCEPTIONS: u8 = 1;
/// Form byte: the bits of the doubles.
pub(super) const BITS: u8 = 2;
/// Form byte: integers over a divisor, and units in the last place.
pub(super) const RATIOS: u8 = 3;
/// Form byte: the distinct values in another form, and the rank of each value among them.
pub(super) const REPEATED: u8 = 4;

/// Estimated bytes of an exception: 8 for its bits, 2 for its position.
const EXCEPTION_LEN: usize = 10;

/// Appends `values`. Returns their bounds, and the exponent if the values were scaled.
pub(crate) fn encode(
    values: &[f64],
    run_lengths: &[u32],
    effort: Effort,
    out: &mut Vec<u8>,
) -> Option<(FloatBounds, Option<usize>)> {
    if values.is_empty() {
        return None;
    }
    let start = out.len();
    let head = encode_all(values, run_lengths, effort, out);
    if effort == Effort::High
        && let Some((entries, ranks)) = ranked(values)
    {
        let mut bytes = vec![REPEATED];
        put_len(&mut bytes, entries.len());
        encode_all(&entries, &[count_of(&entries)], effort, &mut bytes);
        integer::encode(&ranks, run_lengths, effort, &mut bytes);
        if bytes.len() < out.len() - start {
            out.truncate(start);
            out.append(&mut bytes);
        }
    }
    head
}

fn count_of(values: &[f64]) -> u32 {
    u32::try_from(values.len()).expect("a block has fewer rows")
}

/// Does the same as [`encode`], but stores each value separately.
fn encode_all(
    values: &[f64],
    run_lengths: &[u32],
    effort: Effort,
    out: &mut Vec<u8>,
) -> Option<(FloatBounds, Option<usize>)> {
    let start = out.len();
    if let Some(exponent) = choose_exponent(values)
        && let Some(bounds) = encode_scaled(values, exponent, (run_lengths, effort), out)
    {
        if out.len() - start < values.len() * 8 {
            return Some((bounds, Some(exponent)));
        }
        out.truncate(start);
    }
    out.push(BITS);
    let bits: Vec<i64> = values.iter().map(|value| value.to_bits().cast_signed()).collect();
    integer::encode(&bits, run_lengths, effort, out);
    if let Some(Ratios { divisors, integers, ulps }) = Ratios::of(values, run_lengths) {
        let mut bytes = vec![RATIOS];
        put_len(&mut bytes, divisors.len());
        integer::encode_run(&divisors, effort, &mut bytes);
        integer::encode(&integers, run_lengths, effort, &mut bytes);
        integer::encode(&ulps, run_lengths, effort, &mut bytes);
        if bytes.len() < out.len() - start {
            out.truncate(start);
            out.append(&mut bytes);
        }
    }
    FloatBounds::of(values).map(|bounds| (bounds, None))
}

/// Appends `values` as decimal integers and returns their bounds. Returns `None` if there are too
/// many exceptions.
fn encode_scaled(
    values: &[f64],
    exponent: usize,
    runs: (&[u32], Effort),
    out: &mut Vec<u8>,
) -> Option<FloatBounds> {
    let power = Power::of(exponent);
    let (integers, exceptions) = scale_narrow(values, power);
    if exceptions == 0 {
        let (min, max) = number::range(&integers);
        ScaledValues { exponent, integers, exceptions: Vec::new() }.write(values, runs, out);
        // Values that are exact decimals have the order of their integers.
        let value = |integer: i32| unscale(integer.into(), power.of_ten);
        return Some(FloatBounds { min: value(min), max: value(max) });
    }
    match ScaledValues::of_narrow(values, integers, exceptions, exponent) {
        Some(scaled) => scaled.write(values, runs, out),
        None => ScaledValues::of(values, exponent)?.write(values, runs, out),
    }
    FloatBounds::of(values)
}

/// Number of exceptions that take half of the bytes of all values.
///
/// Example: 1,000 values take 8,000 bytes, so at most 400 of them are exceptions.
const fn exceptions_max(count: usize) -> u64 {
    (count * 8 / EXCEPTION_LEN / 2) as u64
}

/// Values as decimal integers.
struct ScaledValues<T> {
    exponent: usize,
    integers: Vec<T>,
    /// Ascending positions of the values that are no decimals of this exponent.
    exceptions: Vec<i64>,
}

impl ScaledValues<i32> {
    /// Takes the `integers` that [`scale_narrow`] made of `values`. Returns `None` if a value needs
    /// a larger integer or if there are too many exceptions.
    fn of_narrow(
        values: &[f64],
        mut integers: Vec<i32>,
        exception_count: u64,
        exponent: usize,
    ) -> Option<Self> {
        if exception_count > exceptions_max(values.len()) {
            return None;
        }
        // A stand-in for an exception costs no bits if it repeats the value before it. The first
        // exceptions take the first value that is no exception.
        let mut stand_in = integers.iter().copied().find(|integer| *integer != EXCEPTION)?;
        let mut exceptions = Vec::new();
        for (group, first) in integers.chunks_mut(GROUP).zip((0..).step_by(GROUP)) {
            if group.contains(&EXCEPTION) {
                for (integer, index) in group.iter_mut().zip(first..) {
                    if *integer == EXCEPTION {
                        if scale(values[index], exponent).1 {
                            return None;
                        }
                        *integer = stand_in;
                        exceptions.push(i64::try_from(index).expect("a block has fewer rows"));
                    }
                    stand_in = *integer;
                }
            }
            stand_in = group.last().copied().unwrap_or(stand_in);
        }
        Some(Self { exponent, integers, exceptions })
    }
}

impl ScaledValues<i64> {
    /// Scales the values to decimal integers. Returns `None` if there are too many exceptions.
    fn of(values: &[f64], exponent: usize) -> Option<Self> {
        let mut integers = vec![0; values.len()];
        let exception_count = scale_all(values, Power::of(exponent), &mut integers);
        if exception_count > exceptions_max(values.len()) {
            return None;
        }
        let mut exceptions = Vec::new();
        if exception_count > 0 {
            let is_exact = |index: &usize| scale(values[*index], exponent).1;
            // A stand-in for an exception costs no bits if it repeats the value before it. The
            // first exceptions take the first value that is no exception.
            let mut stand_in = (0..values.len()).find(is_exact).map_or(0, |index| integers[index]);
            for (index, position) in (0..values.len()).zip(0..) {
                if is_exact(&index) {
                    stand_in = integers[index];
                } else {
                    exceptions.push(position);
                    integers[index] = stand_in;
                }
            }
        }
        Some(Self { exponent, integers, exceptions })
    }
}

impl<T: SignedNumber> ScaledValues<T> {
    fn write(&self, values: &[f64], (run_lengths, effort): (&[u32], Effort), out: &mut Vec<u8>) {
        out.push(if self.exceptions.is_empty() { SCALED } else { SCALED_WITH_EXCEPTIONS });
        out.push(self.exponent.to_le_bytes()[0]);
        if !self.exceptions.is_empty() {
            put_len(out, self.exceptions.len());
            integer::encode_run(&self.exceptions, effort, out);
            for &position in &self.exceptions {
                let index = usize::try_from(position).expect("positions are indices");
                out.extend_from_slice(&values[index].to_le_bytes());
            }
        }
        integer::encode(&self.integers, run_lengths, effort, out);
    }
}
