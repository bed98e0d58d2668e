//! Random choices that are the same on every machine.

/// A linear congruential generator.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number from 0 to `end`, exclusive, uniformly.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }

    pub(crate) fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap()
    }
}
