//! Groups rows that are equal in some columns, column by column.
//!
//! Producers send their series in a fixed order, or all rows of a series together. So the row after
//! a row of group A is most likely in the group that followed A the last time. Most rows are
//! therefore compared with the first row of one group, and only the others are looked up by a hash.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Expected rows per group, and the greatest number of groups for which memory is reserved at
/// first. Reserving is cheap, growing is not. Example: 8,000 rows reserve 1,000 groups.
const ROWS_PER_GROUP: usize = 8;
const ROOM_MAX: usize = 4_096;

/// A column that separates rows into groups.
pub trait GroupBy {
    /// The value in a row.
    type Value: Copy;

    /// Returns the value in a row.
    fn value(&self, row: usize) -> Self::Value;

    /// Returns true if two values are equal. It may return false for equal values, which costs only
    /// time.
    fn is_same(value: Self::Value, other: Self::Value) -> bool;

    /// Feeds `hasher` with a part of the value that equal values share.
    fn hash(value: Self::Value, hasher: &mut impl Hasher);
}

/// Groups of rows. Two rows of one group are equal in all columns by which it was split. Two groups
/// may be equal if a column treated equal values as different.
///
/// Example: the measurements a, b, a, a give the groups 0, 1, 0, 0 with the first rows 0 and 1.
#[derive(Clone, Debug)]
pub struct Groups {
    /// Group of each row. Groups count from 0 in the order of their first rows.
    group_of: Vec<u32>,
    first_rows: Vec<u32>,
}

impl Groups {
    /// Puts all rows into one group. Without rows there is no group.
    ///
    /// # Panics
    /// Panics if `row_count` exceeds 32 bits.
    #[must_use]
    pub fn new(row_count: usize) -> Self {
        assert!(u32::try_from(row_count).is_ok(), "rows count by 32 bits");
        let first_rows = if row_count == 0 { Vec::new() } else { vec![0] };
        Self { group_of: vec![0; row_count], first_rows }
    }

    /// Returns the group of each row.
    #[must_use]
    pub fn group_of(&self) -> &[u32] {
        &self.group_of
    }

    /// Returns the first row of each group, ascending.
    #[must_use]
    pub fn first_rows(&self) -> &[u32] {
        &self.first_rows
    }

    /// Returns the group of each row. Empty if there is at most one group.
    #[must_use]
    pub fn into_group_of(self) -> Vec<u32> {
        if self.first_rows.len() > 1 { self.group_of } else { Vec::new() }
    }

    /// Splits each group whose rows differ in `column`.
    pub fn split<C: GroupBy>(&mut self, column: &C) {
        let Self { group_of, first_rows } = self;
        let values: Vec<_> = first_rows.iter().map(|row| column.value(*row as usize)).collect();
        let is_unlike =
            |(row, group): (usize, &u32)| !C::is_same(column.value(row), values[*group as usize]);
        let Some(start) = group_of.iter().enumerate().position(is_unlike) else { return };
        // Groups of the rows before `start` stay the same.
        first_rows.truncate(first_rows.partition_point(|first| (*first as usize) < start));
        let mut split = GroupSplit::new(first_rows, column, values, group_of.len());
        let mut before = group_of[start - 1];
        for (row, group) in group_of.iter_mut().enumerate().skip(start) {
            before = split.group_of(row, *group, before);
            *group = before;
        }
    }
}

/// Groups while they are split.
struct GroupSplit<'g, C: GroupBy> {
    column: &'g C,
    first_rows: &'g mut Vec<u32>,
    /// For each group: the group that it was split from, and its value.
    members: Vec<(u32, C::Value)>,
    /// By group: the group of the row that followed its last row. At first the next group by
    /// number.
    next_of: Vec<u32>,
    hasher: RandomState,
    /// Hash and group.
    by_hash: HashTable<(u64, u32)>,
}

impl<'g, C: GroupBy> GroupSplit<'g, C> {
    fn new(
        first_rows: &'g mut Vec<u32>,
        column: &'g C,
        values: Vec<C::Value>,
        row_count: usize,
    ) -> Self {
        let count = number(first_rows.len());
        let room = first_rows.len().max(ROOM_MAX.min(row_count / ROWS_PER_GROUP));
        let mut split = Self {
            column,
            first_rows,
            members: (0..count).zip(values).collect(),
            next_of: (1..=count).collect(),
            hasher: RandomState::default(),
            by_hash: HashTable::with_capacity(room),
        };
        for group in 0..count {
            let (parent, value) = split.members[group as usize];
            let hash = split.hash(parent, value);
            split.by_hash.insert_unique(hash, (hash, group), |(hash, _)| *hash);
        }
        split
    }

    /// Returns the new group of a row that was in group `parent`, if the row before it is in group
    /// `before`.
    #[inline]
    fn group_of(&mut self, row: usize, parent: u32, before: u32) -> u32 {
        let value = self.column.value(row);
        let next = self.next_of[before as usize];
        if self.has(next, parent, value) {
            return next;
        }
        let hash = self.hash(parent, value);
        let is_same = |entry: &(u64, u32)| entry.0 == hash && self.has(entry.1, parent, value);
        let known = self.by_hash.find(hash, is_same).map(|(_, group)| *group);
        let group = known.unwrap_or_else(|| self.add(row, parent, value, hash));
        self.next_of[before as usize] = group;
        group
    }

    #[inline]
    fn has(&self, group: u32, parent: u32, value: C::Value) -> bool {
        let member = self.members.get(group as usize);
        member.is_some_and(|(other, first)| *other == parent && C::is_same(value, *first))
    }

    fn hash(&self, parent: u32, value: C::Value) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u32(parent);
        C::hash(value, &mut hasher);
        hasher.finish()
    }

    /// Adds a group that begins with `row`.
    fn add(&mut self, row: usize, parent: u32, value: C::Value, hash: u64) -> u32 {
        let group = number(self.first_rows.len());
        self.first_rows.push(number(row));
        self.members.push((parent, value));
        self.next_of.push(group + 1);
        self.by_hash.insert_unique(hash, (hash, group), |(hash, _)| *hash);
        group
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("rows count by 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl GroupBy for Vec<u8> {
        type Value = u8;

        fn value(&self, row: usize) -> u8 {
            self[row]
        }

        fn is_same(value: u8, other: u8) -> bool {
            value == other
        }

        /// Many different values have the same hash.
        fn hash(value: u8, hasher: &mut impl Hasher) {
            hasher.write_u8(value % 2);
        }
    }

    proptest! {
        #[test]
        fn rows_are_of_one_group_where_all_columns_are_alike(
            rows in prop::collection::vec((0_u8..4, 0_u8..3, 0_u8..2), 0..60),
        ) {
            let mut groups = Groups::new(rows.len());
            groups.split(&rows.iter().map(|row| row.0).collect::<Vec<_>>());
            groups.split(&rows.iter().map(|row| row.1).collect::<Vec<_>>());
            groups.split(&rows.iter().map(|row| row.2).collect::<Vec<_>>());
            let mut distinct = Vec::new();
            let mut first_rows = Vec::new();
            let expected = (0..).zip(&rows).map(|(number, row)| {
                let known = distinct.iter().position(|other| other == row);
                known.unwrap_or_else(|| {
                    distinct.push(*row);
                    first_rows.push(number);
                    distinct.len() - 1
                })
            });
            let expected: Vec<usize> = expected.collect();
            let found: Vec<usize> = groups.group_of().iter().map(|at| *at as usize).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(groups.first_rows(), first_rows);
        }
    }
}
