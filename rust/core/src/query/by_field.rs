//! Something for each field that occurs, found quickest in the order in which they occurred first.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::model::names::FieldId;

/// Entries by field, made when they are first asked for.
pub(super) struct ByField<T> {
    entries: Vec<(FieldId, T)>,
    index_of: HashMap<FieldId, usize, RandomState>,
    /// The entry behind the one asked for last: block after block has its columns in one order.
    next: usize,
}

impl<T> Default for ByField<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), index_of: HashMap::default(), next: 0 }
    }
}

impl<T: Default> ByField<T> {
    /// The entry of a field.
    #[inline]
    pub(super) fn get(&mut self, field: FieldId) -> &mut T {
        let at = match self.entries.get(self.next) {
            Some((known, _)) if *known == field => self.next,
            _ => self.find(field),
        };
        self.next = if at + 1 < self.entries.len() { at + 1 } else { 0 };
        &mut self.entries[at].1
    }

    #[cold]
    fn find(&mut self, field: FieldId) -> usize {
        let fresh = self.entries.len();
        let at = *self.index_of.entry(field).or_insert(fresh);
        if at == fresh {
            self.entries.push((field, T::default()));
        }
        at
    }

    /// All entries, in the order in which they were first asked for.
    pub(super) fn entries(&self) -> &[(FieldId, T)] {
        &self.entries
    }

    /// [`Self::entries`].
    pub(super) fn into_entries(self) -> Vec<(FieldId, T)> {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_has_one_entry_in_whatever_order_it_is_asked_for() {
        let mut counts = ByField::<u32>::default();
        for field in [7, 3, 9, 7, 3, 9, 9, 3, 5, 7, 5] {
            *counts.get(field) += 1;
        }
        assert_eq!(counts.into_entries(), [(7, 3), (3, 3), (9, 3), (5, 2)]);
    }
}
