//! Columns of booleans: a bit for each value, unless all values are equal.

use crate::codec::bytes::ByteReader;
use crate::model::error::Result;

const ALL_FALSE: u8 = 0;
const ALL_TRUE: u8 = 1;
const BITS: u8 = 2;

pub(super) fn encode(values: &[bool], out: &mut Vec<u8>) {
    let Some(&first) = values.first() else { return };
    if values.iter().all(|value| *value == first) {
        out.push(if first { ALL_TRUE } else { ALL_FALSE });
        return;
    }
    out.push(BITS);
    out.extend(
        values.chunks(8).map(|eight| {
            eight.iter().rev().fold(0_u8, |byte, value| (byte << 1) | u8::from(*value))
        }),
    );
}

pub(super) fn decode(input: &mut ByteReader<'_>, count: usize) -> Result<Vec<bool>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    match input.byte()? {
        ALL_FALSE => Ok(vec![false; count]),
        ALL_TRUE => Ok(vec![true; count]),
        BITS => {
            let bytes = input.take(count.div_ceil(8))?;
            let mut values = Vec::with_capacity(bytes.len() * 8);
            for &byte in bytes {
                values
                    .extend_from_slice(&[0, 1, 2, 3, 4, 5, 6, 7].map(|bit| (byte >> bit) & 1 == 1));
            }
            input.check(!values[count..].contains(&true))?;
            values.truncate(count);
            Ok(values)
        }
        _ => Err(input.corrupt()),
    }
}
