//! Samples as a chunk of Prometheus: differences of times, and values in exclusive or with the value
//! before (`tsdb/chunkenc/xor.go` and `bstream.go` of Prometheus 2.42, after the paper about Gorilla).

use prost::encoding::encode_varint;

/// Samples of a chunk, as Prometheus cuts them.
pub(crate) const CHUNK_SAMPLES_MAX: usize = 120;

/// Lengths in bits of a change of the distance in time, each with its prefix and its length.
const CHANGES: [(u64, u32, u32); 3] = [(0b10, 2, 14), (0b110, 3, 17), (0b1110, 4, 20)];
/// Prefix of a change in 64 bits.
const LARGE_CHANGE: (u64, u32) = (0b1111, 4);
/// Most leading zeros that a chunk can state.
const LEADING_MAX: u32 = 31;

/// Returns the chunk of samples with these times and values, of which there are as many.
///
/// # Panics
/// Panics if there are 2^16 samples or more.
pub(crate) fn xor_chunk(times_ms: &[i64], values: &[f64]) -> Vec<u8> {
    let count = u16::try_from(times_ms.len()).expect("a chunk has few samples");
    let mut out = ChunkBits { bytes: count.to_be_bytes().to_vec(), free: 0 };
    let (mut before_ms, mut distance_ms, mut before) = (0, 0_i64, 0);
    let mut window = None;
    for (at, (time_ms, value)) in times_ms.iter().zip(values).enumerate() {
        let (new_ms, bits) = (time_ms.wrapping_sub(before_ms), value.to_bits());
        match at {
            // The first time in zigzag form.
            0 => encode_varint(((time_ms << 1) ^ (time_ms >> 63)).cast_unsigned(), &mut out.bytes),
            1 => encode_varint(new_ms.cast_unsigned(), &mut out.bytes),
            _ => out.change(new_ms.wrapping_sub(distance_ms)),
        }
        if at == 0 {
            out.push(bits, u64::BITS);
        } else {
            out.value(bits ^ before, &mut window);
        }
        (before_ms, distance_ms, before) = (*time_ms, new_ms, bits);
    }
    out.bytes
}

/// Bits of a chunk, the highest bit of a byte first.
struct ChunkBits {
    bytes: Vec<u8>,
    /// Bits of the last byte that are free.
    free: u32,
}

impl ChunkBits {
    /// Appends the lowest `count` bits of `bits`.
    fn push(&mut self, bits: u64, count: u32) {
        let mut left = count;
        while left > 0 {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = u8::BITS;
            }
            let taken = left.min(self.free);
            left -= taken;
            self.free -= taken;
            let part = (bits >> left) & ((1 << taken) - 1);
            if let Some(last) = self.bytes.last_mut() {
                *last |= (part << self.free).to_le_bytes()[0];
            }
        }
    }

    /// Appends a change of the distance between two times.
    fn change(&mut self, change_ms: i64) {
        if change_ms == 0 {
            return self.push(0, 1);
        }
        let is_within = |bits: u32| {
            let half = 1_i64 << (bits - 1);
            (1 - half..=half).contains(&change_ms)
        };
        let found = CHANGES.iter().find(|(_, _, bits)| is_within(*bits));
        let (prefix, length, bits) =
            found.map_or((LARGE_CHANGE.0, LARGE_CHANGE.1, u64::BITS), |found| *found);
        self.push(prefix, length);
        self.push(change_ms.cast_unsigned(), bits);
    }

    /// Appends a value as the bits in which it differs from the value before. `window` has the zeros
    /// before and behind the bits that were last stated.
    fn value(&mut self, differing: u64, window: &mut Option<(u32, u32)>) {
        if differing == 0 {
            return self.push(0, 1);
        }
        self.push(1, 1);
        let leading = differing.leading_zeros().min(LEADING_MAX);
        let trailing = differing.trailing_zeros();
        let known = window.filter(|window| leading >= window.0 && trailing >= window.1);
        let (leading, trailing) = known.unwrap_or((leading, trailing));
        let length = u64::BITS - leading - trailing;
        if known.is_some() {
            self.push(0, 1);
        } else {
            *window = Some((leading, trailing));
            self.push(1, 1);
            self.push(leading.into(), 5);
            self.push(length.into(), 6); // 64 is written as 0
        }
        self.push(differing >> trailing, length);
    }
}
