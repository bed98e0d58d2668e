//! Encoding of the small records of `plane.mdb` (`docs/format.md`).
//!
//! Each record ends in a checksum of its key and the record. Blocks and names are sealed and need
//! no checksum.

use crate::model::batch::FieldType;
use crate::model::error::{Error, Result};
use crate::model::names::FieldId;
use crate::storage::store::cursor::Cursors;
use crate::storage::store::entries::StoreCounts;
use crate::storage::store::log::CompactedLog;
use crate::storage::store::names::{FirstIds, NamesPage};

/// Version of the environment's layout.
const FORMAT_VERSION: u32 = 3;
/// Version that had blocks in a table. 0.3.0 kept blocks in the table until they were compacted.
const VERSION_WITH_BLOCKS: u32 = 2;
const CORRUPT_HEAD: Error = Error::Corrupt { what: "the store's head record" };
const CORRUPT_NAMES: Error = Error::Corrupt { what: "a page of names" };

/// Key of [`HeadRecord`].
pub(super) const HEAD: &[u8] = b"head";
/// Key of the cursors of imports.
pub(super) const CURSORS: &[u8] = b"cursors";
/// Key of the sealed manifest.
pub(super) const MANIFEST: &[u8] = b"manifest";

const CHECKSUM_BYTES: usize = 4;

/// Appends the checksum that ties `record` to `key`.
fn checked(key: &[u8], mut record: Vec<u8>) -> Vec<u8> {
    let sum = checksum(key, &record);
    record.extend(sum);
    record
}

/// Encodes the manifest for the table.
pub(super) fn encode_manifest(sealed: &[u8]) -> Vec<u8> {
    checked(MANIFEST, sealed.to_vec())
}

/// Returns the sealed manifest that [`encode_manifest`] encoded.
pub(super) fn decode_manifest(bytes: &[u8]) -> Result<Vec<u8>> {
    let sealed = verified(MANIFEST, bytes);
    Ok(sealed.ok_or(Error::Corrupt { what: "the manifest" })?.to_vec())
}

/// Encodes the cursors for the table.
pub(super) fn encode_cursors(cursors: &Cursors) -> Vec<u8> {
    checked(CURSORS, cursors.encode())
}

/// Returns the cursors that [`encode_cursors`] encoded.
pub(super) fn decode_cursors(bytes: &[u8]) -> Result<Cursors> {
    let record = verified(CURSORS, bytes);
    Cursors::decode(record.ok_or(Error::Corrupt { what: "the cursors" })?)
}

/// Returns the record that [`checked`] made for `key`, or `None` if the checksum differs.
fn verified<'a>(key: &[u8], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (record, sum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
    (checksum(key, record) == *sum).then_some(record)
}

fn checksum(key: &[u8], record: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    hasher.update(record);
    hasher.finalize().to_le_bytes()
}

/// The record that every commit on the tables rewrites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeadRecord {
    /// Blocks up to this sequence are in the manifest's segments.
    pub(super) compacted: u64,
    /// Bytes that these blocks had in the log.
    pub(super) compacted_bytes: u64,
    /// Cursors of frames before this position of the log are in the record of cursors.
    pub(super) cursors_at: u64,
    pub(super) generation: u64,
    pub(super) retention_seconds: u64,
    /// Id of the log. `None` until the store is complete.
    pub(super) log: Option<u64>,
    /// Ids of the next names.
    pub(super) next_ids: FirstIds,
}

impl HeadRecord {
    /// Returns the parts that the log need not keep.
    pub(super) const fn taken(&self) -> CompactedLog {
        CompactedLog { compacted: self.compacted, cursors: self.cursors_at }
    }

