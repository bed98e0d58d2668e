//! Reading coded residuals.

use super::bits::BitReader;
use super::context::CONTEXTS;
use super::frequencies::Frequencies;
use super::rans::{self, TokenTables};
use super::residual::{ORDERS, add_up};
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
    let reference = input.zigzag()?;
    let step = input.varint()?.cast_signed();
    input.check(step != 0)?;
    let center = input.zigzag()?.cast_unsigned();
    let way = usize::from(input.byte()?);
    let contexts = CONTEXTS.get(way).ok_or_else(|| input.corrupt())?;
    let tables = read_tables(input, contexts.count)?;
    let count = run_lengths.iter().map(|length| *length as usize).sum();
    let tokens = rans::unpack(input, &tables, contexts, count)?;
    let mut bits = BitReader::open(input)?;
    let residual_of = |token: &u8| {
        let class = CLASSES[usize::from(*token)];
        let residual = unzigzag(class.first.wrapping_add(bits.take(class.bits)));
        residual.wrapping_add(center).cast_signed()
    };
    let mut numbers: Vec<i64> = tokens.iter().map(residual_of).collect();
    input.check(bits.is_at_end())?;
    add_up(&mut numbers, run_lengths, order);
    for number in &mut numbers {
        *number = reference.wrapping_add(number.wrapping_mul(step));
    }
    Ok(numbers)
}

/// Reads which of `count` contexts occur, and the frequencies of each.
fn read_tables(input: &mut ByteReader<'_>, count: usize) -> Result<TokenTables> {
    let mut bits = BitReader::open(input)?;
    let mut tables = TokenTables::new(count);
    for context in 0..count {
        if bits.take(1) == 1 {
            let frequencies = Frequencies::read(&mut bits).ok_or_else(|| input.corrupt())?;
            tables.add(context, &frequencies);
        }
    }
    input.check(bits.is_at_end())?;
    Ok(tables)
}
