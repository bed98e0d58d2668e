//! Signatures: the labels by which series of two vectors match, as numbers.

use std::collections::HashMap;

use fleetcast_core::query::labelled::Labels;
use foldhash::fast::RandomState;

use crate::column::StepColumn;
use crate::labels::Choice;

/// Numbers of the signatures of the series of two vectors.
pub(super) struct Signatures {
    pub(super) left: Vec<usize>,
    pub(super) right: Vec<usize>,
    /// Number of signatures.
    pub(super) count: usize,
}

impl Signatures {
    pub(super) fn new(choice: &Choice, left: &[StepColumn], right: &[StepColumn]) -> Self {
        let mut numbers: HashMap<Labels, usize, RandomState> = HashMap::default();
        let mut number = |column: &StepColumn| {
            let next = numbers.len();
            *numbers.entry(choice.of(&column.labels)).or_insert(next)
        };
        let left = left.iter().map(&mut number).collect();
        let right = right.iter().map(&mut number).collect();
        Self { left, right, count: numbers.len() }
    }
}
