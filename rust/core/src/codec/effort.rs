//! How hard a writer searches for a shorter form.

/// Number of values from which a column has forms that only [`Effort::High`] tries.
pub const EFFORT_COUNT_MIN: usize = 1_024;

/// The forms that a writer tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Only forms that take a few nanoseconds per value to write and to read. For rows that are
    /// soon rewritten.
    Low,
    /// All forms.
    #[default]
    High,
}
