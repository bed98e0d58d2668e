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
}

/// Turns the residuals of runs of these lengths into their numbers, and applies `finished` to each
/// number.
///
/// Sums of differences are the differences of the order below. Example: in order 2, the residuals
/// 10, 2, 1 become 10, 2, 3, and then 10, 12, 15.
pub(super) fn add_up(
    residuals: &mut [i64],
    run_lengths: &[u32],
    order: usize,
    finished: impl Fn(i64) -> i64,
) {
    if order == 0 {
        for number in residuals {
            *number = finished(*number);
        }
        return;
    }
    let (mut rest, mut first) = (residuals, 0);
    for length in run_lengths {
        let run;
        (run, rest) = rest.split_at_mut(*length as usize);
        run[0] = run[0].wrapping_add(first);
        first = run[0];
        for start in (1..order).rev() {
            sum_up(run.iter_mut().skip(start), |sum| sum);
        }
        sum_up(run.iter_mut(), &finished);
    }
}

/// Replaces each number by the sum up to it, and applies `finished` to the sum.
#[inline]
fn sum_up<'n>(numbers: impl Iterator<Item = &'n mut i64>, finished: impl Fn(i64) -> i64) {
    let mut sum = 0_i64;
    for number in numbers {
        sum = sum.wrapping_add(*number);
        *number = finished(sum);
    }
}
