//! Fates of the changes that were not synced when the power was cut.

use std::collections::BTreeSet;

/// Choice of the changes without a sync that survive the cut.
pub(crate) enum Fate {
    Nothing,
    Everything,
    /// Changes survive in the order of the calls, up to this time. The last change survives in
    /// part.
    Until(u64, u64),
    /// Each change survives independently, with this chance in a hundred.
    Each {
        percent: u64,
        whole_pages: bool,
    },
    /// The changes with these times survive.
    Chosen(BTreeSet<u64>),
}
