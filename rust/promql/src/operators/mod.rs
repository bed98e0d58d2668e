//! Operators between numbers, vectors and sets of series.

pub(crate) mod numbers;

mod signatures;

pub(crate) mod matching;
pub(crate) mod sets;
