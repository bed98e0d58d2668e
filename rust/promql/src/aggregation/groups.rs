//! Groups of series with the same chosen labels, in order of their first series.

use std::collections::HashMap;

use fleetcast_core::query::labelled::Labels;
use foldhash::fast::RandomState;

use crate::column::StepColumn;
use crate::labels::Choice;

/// A group: its labels, and the indices of its series.
pub(super) struct Group {
    pub(super) labels: Labels,
    pub(super) members: Vec<usize>,
}

/// Returns the groups of some series.
pub(super) fn groups(columns: &[StepColumn], choice: &Choice) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut index_of: HashMap<Labels, usize, RandomState> = HashMap::default();
    for (at, column) in columns.iter().enumerate() {
        let labels = choice.of(&column.labels);
        if let Some(group) = index_of.get(&labels) {
            groups[*group].members.push(at);
        } else {
            index_of.insert(labels.clone(), groups.len());
            groups.push(Group { labels, members: vec![at] });
        }
    }
    groups
}
