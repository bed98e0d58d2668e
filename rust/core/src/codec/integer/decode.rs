//! Reading a column in any form.

use super::based::{self, Base};
use super::coded;
use super::delta;
use super::form::{
    BASED, CODED, CONSTANT, DELTA, DELTA_PATCHED, FRAME_OF_REFERENCE, LINEAR, LINEAR_RUNS, PATCHED,
};
use super::frame_of_reference;
use super::linear_prediction::{self, Slope};
use super::number::SignedNumbers;
use super::patched_frame_of_reference::PatchedReader;
use crate::codec::bytes::ByteReader;
use crate::model::error::Result;

/// Reads `count` numbers. The `run_lengths` are positive and add up to `count`.
///
/// The few bytes of a constant column can claim any number of numbers, so the caller bounds
/// `count`.
pub(crate) fn decode(
    input: &mut ByteReader<'_>,
    count: usize,
    run_lengths: &[u32],
) -> Result<SignedNumbers> {
    if count == 0 {
        return Ok(SignedNumbers::Narrow(Vec::new()));
    }
    let form = input.byte()?;
    if form != BASED {
        return decode_all(form, input, count, run_lengths);
    }
    let size = input.varint()?;
    let shift = u32::try_from(input.len(63)?).map_err(|_| input.corrupt())?;
    let base = Base { size, shift };
    let mut part = || {
        let form = input.byte()?;
        Ok(decode_all(form, input, count, run_lengths)?.widen())
    };
    let (quotients, remainders) = (part()?, part()?);
    Ok(SignedNumbers::Wide(based::join(base, &quotients, &remainders)))
}

/// Reads at least one number in a form that stores each number separately.
fn decode_all(
    form: u8,
    input: &mut ByteReader<'_>,
    count: usize,
    run_lengths: &[u32],
) -> Result<SignedNumbers> {
    match form {
        CONSTANT => {
            let number = input.zigzag()?;
            Ok(i32::try_from(number).map_or_else(
                |_| SignedNumbers::Wide(vec![number; count]),
                |number| SignedNumbers::Narrow(vec![number; count]),
            ))
        }
        FRAME_OF_REFERENCE => frame_of_reference::read(input, count).map(SignedNumbers::Wide),
        PATCHED => Ok(PatchedReader::open(input, count)?.numbers()),
        form @ (DELTA | DELTA_PATCHED) => {
            let firsts = frame_of_reference::read(input, run_lengths.len())?;
            let difference_count = count - run_lengths.len();
            if form == DELTA_PATCHED {
                let differences = PatchedReader::open(input, difference_count)?;
                return Ok(differences.joined(&firsts, run_lengths));
            }
            let differences = frame_of_reference::read(input, difference_count)?;
            Ok(SignedNumbers::Wide(delta::join(&firsts, &differences, run_lengths)))
        }
        LINEAR => {
            let length = u32::try_from(count).map_err(|_| input.corrupt())?;
            decode_linear(input, &[length])
        }
        LINEAR_RUNS => decode_linear(input, run_lengths),
        CODED => coded::read(input, run_lengths).map(SignedNumbers::Wide),
        _ => Err(input.corrupt()),
    }
}

/// Reads numbers above lines. Each run has its own line.
fn decode_linear(input: &mut ByteReader<'_>, run_lengths: &[u32]) -> Result<SignedNumbers> {
    let step = input.varint()?;
    let whole = input.varint()?;
    let fraction = u32::try_from(input.varint()?).map_err(|_| input.corrupt())?;
    let slope = Slope { whole, fraction };
    let intercepts = frame_of_reference::read(input, run_lengths.len())?;
    let count = run_lengths.iter().map(|length| *length as usize).sum();
    let residuals = PatchedReader::open(input, count)?.numbers();
    let numbers = linear_prediction::numbers(&residuals, &intercepts, run_lengths, step, slope);
    Ok(SignedNumbers::Wide(numbers))
}

/// Reads `count` numbers that are one run. The caller bounds `count`, as for [`decode`].
pub(crate) fn decode_long_run(input: &mut ByteReader<'_>, count: usize) -> Result<Vec<i64>> {
    let length = u32::try_from(count).map_err(|_| input.corrupt())?;
    Ok(decode(input, count, &[length])?.widen())
}

/// Reads `count` numbers that are one run. Each number is a `u32` below `end`.
pub(crate) fn decode_run(input: &mut ByteReader<'_>, count: usize, end: u32) -> Result<Vec<u32>> {
    let length = u32::try_from(count).map_err(|_| input.corrupt())?;
    decode(input, count, &[length])?.below(end).ok_or_else(|| input.corrupt())
}