    /// Corrects `counts` of the log, which count the bytes of all blocks ever appended. The result
    /// counts the bytes of blocks that are not compacted.
    pub(super) fn counts_of(&self, counts: StoreCounts) -> StoreCounts {
        StoreCounts { log_bytes: counts.log_bytes.saturating_sub(self.compacted_bytes), ..counts }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        // 0.3.0 kept counts of blocks of version 2 in the first two numbers.
        let numbers = [
            0,
            0,
            self.compacted,
            self.compacted_bytes,
            self.cursors_at,
            self.generation,
            self.retention_seconds,
            self.log.unwrap_or(0),
        ];
        let mut bytes = FORMAT_VERSION.to_le_bytes().to_vec();
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let next = [self.next_ids.series, self.next_ids.field];
        bytes.extend(next.iter().flat_map(|id| id.to_le_bytes()));
        checked(HEAD, bytes)
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let bytes = verified(HEAD, bytes).ok_or(CORRUPT_HEAD)?;
        let (version, rest) = bytes.split_first_chunk::<4>().ok_or(CORRUPT_HEAD)?;
        match u32::from_le_bytes(*version) {
            FORMAT_VERSION => {}
            version @ 1..=VERSION_WITH_BLOCKS => return Err(Error::too_old("the store", version)),
            _ => return Err(CORRUPT_HEAD),
        }
        let (rest, field) = rest.split_last_chunk().ok_or(CORRUPT_HEAD)?;
        let (rest, series) = rest.split_last_chunk().ok_or(CORRUPT_HEAD)?;
        let next_ids =
            FirstIds { series: u32::from_le_bytes(*series), field: u32::from_le_bytes(*field) };
        let (numbers, []) = rest.as_chunks::<8>() else { return Err(CORRUPT_HEAD) };
        let numbers: Vec<u64> = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let &[table_last, _, compacted, compacted_bytes, ref rest @ ..] = &*numbers else {
            return Err(CORRUPT_HEAD);
        };
        let &[cursors_at, generation, retention_seconds, log] = rest else {
            return Err(CORRUPT_HEAD);
        };
        if table_last > compacted {
            return Err(Error::too_old("a block of the store", VERSION_WITH_BLOCKS));
        }
        let log = Some(log);
        Ok(Self {
            compacted,
            compacted_bytes,
            cursors_at,
            generation,
            retention_seconds,
            log,
            next_ids,
        })
    }
}

/// Encodes a page of names for the table and for a backup.
///
/// # Panics
/// If the page has more than 2^32 names, which no tenant has.
#[must_use]
pub fn encode_names(page: &NamesPage) -> Vec<u8> {
    let ids = page.ids();
    // With room for the checksum, a long page is copied once.
    let mut bytes = Vec::with_capacity(ids.len() + page.sealed_names.len() + CHECKSUM_BYTES);
    bytes.extend_from_slice(&ids);
    bytes.extend_from_slice(&page.sealed_names);
    checked(&names_key(page.sequence), bytes)
}

/// Returns the key of a page of names.
#[expect(clippy::big_endian_bytes, reason = "LMDB sorts keys by their bytes")]
fn names_key(sequence: u64) -> [u8; 8] {
    sequence.to_be_bytes()
}

/// Decodes a page that [`encode_names`] encoded.
///
/// # Errors
/// Returns [`Error::Corrupt`] if the bytes are damaged.
pub fn decode_names(sequence: u64, bytes: &[u8]) -> Result<NamesPage> {
    let page = verified(&names_key(sequence), bytes).and_then(|bytes| parse_names(sequence, bytes));
    page.ok_or(CORRUPT_NAMES)
}

fn parse_names(sequence: u64, bytes: &[u8]) -> Option<NamesPage> {
    let (counts, rest) = bytes.split_first_chunk::<8>()?;
    let (series_count, field_count) = counts.split_at(4);
    let (series, rest) = rest.split_at_checked(4 * to_usize(number(series_count)?))?;
    let (fields, sealed_names) = rest.split_at_checked(5 * to_usize(number(field_count)?))?;
    Some(NamesPage {
        sequence,
        series: series.chunks_exact(4).map(number).collect::<Option<_>>()?,
        fields: fields.chunks_exact(5).map(of_typed).collect::<Option<_>>()?,
        sealed_names: sealed_names.to_vec(),
    })
}

