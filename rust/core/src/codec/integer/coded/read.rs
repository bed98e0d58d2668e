//! Reading coded residuals.

use super::bits::BitReader;
use super::context::CONTEXTS;
use super::frequencies::Frequencies;
use super::rans::{ContextSlots, TokenReader};
use super::residual::{Differences, ORDERS};
use super::token::{CLASSES, unzigzag};
use crate::codec::bytes::ByteReader;
use crate::model::error::Result;

/// Reads numbers that lie in runs of these lengths.
///
/// A few bytes can claim any number of numbers if only one token occurs, so the caller bounds the
/// lengths.
pub(in super::super) fn read(input: &mut ByteReader<'_>, run_lengths: &[u32]) -> Result<Vec<i64>> {
    let order = usize::from(input.byte()?);
    input.check(order < ORDERS)?;
    let reference = input.zigzag()?.cast_unsigned();
    let step = input.varint()?;
    input.check(step != 0)?;
    let center = input.zigzag()?.cast_unsigned();
    let way = usize::from(input.byte()?);
    let contexts = CONTEXTS.get(way).ok_or_else(|| input.corrupt())?;
    let slots = read_tables(input, contexts.count)?;
    let mut tokens = TokenReader::open(input, slots)?;
    let mut bits = BitReader::open(input)?;
    let (mut before, mut earlier) = (0, 0);
    let mut residual = || {
        let token = tokens.take(contexts.of(before, earlier));
        (before, earlier) = (token, before);
        let class = CLASSES[usize::from(token)];
        unzigzag(class.first.wrapping_add(bits.take(class.bits))).wrapping_add(center)
    };
    let mut numbers = Vec::with_capacity(run_lengths.iter().map(|length| *length as usize).sum());
    let mut differences = Differences::default();
    let number_of = |steps: u64| reference.wrapping_add(steps.wrapping_mul(step)).cast_signed();
    for length in run_lengths {
        numbers.push(number_of(differences.begin_back(residual(), order)));
        let rising = (*length as usize).min(order);
        for order in 1..rising {
            numbers.push(number_of(differences.number(residual(), order)));
        }
        for _ in rising.max(1)..*length as usize {
            let residual = residual();
            // A constant order lets the compiler unroll the loop in `number`.
            numbers.push(number_of(match order {
                0 => residual,
                1 => differences.number(residual, 1),
                2 => differences.number(residual, 2),
                3 => differences.number(residual, 3),
                _ => differences.number(residual, order),
            }));
        }
    }
    input.check(tokens.is_at_end() && bits.is_at_end())?;
    Ok(numbers)
}

/// Reads which contexts occur, and the frequencies of each. Returns their slots.
fn read_tables(input: &mut ByteReader<'_>, count: usize) -> Result<ContextSlots> {
    let mut tables = BitReader::open(input)?;
    let mut slots = ContextSlots::default();
    for context in 0..count {
        if tables.take(1) == 1 {
            let frequencies = Frequencies::read(&mut tables).ok_or_else(|| input.corrupt())?;
            slots.add(context, &frequencies);
        }
    }
    input.check(tables.is_at_end() && !slots.is_empty())?;
    Ok(slots)
}
