//! Bits of rows.

/// Count of the rows in one word.
const WORD_ROWS: usize = 64;

/// One bit for each row. The bit of the first row is the least significant.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// Count of the bits before the bit of the first row.
    start: usize,
    rows: usize,
}

impl<'a> Bits<'a> {
    /// Returns the bits of `rows` rows that follow `start` other bits.
    ///
    /// # Panics
    /// Panics if `bytes` has fewer bits.
    pub(super) fn new(bytes: &'a [u8], start: usize, rows: usize) -> Self {
        assert!((start + rows).div_ceil(8) <= bytes.len(), "a bit for each row");
        Self { bytes, start, rows }
    }

    #[inline]
    pub(super) fn is_set(&self, row: usize) -> bool {
        let at = self.start + row;
        self.bytes[at / 8] >> (at % 8) & 1 == 1
    }

    pub(super) fn count(&self) -> usize {
        self.words().map(|word| word.count_ones() as usize).sum()
    }

    /// Rows whose bit is set, ascending.
    pub(super) fn set_rows(&self) -> Vec<u32> {
        let mut rows = Vec::with_capacity(self.count());
        for (first, mut word) in (0..).step_by(WORD_ROWS).zip(self.words()) {
            if word == u64::MAX {
                rows.extend(first..first + u64::BITS);
                continue;
            }
            while word != 0 {
                rows.push(first + word.trailing_zeros());
                word &= word - 1;
            }
        }
        rows
    }

    /// Returns the bit of each row as a boolean.
    pub(super) fn to_bools(self) -> Vec<bool> {
        let mut bools = Vec::with_capacity(self.rows.next_multiple_of(WORD_ROWS));
        for word in self.words() {
            bools.extend((0..u64::BITS).map(|at| word >> at & 1 == 1));
        }
        bools.truncate(self.rows);
        bools
    }

    /// Returns the bits of 64 rows at a time. Bits after the last row are clear.
    fn words(&self) -> impl Iterator<Item = u64> + use<'a> {
        let Self { bytes, start, rows } = *self;
        let shift = start % 8;
        (0..rows).step_by(WORD_ROWS).map(move |row| {
            let bytes = &bytes[(start + row) / 8..];
            let low = bytes.first_chunk().copied().unwrap_or_else(|| {
                std::array::from_fn(|at| bytes.get(at).copied().unwrap_or_default())
            });
            let high = u64::from(bytes.get(8).copied().unwrap_or_default());
            // Two shifts, because a single shift by 64 bits is not allowed.
            let bits = u64::from_le_bytes(low) >> shift | high << (63 - shift) << 1;
            let unused = WORD_ROWS - (rows - row).min(WORD_ROWS);
            bits & u64::MAX >> unused
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_may_begin_and_end_anywhere() {
        let bytes: Vec<u8> = (0..40_u8).map(|at| at.wrapping_mul(73) ^ 0x5a).collect();
        for start in 0..20_usize {
            for rows in [0, 1, 7, 8, 63, 64, 65, 128, 200, 300] {
                // Exactly as many bytes as the rows need.
                let bytes = bytes[..(start + rows).div_ceil(8)].to_vec();
                let bits = Bits::new(&bytes, start, rows);
                let is_set = |row: &usize| bytes[(start + row) / 8] & 1 << ((start + row) % 8) != 0;
                let expected: Vec<bool> = (0..rows).map(|row| is_set(&row)).collect();
                let set: Vec<usize> = (0..rows).filter(is_set).collect();
                assert_eq!(bits.to_bools(), expected, "from {start}, {rows} rows");
                assert_eq!((0..rows).map(|row| bits.is_set(row)).collect::<Vec<_>>(), expected);
                assert_eq!(
                    bits.set_rows().iter().map(|row| *row as usize).collect::<Vec<_>>(),
                    set
                );
                assert_eq!(bits.count(), set.len());
            }
        }
    }
}
