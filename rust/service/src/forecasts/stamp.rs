//! The stamp of a record: the instant of its writing, by a clock that cannot be set.

/// The id of a run of the machine.
type BootId = [u8; 16];

const BOOT_BYTES: usize = size_of::<BootId>();
const STAMP_BYTES: usize = BOOT_BYTES + size_of::<i64>();

/// An instant in a run of the machine. A stamped record begins with the id of the run and, big
/// endian, with the nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordStamp {
    /// The id of the run.
    pub boot: BootId,
    /// Nanoseconds since the start of the run.
    pub elapsed_ns: i64,
}

impl RecordStamp {
    /// The age of a record of another run: greater than any limit.
    pub const ENDLESS_NS: i64 = i64::MAX;

    /// Stamps `content` with this instant.
    #[must_use]
    #[expect(clippy::big_endian_bytes, reason = "the format of the records")]
    pub fn stamped(&self, content: &[u8]) -> Vec<u8> {
        [&self.boot, &self.elapsed_ns.to_be_bytes()[..], content].concat()
    }

    /// Returns the age of a record at this instant.
    #[must_use]
    #[expect(clippy::big_endian_bytes, reason = "the format of the records")]
    pub fn age_ns(&self, record: &[u8]) -> i64 {
        let stamp = record.split_first_chunk::<BOOT_BYTES>();
        let written = stamp.filter(|(boot, _)| **boot == self.boot);
        let written_ns = written.and_then(|(_, rest)| rest.first_chunk().copied());
        written_ns.map_or(Self::ENDLESS_NS, |written_ns| {
            self.elapsed_ns.saturating_sub(i64::from_be_bytes(written_ns))
        })
    }

    /// Returns the content of a stamped record.
    #[must_use]
    pub fn content(record: &[u8]) -> &[u8] {
        record.get(STAMP_BYTES..).unwrap_or_default()
    }
}
