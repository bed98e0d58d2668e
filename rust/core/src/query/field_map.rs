//! A map by field in order of insertion. Reads in that order are the fastest.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::model::names::FieldId;

/// Entries by field. An entry is inserted when it is first read.
pub(super) struct FieldMap<T> {
    entries: Vec<(FieldId, T)>,
    index_of: HashMap<FieldId, usize, RandomState>,
    /// Index of the entry read last. The next read is usually of the same entry or of the next
    /// entry, because all blocks have their columns in one order.
    last: usize,
}

impl<T> Default for FieldMap<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), index_of: HashMap::default(), last: 0 }
    }
}

impl<T: Default> FieldMap<T> {
    /// Returns the entry of a field. Inserts the entry if the field is new.
    #[inline]
    pub(super) fn get(&mut self, field: FieldId) -> &mut T {
        let is_it = |at: usize| self.entries.get(at).is_some_and(|(known, _)| *known == field);
        let next = if self.last + 1 < self.entries.len() { self.last + 1 } else { 0 };
        self.last = match self.last {
            last if is_it(last) => last,
            _ if is_it(next) => next,
            _ => self.find(field),
        };
        &mut self.entries[self.last].1
    }

    #[cold]
    fn find(&mut self, field: FieldId) -> usize {
        let new = self.entries.len();
        let at = *self.index_of.entry(field).or_insert(new);
        if at == new {
            self.entries.push((field, T::default()));
        }
        at
    }

    /// Returns all entries, in the order in which they were first read.
    pub(super) fn entries(&self) -> &[(FieldId, T)] {
        &self.entries
    }

    /// Returns all entries in the order of [`Self::entries`].
    pub(super) fn into_entries(self) -> Vec<(FieldId, T)> {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_has_one_entry_in_whatever_order_it_is_asked_for() {
        let mut counts = FieldMap::<u32>::default();
        for field in [7, 3, 9, 7, 3, 9, 9, 3, 5, 7, 5] {
            *counts.get(field) += 1;
        }
        assert_eq!(counts.into_entries(), [(7, 3), (3, 3), (9, 3), (5, 2)]);
    }
}
