//! Bit packing: groups of numbers with one width, side by side in a stream of bits.
//!
//! Example: the numbers 5, 2 and 7 with a width of 3 bits are `101`, `010` and `111`, so two bytes
//! hold their 9 bits.

/// Number of numbers that share a width. A larger group spreads the byte of the width over more
/// numbers. A smaller group keeps an outlier from widening many numbers.
pub(crate) const GROUP: usize = 128;

/// Width in bits of the widest number that one unaligned load of eight bytes always covers. The
/// number may start 7 bits into its first byte.
const LOADABLE_BITS_MAX: u32 = 56;

/// Width in bits that holds numbers up to `max`. A width above 56 becomes 64.
pub(crate) const fn width_of(max: u64) -> u32 {
    let bits = 64 - max.leading_zeros();
    if bits > LOADABLE_BITS_MAX { 64 } else { bits }
}

/// Returns true if [`width_of`] can return `width`.
pub(crate) const fn is_width(width: u32) -> bool {
    width <= LOADABLE_BITS_MAX || width == 64
}

/// Bytes that `count` numbers of `width` bits take.
pub(crate) const fn packed_len(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Number of numbers that fill whole bytes at every width.
const WHOLE: usize = 8;

/// Calls `$call::<WIDTH>` for a width that is known only at run time. The compiler then knows all
/// shifts and masks, so a loop over eight numbers becomes straight-line code.
macro_rules! of_width {
    ($width:expr, $call:ident $arguments:tt, [$($known:literal),*]) => {
        match $width {
            $($known => $call::<$known> $arguments,)*
            _ => $call::<64> $arguments,
        }
    };
    ($width:expr, $call:ident $arguments:tt) => {
        of_width!($width, $call $arguments, [
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
            24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45,
            46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56
        ])
    };
}

/// Appends `values`, each below `2^width`.
pub(crate) fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    debug_assert!(is_width(width) && values.iter().all(|value| width_of(*value) <= width));
    out.reserve(packed_len(values.len(), width));
    of_width!(width, pack_width(values, out));
}

fn pack_width<const WIDTH: usize>(values: &[u64], out: &mut Vec<u8>) {
    let (eights, rest) = values.as_chunks::<WHOLE>();
    for eight in eights {
        out.extend_from_slice(&packed_eight::<WIDTH>(eight).as_flattened()[..WIDTH]);
    }
    let mut last = [0; WHOLE];
    last[..rest.len()].copy_from_slice(rest);
    out.extend_from_slice(
        &packed_eight::<WIDTH>(&last).as_flattened()[..(rest.len() * WIDTH).div_ceil(8)],
    );
}

/// Packs eight numbers side by side. Returns the words as bytes.
#[inline]
fn packed_eight<const WIDTH: usize>(values: &[u64; WHOLE]) -> [[u8; 8]; WHOLE] {
    let mut words = [0_u64; WHOLE];
    for (index, value) in values.iter().enumerate() {
        let (word, shift) = (index * WIDTH / 64, index * WIDTH % 64);
        words[word] |= value << shift;
        if shift + WIDTH > 64 {
            words[word + 1] |= value >> (64 - shift);
        }
    }
    words.map(u64::to_le_bytes)
}

/// Fills `out` from the bytes that [`pack`] wrote for exactly as many numbers.
///
/// # Panics
///
/// Panics if there are more than [`GROUP`] numbers, or if `bytes` has another length.
pub(crate) fn unpack(bytes: &[u8], width: u32, out: &mut [u64]) {
    assert!(out.len() <= GROUP && bytes.len() == packed_len(out.len(), width));
    if width == 64 {
        for (value, word) in out.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *value = u64::from_le_bytes(*word);
        }
    } else {
        of_width!(width, unpack_width(bytes, out));
    }
}

fn unpack_width<const WIDTH: usize>(bytes: &[u8], out: &mut [u64]) {
    let mask = (1_u64 << (WIDTH % 64)) - 1;
    // Loading eight numbers reads their own bytes and at most the eight bytes after them.
    let direct = bytes.len().saturating_sub(8).checked_div(WIDTH).unwrap_or(0);
    let (head, tail) = out.split_at_mut((direct * WHOLE).min(out.len()));
    let mut rest = bytes;
    for eight in head.as_chunks_mut::<WHOLE>().0 {
        let window = &rest[..WIDTH + 8];
        for (index, value) in eight.iter_mut().enumerate() {
            let bit = index * WIDTH;
            *value = (word_at(window, bit / 8) >> (bit % 8)) & mask;
        }
        rest = &rest[WIDTH..];
    }
    // The padding lets the last numbers be loaded eight bytes at a time, too.
    let mut padded = [0_u8; LOADABLE_BITS_MAX as usize + 16];
    padded[..rest.len()].copy_from_slice(rest);
    for (index, value) in tail.iter_mut().enumerate() {
        let bit = index * WIDTH;
        *value = (word_at(&padded, bit / 8) >> (bit % 8)) & mask;
    }
}

#[inline]
fn word_at(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_and_length_comes_back() {
        for width in (0..=64).filter(|width| is_width(*width)) {
            for count in [0, 1, 2, 7, 8, 63, 64, 65, GROUP] {
                let top = u64::MAX.checked_shr(64 - width).unwrap_or(0);
                let values: Vec<u64> = (0..count as u64)
                    .map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_sub(1) & top)
                    .collect();
                let mut bytes = Vec::new();
                pack(&values, width, &mut bytes);
                assert_eq!(bytes.len(), packed_len(count, width));
                let mut back = vec![0; count];
                unpack(&bytes, width, &mut back);
                assert_eq!(back, values, "width {width}, count {count}");
            }
        }
    }
}
