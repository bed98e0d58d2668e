//! Groups of numbers of one width, side by side in a stream of bits.

/// Numbers that share a width: enough to spread its byte thin, few enough to keep outliers local.
pub(super) const GROUP: usize = 128;

/// Widest number that one unaligned load of eight bytes always covers: 56 bits and 7 of offset.
const LOADABLE_BITS_MAX: u32 = 56;

/// Bits kept for numbers up to `max`.
pub(super) const fn width_of(max: u64) -> u32 {
    let bits = 64 - max.leading_zeros();
    if bits > LOADABLE_BITS_MAX { 64 } else { bits }
}

/// Whether [`width_of`] can give `width`.
pub(super) const fn is_width(width: u32) -> bool {
    width <= LOADABLE_BITS_MAX || width == 64
}

/// Bytes that `count` numbers of `width` bits take.
pub(super) const fn packed_len(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Appends `values`, each below `2^width`.
pub(super) fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    debug_assert!(is_width(width) && values.iter().all(|value| width_of(*value) <= width));
    let end = out.len() + packed_len(values.len(), width);
    let mut pending = 0_u64;
    let mut pending_bits = 0_u32;
    for &value in values {
        pending |= value << pending_bits;
        pending_bits += width;
        if pending_bits >= 64 {
            out.extend_from_slice(&pending.to_le_bytes());
            pending_bits -= 64;
            // What did not fit; a shift by the whole width leaves nothing.
            pending = value.checked_shr(width - pending_bits).unwrap_or(0);
        }
    }
    let tail = end - out.len();
    out.extend_from_slice(&pending.to_le_bytes()[..tail]);
}

/// Fills `out` from exactly the bytes that [`pack`] made of as many numbers.
///
/// # Panics
///
/// If there are more than [`GROUP`] numbers, or `bytes` has another length.
pub(super) fn unpack(bytes: &[u8], width: u32, out: &mut [u64]) {
    assert!(out.len() <= GROUP && bytes.len() == packed_len(out.len(), width));
    if width == 64 {
        for (value, word) in out.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *value = u64::from_le_bytes(*word);
        }
        return;
    }
    // Copied so that the last numbers, too, can be loaded eight bytes at a time.
    let mut padded = [0_u8; GROUP / 8 * LOADABLE_BITS_MAX as usize + 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    let mask = (1_u64 << width) - 1;
    let mut bit = 0;
    for value in out {
        *value = (word_at(&padded, bit / 8) >> (bit % 8)) & mask;
        bit += width as usize;
    }
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
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
