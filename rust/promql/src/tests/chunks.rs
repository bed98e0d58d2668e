//! Chunks of a streamed remote read, beside a plain decoder of Prometheus' format.

use proptest::prelude::*;

use crate::http::frames::crc32c;
use crate::http::xor_chunk::{CHUNK_SAMPLES_MAX, xor_chunk};

/// Bits, the first one first.
struct Bits<'b>(&'b [u8], usize);

impl Bits<'_> {
    fn bits(&mut self, count: usize) -> u64 {
        let bit = |at: usize| u64::from(self.0[at / 8] >> (7 - at % 8) & 1);
        let read = (self.1..self.1 + count).fold(0, |bits, at| bits << 1 | bit(at));
        self.1 += count;
        read
    }

    fn varint(&mut self) -> u64 {
        let mut groups = std::iter::from_fn(|| Some(self.bits(8)));
        let mut read = 0;
        for at in 0.. {
            let group = groups.next().unwrap();
            read |= (group & 0x7f) << (7 * at);
            if group < 0x80 {
                break;
            }
        }
        read
    }

    /// Reads a prefix of up to four ones, which a zero ends.
    fn ones(&mut self) -> usize {
        (0..4).take_while(|_| self.bits(1) == 1).count()
    }

    fn change(&mut self) -> i64 {
        let count = [0, 14, 17, 20, 64][self.ones()];
        if count == 0 {
            return 0;
        }
        let read = self.bits(count);
        let is_negative = count < 64 && read > 1 << (count - 1);
        read.wrapping_sub(if is_negative { 1 << count } else { 0 }).cast_signed()
    }
}

fn decoded(chunk: &[u8]) -> Vec<(i64, u64)> {
    let mut bits = Bits(chunk, 0);
    let count = bits.bits(16);
    let (mut time_ms, mut distance_ms, mut value) = (0_i64, 0_i64, 0);
    let (mut leading, mut length) = (0, 0);
    let mut samples = Vec::new();
    for at in 0..count {
        match at {
            0 => {
                let zigzag = bits.varint();
                time_ms = (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
                value = bits.bits(64);
            }
            1 => distance_ms = bits.varint().cast_signed(),
            _ => distance_ms = distance_ms.wrapping_add(bits.change()),
        }
        if at > 0 {
            time_ms = time_ms.wrapping_add(distance_ms);
            if bits.bits(1) == 1 {
                if bits.bits(1) == 1 {
                    leading = bits.bits(5);
                    length = bits.bits(6);
                    length = if length == 0 { 64 } else { length };
                }
                let differing = bits.bits(usize::try_from(length).unwrap());
                value ^= differing << (64 - leading - length);
            }
        }
        samples.push((time_ms, value));
    }
    assert!(chunk.len() * 8 - bits.1 < 8, "no byte is left");
    samples
}

fn distance() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => Just(15_000),
        2 => 14_990..15_010_i64,
        1 => prop_oneof![Just(1 << 13), Just(1 << 16), Just(1 << 19)].prop_map(|each| each + 15_000),
        1 => 1..1_i64 << 40,
    ]
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(1.0_f64.to_bits()),
        (0..1_000_i32).prop_map(|each| f64::from(each).to_bits()),
        any::<u64>(),
    ]
}

proptest! {
    #[test]
    fn a_chunk_has_its_samples(
        first_ms in any::<i32>(),
        samples in prop::collection::vec((distance(), value()), 1..=CHUNK_SAMPLES_MAX),
    ) {
        let mut time_ms = i64::from(first_ms) << 10;
        let mut expected = Vec::new();
        for (distance_ms, value) in samples {
            expected.push((time_ms, value));
            time_ms += distance_ms;
        }
        let (times_ms, values): (Vec<i64>, Vec<f64>) =
            expected.iter().map(|(time_ms, bits)| (*time_ms, f64::from_bits(*bits))).unzip();
        prop_assert_eq!(decoded(&xor_chunk(&times_ms, &values)), expected);
    }
}

#[test]
fn the_sum_of_a_frame_is_that_of_castagnoli() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283); // RFC 3720, B.4
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
}
