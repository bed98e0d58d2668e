//! Sums that keep what rounding loses (Kahan and Neumaier), as Prometheus adds samples of a window.

/// A sum and its compensation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompensatedSum {
    pub(crate) sum: f64,
    pub(crate) rest: f64,
}

impl CompensatedSum {
    pub(crate) fn add(&mut self, value: f64) {
        let total = self.sum + value;
        self.rest += if self.sum.abs() >= value.abs() {
            (self.sum - total) + value
        } else {
            (value - total) + self.sum
        };
        self.sum = total;
    }

    pub(crate) fn total(self) -> f64 {
        self.sum + self.rest
    }
}
