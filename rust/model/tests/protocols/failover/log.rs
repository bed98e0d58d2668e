//! Batches and logs, small enough to be copied.

/// A batch, by its number from 0 to 7.
pub(super) type Batch = u8;

/// A set of batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Batches(u8);

impl Batches {
    pub(super) fn add(&mut self, batch: Batch) {
        self.0 |= 1 << batch;
    }

    pub(super) fn remove(&mut self, batch: Batch) {
        self.0 &= !(1 << batch);
    }

    pub(super) fn add_all(&mut self, log: Log) {
        log.batches().for_each(|batch| self.add(batch));
    }

    pub(super) fn contains(self, batch: Batch) -> bool {
        self.0 & 1 << batch != 0
    }

    /// Returns true if the log has all these batches.
    pub(super) fn are_in(self, log: Log) -> bool {
        let mut found = Self::default();
        found.add_all(log);
        self.0 & !found.0 == 0
    }
}

/// Batches in the order of their sequence, at most eight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Log {
    count: u8,
    /// Four bits for each batch, the first lowest.
    digits: u32,
}

impl Log {
    pub(super) fn batches(self) -> impl Iterator<Item = Batch> {
        (0..self.count).map(move |at| (self.digits >> (4 * at) & 15) as Batch)
    }

    pub(super) fn with(self, batch: Batch) -> Self {
        assert!(self.count < 8, "a log of the model has at most eight batches");
        let digits = self.digits | u32::from(batch) << (4 * self.count);
        Self { count: self.count + 1, digits }
    }

    pub(super) fn count(self) -> u8 {
        self.count
    }

    pub(super) fn contains(self, batch: Batch) -> bool {
        self.batches().any(|other| other == batch)
    }

    /// Returns the batch at a position, as `entry` of `rust/cluster/src/store/known.rs` has it.
    pub(super) fn get(self, at: u8) -> Option<Batch> {
        self.batches().nth(at.into())
    }

    pub(super) fn starts_with(self, other: Self) -> bool {
        (0..other.count).all(|at| self.get(at) == other.get(at))
    }

    pub(super) fn has_doubles(self) -> bool {
        self.batches().enumerate().any(|(at, batch)| self.batches().take(at).any(|b| b == batch))
    }
}
