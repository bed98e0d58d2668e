//! Residuals: differences of some order within runs.
//!
//! The number at index `i` of a run is predicted by the `min(i, order)` before it; the first one, unless
//! the order is 0, by the first of the run before.

/// Orders are smaller than this.
pub(super) const ORDERS: usize = 8;

/// Differences of each order up to some, at one number.
#[derive(Clone, Copy, Default)]
pub(super) struct Differences {
    of: [u64; ORDERS],
    first: u64,
}

impl Differences {
    /// The residual of `number`, the first of a run.
    #[inline]
    pub(super) fn begin(&mut self, number: u64, order: usize) -> u64 {
        let residual = if order == 0 { number } else { number.wrapping_sub(self.first) };
        self.of[0] = number;
        self.first = number;
        residual
    }

    /// The residual of `number` by the `order` before it.
    #[inline]
    pub(super) fn residual(&mut self, number: u64, order: usize) -> u64 {
        let mut difference = number;
        for before in &mut self.of[..order] {
            let next = difference.wrapping_sub(*before);
            *before = difference;
            difference = next;
        }
        self.of[order] = difference;
        difference
    }

    /// The differences of all orders at the number before.
    pub(super) const fn all(&self) -> &[u64; ORDERS] {
        &self.of
    }

    /// The number of which [`Self::begin`] gave this residual.
    #[inline]
    pub(super) fn begin_back(&mut self, residual: u64, order: usize) -> u64 {
        let number = if order == 0 { residual } else { residual.wrapping_add(self.first) };
        self.of[0] = number;
        self.first = number;
        number
    }

    /// The number of which [`Self::residual`] gave this residual.
    #[inline]
    pub(super) fn number(&mut self, residual: u64, order: usize) -> u64 {
        let mut difference = residual;
        self.of[order] = residual;
        for before in self.of[..order].iter_mut().rev() {
            difference = difference.wrapping_add(*before);
            *before = difference;
        }
        difference
    }
}
