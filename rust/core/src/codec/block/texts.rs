//! Columns of strings: a dictionary in order of first use, and for each value an index into it.

use hashbrown::HashMap;

use crate::codec::Effort;
use crate::codec::bytes::{ByteReader, put_len};
use crate::codec::integer;
use crate::model::error::Result;

pub(super) fn encode(values: &[Box<str>], run_lengths: &[u32], effort: Effort, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let mut indices: HashMap<&str, i64, foldhash::fast::RandomState> = HashMap::default();
    let mut lengths = Vec::new();
    let mut strings = Vec::new();
    let mut values_as_indices = Vec::with_capacity(values.len());
    for value in values {
        let next = i64::try_from(lengths.len()).expect("a block has fewer rows");
        values_as_indices.push(*indices.entry(value).or_insert_with(|| {
            lengths.push(i64::try_from(value.len()).expect("no string is that long"));
            strings.extend_from_slice(value.as_bytes());
            next
        }));
    }
    put_len(out, lengths.len());
    integer::encode_run(&lengths, effort, out);
    out.extend_from_slice(&strings);
    integer::encode(&values_as_indices, run_lengths, effort, out);
}

/// Reads `count` strings of at most `bytes_left` bytes in total, and subtracts their bytes from
/// `bytes_left`.
pub(super) fn decode(
    input: &mut ByteReader<'_>,
    count: usize,
    run_lengths: &[u32],
    bytes_left: &mut usize,
) -> Result<Vec<Box<str>>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let distinct_count = input.len(count)?;
    let lengths = integer::decode_run(input, distinct_count, u32::MAX)?;
    let mut strings = Vec::with_capacity(distinct_count);
    for &length in &lengths {
        let bytes = input.take(length as usize)?;
        strings.push(std::str::from_utf8(bytes).map_err(|_| input.corrupt())?);
    }
    let indices = integer::decode(input, count, run_lengths)?.widen();
    let string_at = |index: i64| strings.get(usize::try_from(index).ok()?).copied();
    let mut values = Vec::with_capacity(count);
    for index in indices {
        let string = string_at(index).ok_or_else(|| input.corrupt())?;
        *bytes_left = bytes_left.checked_sub(string.len()).ok_or_else(|| input.corrupt())?;
        values.push(Box::from(string));
    }
    Ok(values)
}