/// Returns a field's id and type from the id and the code of the type.
fn of_typed(bytes: &[u8]) -> Option<(FieldId, FieldType)> {
    let (&code, id) = bytes.split_last()?;
    Some((number(id)?, FieldType::of_code(code)?))
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn to_usize(count: u32) -> usize {
    usize::try_from(count).expect("usize has at least 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::store::names::NewNames;

    /// Returns all prefixes of `bytes`, and `bytes` with each bit flipped.
    fn damaged(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let shorter = (0..bytes.len()).map(|length| bytes[..length].to_vec());
        let flipped = (0..8 * bytes.len()).map(|bit| {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            flipped
        });
        shorter.chain(flipped)
    }

    #[test]
    fn every_record_reads_back_and_no_damaged_one_does() {
        let head = HeadRecord {
            compacted: 7,
            compacted_bytes: 3,
            cursors_at: 4,
            generation: 8,
            retention_seconds: 9,
            next_ids: FirstIds { series: 10, field: 11 },
            log: Some(12),
        };
        assert_eq!(HeadRecord::decode(&head.encode()).unwrap(), head);
        assert!(damaged(&head.encode()).all(|bytes| HeadRecord::decode(&bytes).is_err()));

        let names = NewNames {
            series: 3,
            fields: vec![FieldType::Text, FieldType::Bool],
            sealed_names: b"sealed".to_vec(),
        };
        let first = FirstIds { series: 1, field: 7 };
        let page = NamesPage::new(9, first, &names);
        let bytes = encode_names(&page);
        assert_eq!(decode_names(9, &bytes).unwrap(), page);
        assert!(damaged(&bytes).all(|bytes| decode_names(9, &bytes).is_err()));
    }

    #[test]
    fn a_record_under_another_key_is_refused() {
        let page = NamesPage::new(9, FirstIds::default(), &NewNames::default());
        let page = encode_names(&page);
        assert!(decode_names(9, &page).is_ok() && decode_names(8, &page).is_err());
    }

    #[test]
    fn the_records_are_those_of_the_format_text() {
        let head = HeadRecord {
            compacted: 3,
            compacted_bytes: 4,
            cursors_at: 5,
            generation: 6,
            retention_seconds: 7,
            log: Some(8),
            next_ids: FirstIds { series: 9, field: 10 },
        };
        let head = head.encode();
        let words = [0, 0, 3, 4, 5, 6, 7, 8_u64].into_iter().flat_map(u64::to_le_bytes);
        let body: Vec<u8> = [3, 0, 0, 0].into_iter().chain(words).collect();
        let body = [body.as_slice(), &[9, 0, 0, 0, 10, 0, 0, 0]].concat();
        let sum = crc32fast::hash(&[b"head".as_slice(), &body].concat());
        assert_eq!(head, [body, sum.to_le_bytes().to_vec()].concat());

        let fields = vec![FieldType::Text];
        let names = NewNames { series: 1, fields, sealed_names: b"sealed".to_vec() };
        let page = NamesPage::new(0x0102, FirstIds { series: 3, field: 4 }, &names);
        let page = encode_names(&page);
        let body = [&[1, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 2], b"sealed".as_slice()];
        let body = body.concat();
        let sum = crc32fast::hash(&[&[0, 0, 0, 0, 0, 0, 1, 2], body.as_slice()].concat());
        assert_eq!(page, [body, sum.to_le_bytes().to_vec()].concat());
    }

    /// Decodes a head in which the version and the sequence are these.
    fn head_with(version: u8, table_last: u8) -> Result<HeadRecord> {
        let head = HeadRecord { compacted: 5, ..HeadRecord::default() };
        let mut bytes = head.encode();
        bytes.truncate(bytes.len() - 4);
        (bytes[0], bytes[4]) = (version, table_last);
        HeadRecord::decode(&checked(HEAD, bytes))
    }

    #[test]
    fn older_versions_are_refused_by_their_number() {
        for version in [1, 2] {
            let error = head_with(version, 0).unwrap_err().to_string();
            assert!(error.contains(&format!("the store has version {version}")), "{error}");
        }
        let head = head_with(3, 0).unwrap();
        assert_eq!(head_with(3, 5).unwrap(), head, "0.3.0 has compacted all blocks of version 2");
        let error = head_with(3, 6).unwrap_err().to_string();
        assert!(error.contains("a block of the store has version 2"), "{error}");
        assert!(matches!(head_with(4, 0), Err(Error::Corrupt { .. })));
    }
}
