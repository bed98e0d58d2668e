//! Reading coded residuals.

use super::bits::BitReader;
use super::context::CONTEXTS;
use super::frequencies::Frequencies;
use super::rans::{self, TokenTables};
use super::residual::{ORDERS, add_up};
use super::token::{CLASSES, unzigzag};
use crate::codec::bytes::ByteReader;
use crate::codec::simd::{mapped, multiversioned};
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
    let bits = BitReader::open(input)?;
    let mut numbers = residuals_of(&tokens, bits, center).ok_or_else(|| input.corrupt())?;
    let finished = |number: i64| reference.wrapping_add(number.wrapping_mul(step));
    add_up(&mut numbers, run_lengths, order, finished);
    Ok(numbers)
}

multiversioned! {
    /// Returns the residuals of the tokens, or `None` if they do not take all `bits`.
    fn residuals_of(tokens: &[u8], bits: BitReader, center: u64) -> Option<Vec<i64>> {
        // A local reader, whose position stays in a register.
        let mut bits = bits;
        let residuals = mapped(tokens, |token| {
            let class = CLASSES[usize::from(token)];
            let residual = unzigzag(class.first.wrapping_add(bits.take(class.bits)));
            residual.wrapping_add(center).cast_signed()
        });
        bits.is_at_end().then_some(residuals)
    }
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
