//! A ring of instants in the file: the last N instants of an event.

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;

/// Bytes of an instant: nanoseconds since the boot, little-endian. 0 means never.
pub(crate) const INSTANT_BYTES: u64 = INSTANT_SIZE as u64;

const INSTANT_SIZE: usize = size_of::<u64>();

/// Instants read at once: enough for the default rate, and for the end of a search in longer rings.
const CHUNK: usize = 32;

/// A ring of `len` instants from `offset` on, 8-byte aligned. Instants are written in rising order,
/// and the newest overwrites the oldest. So all instants before the oldest are at least as new as
/// the first, and no index has to be stored. Example: in 50, 60, 30, 40 the oldest is 30.
pub(crate) struct Ring<'f> {
    file: &'f File,
    offset: u64,
    len: u64,
    /// Instants outside this range count as never: they belong to an earlier owner of the slot, or
    /// are damage.
    valid: RangeInclusive<u64>,
}

/// The ends of a ring.
#[derive(Debug, Default)]
pub(crate) struct RingEnds {
    /// Index of the oldest instant, which the next instant replaces.
    pub(crate) index: u64,
    /// 0 if fewer than `len` instants have been written.
    pub(crate) oldest_ns: u64,
    /// 0 if no instant has been written.
    pub(crate) newest_ns: u64,
}

impl<'f> Ring<'f> {
    pub(crate) fn new(file: &'f File, offset: u64, len: u64, valid: RangeInclusive<u64>) -> Self {
        assert!(offset.is_multiple_of(INSTANT_BYTES), "an instant must not straddle two pages");
        Self { file, offset, len, valid }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Finds the oldest and the newest instant.
    pub(crate) fn cursor(&self) -> io::Result<RingEnds> {
        if self.len == 0 {
            return Ok(RingEnds::default());
        }
        let mut chunk = self.read(0)?;
        let first_ns = chunk[0];
        if first_ns == 0 {
            return Ok(RingEnds::default());
        }
        // Instants before `low` are at least as new as the first. Instants from `high` on are
        // older.
        let (mut low, mut high) = (0, self.len);
        while high - low >= CHUNK as u64 {
            let middle = low.midpoint(high);
            chunk = self.read(middle)?;
            if chunk[0] < first_ns {
                high = middle;
            } else {
                low = middle;
            }
        }
        if self.len >= CHUNK as u64 {
            chunk = self.read(low)?;
        }
        let mut cursor = RingEnds { index: 0, oldest_ns: first_ns, newest_ns: first_ns };
        for (index, &instant_ns) in (low..self.len).zip(&chunk) {
            if instant_ns < first_ns {
                cursor.index = index;
                cursor.oldest_ns = instant_ns;
                break;
            }
            cursor.newest_ns = instant_ns;
        }
        Ok(cursor)
    }

    /// Replaces one instant. The write is 8 bytes of one page, so it happens whole or not at all.
    pub(crate) fn write(&self, index: u64, instant_ns: u64) -> io::Result<()> {
        debug_assert!(index < self.len, "{index} of {}", self.len);
        self.file.write_all_at(&instant_ns.to_le_bytes(), self.offset + index * INSTANT_BYTES)
    }

    /// Reads up to [`CHUNK`] instants from `index` on. Instants beyond the end or outside the valid
    /// range are 0.
    fn read(&self, index: u64) -> io::Result<[u64; CHUNK]> {
        let count = usize::try_from(self.len - index).map_or(CHUNK, |left| left.min(CHUNK));
        let mut bytes = [0; CHUNK * INSTANT_SIZE];
        let wanted = &mut bytes[..count * INSTANT_SIZE];
        self.file.read_exact_at(wanted, self.offset + index * INSTANT_BYTES)?;
        let mut instants = [0; CHUNK];
        for (instant, bytes) in instants.iter_mut().zip(bytes.as_chunks().0) {
            let read = u64::from_le_bytes(*bytes);
            *instant = if self.valid.contains(&read) { read } else { 0 };
        }
        Ok(instants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_of_every_length_give_the_oldest_and_the_newest() {
        let file = tempfile::tempfile().expect("a file");
        for len in [1, 2, 3, 30, 31, 32, 33, 63, 64, 65, 100, 1_000] {
            file.set_len(0).expect("truncated");
            file.set_len(len * INSTANT_BYTES).expect("grown");
            let ring = Ring::new(&file, 0, len, 1..=u64::MAX);
            for written in 0..3 * len {
                let cursor = ring.cursor().expect("read");
                assert_eq!(cursor.index, written % len, "{len} {written}");
                assert_eq!(cursor.newest_ns, written * 10, "{len} {written}");
                let oldest = if written < len { 0 } else { (written - len + 1) * 10 };
                assert_eq!(cursor.oldest_ns, oldest, "{len} {written}");
                ring.write(cursor.index, (written + 1) * 10).expect("written");
            }
        }
    }

    #[test]
    fn instants_of_an_earlier_owner_and_damage_are_never() {
        let file = tempfile::tempfile().expect("a file");
        for bytes in [[0xff; 240], [0x00; 240], [0x05; 240]] {
            file.write_all_at(&bytes, 0).expect("written");
            let ring = Ring::new(&file, 0, 30, 1_000..=2_000);
            assert_eq!(ring.cursor().expect("read").newest_ns, 0);
            for count in 0..100 {
                let cursor = ring.cursor().expect("read");
                assert_eq!(cursor.index, count % 30);
                ring.write(cursor.index, 1_000 + count).expect("written");
            }
        }
    }
}
