//! Records that are spelled like an earlier one.
//!
//! A producer's records differ in their time, their tags and the values of their fields, and in
//! little else. The [`Shape`] of an accepted record is the text between those. Where a later record
//! has the same text between values of the same kinds, all rules about its keys, their order and
//! their duplicates are known to hold, and only the values are left to read. Whenever anything is
//! different, the record is read from its start by the rules; nothing has happened to it yet.
//!
//! Each format says what a slot of its records holds, `P`, and reads the values.

use std::ops::Range;

use super::columns::Value;
use super::prefix::Prefix;
use super::series::Unknown;

/// Shapes of one batch that are remembered: bounds what trying them costs.
const SHAPES_MAX: usize = 8;
/// Records that may fit no shape beyond those that fit one, before shapes are given up.
const MISSES_MAX: usize = 32;

/// The text of a record around its values.
pub(super) struct Shape<P> {
    pub(super) table: u32,
    /// What the spelling of its series begins with.
    pub(super) head: Prefix,
    /// Text, and the slot behind it.
    pub(super) parts: Vec<(Prefix, P)>,
    /// Text behind the last slot.
    pub(super) last: Prefix,
    pub(super) columns: ValueColumns,
    /// The shape that the record after one of this shape had.
    next: usize,
}

/// What varies from record to record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotValue {
    Time,
    Tags,
    /// The next field.
    Field,
}

/// Place of what varies in a record.
pub(super) struct Slot {
    pub(super) place: Range<usize>,
    pub(super) value: SlotValue,
}

/// Columns of the values of a record, in the order in which they come.
#[derive(Default)]
pub(super) struct ValueColumns {
    pub(super) doubles: Vec<u32>,
    pub(super) others: Vec<u32>,
}

/// Values of a record: doubles, as nearly all are, and others.
#[derive(Default)]
pub(super) struct Values<'a> {
    pub(super) doubles: Vec<f64>,
    pub(super) others: Vec<Value<'a>>,
}

impl Values<'_> {
    pub(super) fn clear(&mut self) {
        self.doubles.clear();
        self.others.clear();
    }
}

/// What a record of a known shape says, apart from the values of its fields.
pub(super) struct Shaped {
    /// Of one that is not known yet, its tags are still to be checked.
    pub(super) series: Result<u32, Unknown>,
    /// The bytes of its tags.
    pub(super) tags: Range<usize>,
    pub(super) sent_ns: i64,
    /// The place behind it.
    pub(super) end: usize,
}

impl<P> Shape<P> {
    /// The shape of `record`, whose slots are given in order; `None` if they are not in it.
    pub(super) fn new(
        record: &[u8],
        slots: impl Iterator<Item = (Range<usize>, P)>,
        (table, columns): (u32, ValueColumns),
        head: Prefix,
    ) -> Option<Self> {
        let mut at = 0;
        let mut parts = Vec::new();
        for (slot, part) in slots {
            parts.push((Prefix::new(record.get(at..slot.start)?), part));
            at = slot.end;
        }
        let last = Prefix::new(record.get(at..)?);
        Some(Self { table, head, parts, last, columns, next: 0 })
    }
}

/// The shapes seen so far in one batch.
pub(super) struct Shapes<P> {
    list: Vec<Shape<P>>,
    /// Shape of the record before.
    current: usize,
    /// Whether the record that was read last has a known shape.
    is_known: bool,
    hit_count: usize,
    miss_count: usize,
}

impl<P> Default for Shapes<P> {
    fn default() -> Self {
        Self { list: Vec::new(), current: 0, is_known: false, hit_count: 0, miss_count: 0 }
    }
}

impl<P: PartialEq> Shapes<P> {
    /// What `read` finds in the first shape in which it finds something; the one that is most
    /// likely comes first.
    #[inline]
    pub(super) fn find(
        &mut self,
        mut read: impl FnMut(&Shape<P>) -> Option<Shaped>,
    ) -> Option<(&Shape<P>, Shaped)> {
        self.is_known = false;
        if self.is_given_up() {
            return None;
        }
        let expected = self.list.get(self.current)?.next;
        let mut at = expected;
        let mut found = self.list.get(at).and_then(&mut read);
        if found.is_none() {
            (at, found) = self.find_other(expected, read);
        }
        self.miss_count += usize::from(found.is_none());
        let found = found?;
        self.is_known = true;
        self.hit_count += 1;
        self.follow(at);
        Some((self.list.get(at)?, found))
    }

    #[cold]
    fn find_other(
        &self,
        expected: usize,
        mut read: impl FnMut(&Shape<P>) -> Option<Shaped>,
    ) -> (usize, Option<Shaped>) {
        let others = self.list.iter().enumerate().filter(|(at, _)| *at != expected);
        let found = others.into_iter().find_map(|(at, shape)| Some((at, Some(read(shape)?))));
        found.unwrap_or((expected, None))
    }

    /// Whether the shape of the record that was read last is worth learning: it is another one, and
    /// there is room.
    pub(super) fn wants_another(&self) -> bool {
        !self.is_known && self.list.len() < SHAPES_MAX && !self.is_given_up()
    }

    /// Remembers the shape of a record that was just accepted. It may be known all the same: not
    /// every record of a known shape has values that are read by it.
    pub(super) fn learn(&mut self, shape: Shape<P>) {
        let is_same = |other: &Shape<P>| {
            (other.table, &other.parts, &other.last) == (shape.table, &shape.parts, &shape.last)
        };
        let at = self.list.iter().position(is_same).unwrap_or(self.list.len());
        if at == self.list.len() {
            self.list.push(Shape { next: at, ..shape });
        }
        self.follow(at);
    }

    fn is_given_up(&self) -> bool {
        self.miss_count > self.hit_count + MISSES_MAX
    }

    fn follow(&mut self, shape: usize) {
        if let Some(current) = self.list.get_mut(self.current) {
            current.next = shape;
        }
        self.current = shape;
    }
}
