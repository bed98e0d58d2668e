//! Fates of the changes that were not synced when power was cut.

use std::collections::BTreeSet;

/// Choice of the changes that were not synced and are there after the cut.
pub(crate) enum Fate {
    Nothing,
    Everything,
    /// In the order of the calls, up to this time; the last one in part.
    Until(u64, u64),
    /// Each by itself, with this chance in a hundred.
    Each {
        percent: u64,
        whole_pages: bool,
    },
    /// Those of these times.
    Chosen(BTreeSet<u64>),
}
