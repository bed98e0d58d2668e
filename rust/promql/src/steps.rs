//! Instants at which an expression is evaluated.

/// Instants at equal distances, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    /// First instant.
    pub(crate) start_ms: i64,
    /// Distance, positive.
    pub(crate) step_ms: i64,
    /// Number of instants.
    pub(crate) count: usize,
}

impl Steps {
    /// Returns a single instant.
    #[must_use]
    pub(crate) const fn at(time_ms: i64) -> Self {
        Self { start_ms: time_ms, step_ms: 1, count: 1 }
    }

    /// Returns the instants from `start_ms` to `end_ms` inclusive. Example: 0, 10 and 20 for a
    /// start of 0, an end of 25 and a step of 10.
    ///
    /// # Panics
    /// Panics if the step is not positive.
    #[must_use]
    pub(crate) fn between(start_ms: i64, end_ms: i64, step_ms: i64) -> Self {
        assert!(step_ms > 0, "a step was checked before");
        let span = end_ms.saturating_sub(start_ms);
        let count = if span < 0 { 0 } else { (span / step_ms).saturating_add(1) };
        Self { start_ms, step_ms, count: usize::try_from(count).unwrap_or(usize::MAX) }
    }

    /// Returns the last instant.
    #[must_use]
    pub(crate) fn end_ms(&self) -> i64 {
        self.time_ms(self.count.saturating_sub(1))
    }

    /// Returns an instant.
    #[must_use]
    pub(crate) fn time_ms(&self, step: usize) -> i64 {
        let steps = i64::try_from(step).unwrap_or(i64::MAX);
        self.start_ms.saturating_add(self.step_ms.saturating_mul(steps))
    }

    /// Returns all instants.
    pub(crate) fn times_ms(&self) -> impl Iterator<Item = i64> {
        let steps = *self;
        (0..steps.count).map(move |step| steps.time_ms(step))
    }
}
