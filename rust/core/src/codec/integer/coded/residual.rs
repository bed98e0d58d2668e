//! Residuals: differences of some order within runs.
//!
//! The `min(i, order)` numbers before index `i` of a run predict the number at `i`. The first
//! number of the run before predicts the first number of a run, unless the order is 0.
//!
//! Example: the residuals of the run 10, 12, 15 are 2 and 3 in order 1. In order 2 the third
//! residual is 1, because 10 and 12 predict 14.

/// Orders are below this.
pub(super) const ORDERS: usize = 8;

/// Differences of each order at one number, up to some order.
#[derive(Clone, Copy, Default)]
pub(super) struct Differences {
    of: [u64; ORDERS],
    first: u64,
}

impl Differences {
    /// Returns the residual of `number`, the first of a run.
    #[inline]
    pub(super) fn begin(&mut self, number: u64, order: usize) -> u64 {
        let residual = if order == 0 { number } else { number.wrapping_sub(self.first) };
        self.of[0] = number;
        self.first = number;
        residual
    }

    /// Returns the residual of `number`, which the last `order` numbers predict.
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

    /// Returns the differences of all orders at the last number.
    pub(super) const fn all(&self) -> &[u64; ORDERS] {
        &self.of
    }

    /// Returns the number for which [`Self::begin`] returned this residual.
    #[inline]
    pub(super) fn begin_back(&mut self, residual: u64, order: usize) -> u64 {
        let number = if order == 0 { residual } else { residual.wrapping_add(self.first) };
        self.of[0] = number;
        self.first = number;
        number
    }

    /// Returns the number for which [`Self::residual`] returned this residual.
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
