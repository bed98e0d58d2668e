//! Efforts to find a shorter form.

/// Values of a column from which on the efforts differ.
pub const EFFORT_COUNT_MIN: usize = 1_024;

/// Forms that a writer tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Those that are written and read in a few nanoseconds a value: for rows that are rewritten
    /// before long.
    Low,
    /// All of them.
    #[default]
    High,
}
