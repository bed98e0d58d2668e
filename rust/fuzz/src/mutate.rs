//! Changes inputs by random numbers, which a seed repeats.

/// Numbers at which lengths, counts and loops often fail.
const BYTES: [u8; 12] = [0, 1, 2, 7, 8, 15, 16, 0x7f, 0x80, 0xfe, 0xff, b'"'];
const STEPS_MAX: u64 = 6;

/// Reproducible random numbers (`SplitMix64`).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`. `bound` must be above 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Returns `input` after a few changes. Pieces come from `other` and from `words`, which mean
/// something to the reader.
pub(crate) fn mutated(random: &mut Random, input: &[u8], other: &[u8], words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.next() % STEPS_MAX {
        step(random, &mut bytes, other, words);
    }
    bytes
}

fn step(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8], words: &[&[u8]]) {
    let at = random.below(bytes.len() + 1);
    let magnitude = random.below(8);
    let length = 1 + random.below(1 << magnitude);
    let end = (at + length).min(bytes.len());
    match random.below(11) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.byte(),
        2 if at < bytes.len() => bytes[at] = *random.pick(&BYTES),
        3 if at < bytes.len() => {
            let by = 1 + random.byte() % 8;
            bytes[at] = if by.is_multiple_of(2) {
                bytes[at].wrapping_add(by)
            } else {
                bytes[at].wrapping_sub(by)
            };
        }
        4 => drop(bytes.drain(at..end)),
        5 => {
            let piece = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            drop(bytes.splice(to..to, piece));
        }
        6 => {
            let piece: Vec<u8> = (0..length.min(16)).map(|_| random.byte()).collect();
            drop(bytes.splice(at..at, piece));
        }
        7 if !other.is_empty() => {
            let from = random.below(other.len());
            let to = (from + length).min(other.len());
            let replaced = if random.below(2) == 0 { at..end } else { at..at };
            drop(bytes.splice(replaced, other[from..to].iter().copied()));
        }
        8 => bytes.truncate(at),
        9 | 10 if !words.is_empty() => {
            let replaced = if random.below(2) == 0 { at..end } else { at..at };
            drop(bytes.splice(replaced, random.pick(words).iter().copied()));
        }
        _ => bytes.extend_from_slice(&other[..other.len().min(length)]),
    }
}
