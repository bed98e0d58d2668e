//! The small fixed records of `plane.mdb`, byte by byte as in `docs/format.md`.

use super::{Counts, NamesPage};
use crate::batch::{FieldId, FieldType, SeriesId};
use crate::error::{Error, Result};

/// Version of the environment's layout.
const FORMAT_VERSION: u32 = 1;
const CORRUPT_HEAD: Error = Error::Corrupt { what: "the store's head record" };
const CORRUPT_CATALOG: Error = Error::Corrupt { what: "a catalog entry" };
const CORRUPT_NAMES: Error = Error::Corrupt { what: "a page of names" };

/// The record every commit rewrites: format version, last log position, counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) log_last: u64,
    pub(super) counts: Counts,
}

impl Head {
    pub(super) fn encode(&self) -> Vec<u8> {
        let counts = &self.counts;
        let numbers = [
            self.log_last,
            counts.rows,
            counts.values,
            counts.rejected,
            counts.batches,
            counts.log_bytes,
        ];
        let mut bytes = FORMAT_VERSION.to_le_bytes().to_vec();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let (version, rest) = bytes.split_first_chunk::<4>().ok_or(CORRUPT_HEAD)?;
        if u32::from_le_bytes(*version) != FORMAT_VERSION {
            return Err(CORRUPT_HEAD);
        }
        let (numbers, []) = rest.as_chunks::<8>() else {
            return Err(CORRUPT_HEAD);
        };
        let [log_last, rows, values, rejected, batches, log_bytes] = numbers else {
            return Err(CORRUPT_HEAD);
        };
        let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        Ok(Self {
            log_last: number(log_last),
            counts: Counts {
                rows: number(rows),
                values: number(values),
                rejected: number(rejected),
                batches: number(batches),
                log_bytes: number(log_bytes),
            },
        })
    }
}

pub(super) fn series_id(bytes: &[u8]) -> Result<SeriesId> {
    Ok(u32::from_le_bytes(bytes.try_into().map_err(|_| CORRUPT_CATALOG)?))
}

pub(super) fn encode_field(id: FieldId, field_type: FieldType) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.push(field_type.code());
    bytes
}

pub(super) fn field(bytes: &[u8]) -> Result<(FieldId, FieldType)> {
    let (id, rest) = bytes.split_first_chunk::<4>().ok_or(CORRUPT_CATALOG)?;
    let &[code] = rest else {
        return Err(CORRUPT_CATALOG);
    };
    Ok((u32::from_le_bytes(*id), FieldType::of_code(code).ok_or(CORRUPT_CATALOG)?))
}

pub(super) fn encode_names(
    series: &[SeriesId],
    fields: &[(FieldId, FieldType)],
    sealed_names: &[u8],
) -> Vec<u8> {
    let count = |length: usize| u32::try_from(length).expect("a batch has fewer than 2^32 names");
    let mut bytes =
        Vec::with_capacity(8 + 4 * series.len() + 5 * fields.len() + sealed_names.len());
    bytes.extend(count(series.len()).to_le_bytes());
    bytes.extend(count(fields.len()).to_le_bytes());
    bytes.extend(series.iter().flat_map(|id| id.to_le_bytes()));
    for (id, field_type) in fields {
        bytes.extend(encode_field(*id, *field_type));
    }
    bytes.extend_from_slice(sealed_names);
    bytes
}

pub(super) fn decode_names(sequence: u64, bytes: &[u8]) -> Result<NamesPage> {
    let (counts, rest) = bytes.split_first_chunk::<8>().ok_or(CORRUPT_NAMES)?;
    let (series_count, field_count) = counts.split_at(4);
    let series_bytes = 4 * to_usize(series_id(series_count)?);
    let (series, rest) = rest.split_at_checked(series_bytes).ok_or(CORRUPT_NAMES)?;
    let field_bytes = 5 * to_usize(series_id(field_count)?);
    let (fields, sealed_names) = rest.split_at_checked(field_bytes).ok_or(CORRUPT_NAMES)?;
    Ok(NamesPage {
        sequence,
        series: series.chunks_exact(4).map(series_id).collect::<Result<_>>()?,
        fields: fields.chunks_exact(5).map(field).collect::<Result<_>>()?,
        sealed_names: sealed_names.to_vec(),
    })
}

fn to_usize(count: u32) -> usize {
    usize::try_from(count).expect("usize has at least 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_reads_back_and_no_truncation_does() {
        let counts = Counts { rows: 1, values: 2, rejected: 3, batches: 4, log_bytes: 5 };
        let head = Head { log_last: u64::MAX, counts };
        assert_eq!(Head::decode(&head.encode()).unwrap(), head);
        let fields = [(7, FieldType::Text), (8, FieldType::Bool)];
        let names = encode_names(&[1, 2, 3], &fields, b"sealed");
        let page = decode_names(9, &names).unwrap();
        assert_eq!((page.series, page.fields), (vec![1, 2, 3], fields.to_vec()));
        assert_eq!((page.sequence, page.sealed_names), (9, b"sealed".to_vec()));
        for length in 0..head.encode().len() {
            assert!(Head::decode(&head.encode()[..length]).is_err());
        }
        for length in 0..names.len() - b"sealed".len() {
            assert!(decode_names(9, &names[..length]).is_err());
        }
    }

    #[test]
    fn a_head_of_another_format_version_is_refused() {
        let mut bytes = Head::default().encode();
        bytes[0] = 2;
        assert!(Head::decode(&bytes).is_err());
    }
}
