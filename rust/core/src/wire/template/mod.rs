//! Record templates: records that differ from an earlier one in their values only.
//!
//! A producer's records differ in their time, their tags and the values of their fields, and in
//! little else. The [`Template`] of an accepted record is the text between those. Where a later
//! record has the same text between values of the same kinds, all rules about its keys, their order
//! and their duplicates are known to hold, and only the values are left to read. Whenever anything is
//! different, the record is read from its start by the rules; it has left no trace until then.
//!
//! Each format says what a slot of another type than double holds, `O`, and reads the values.

pub(super) mod json;
pub(super) mod line;
pub(super) mod protobuf;

use std::ops::Range;

use super::builder::BatchBuilder;
use super::prefix::Prefix;
use super::series::Unknown;
use super::value::{Cell, RowColumns, RowValues};

/// Templates of one batch that are remembered: bounds the cost of trying them.
const TEMPLATES_MAX: usize = 8;
/// Records that may match no template beyond those that match one, before templates are given up.
const MISSES_MAX: usize = 32;

/// One record with its values left out.
struct Template<O> {
    table: u32,
    /// Beginning of the raw keys of its series.
    raw_key_start: Prefix,
    /// Text, and the slot after it.
    parts: Vec<(Prefix, Part<O>)>,
    /// Text after the last slot.
    last: Prefix,
    /// Its fields, if they may stand in another order or be fewer.
    loose: Option<LooseFields>,
    columns: RowColumns,
    /// Index of the template that the record after one of this template matched.
    next: usize,
}

/// The fields of a template whose keys can be told from the text around them.
struct LooseFields {
    /// Indices of their parts.
    parts: Range<usize>,
    /// Text from the slot before them to the first key.
    start: Prefix,
}

/// Content of a slot of a template. A tag byte of its own is the fastest to branch on, which is done
/// for every value.
#[derive(PartialEq)]
#[repr(u8)]
enum Part<O> {
    Time,
    /// All tags.
    Tags,
    /// A field value that is a double.
    Double,
    /// Any other field value.
    Other(O),
}

/// Kind of a value that varies from record to record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    Time,
    Tags,
    /// The next field.
    Field,
}

/// Content of a record that matches a template, apart from the values of its fields.
struct Match {
    /// An unknown series still needs its tags checked.
    series: Result<u32, Unknown>,
    /// Range of its tags in the body.
    tags: Range<usize>,
    sent_ns: i64,
    /// Offset after the record.
    end: usize,
    /// Tells whether [`RowValues::columns`] are those of its values, not the template's.
    is_loose: bool,
}

impl Match {
    const fn new() -> Self {
        Self { series: Ok(0), tags: 0..0, sent_ns: 0, end: 0, is_loose: false }
    }
}

/// The templates of one batch so far; `'a` is its body.
pub(super) struct Templates<'a, O> {
    list: Vec<Template<O>>,
    /// Index of the template that the record before matched.
    current: usize,
    /// Tells whether the record that was read last matched a template.
    is_match: bool,
    hit_count: usize,
    miss_count: usize,
    /// Ranges of the body, in order, that vary in the record being read by the rules.
    slots: Vec<(Range<usize>, SlotKind)>,
    /// Field values of the record being read by a template.
    values: RowValues<'a>,
}

impl<O> Default for Templates<'_, O> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            current: 0,
            is_match: false,
            hit_count: 0,
            miss_count: 0,
            slots: Vec::new(),
            values: RowValues::default(),
        }
    }
}

impl<'a, O: PartialEq> Templates<'a, O> {
    /// The first template by which `read` finds a match, the likeliest one tried first; its values.
    #[inline]
    fn find(
        &mut self,
        mut read: impl FnMut(&Template<O>, &mut RowValues<'a>) -> Option<Match>,
    ) -> Option<(&Template<O>, &mut RowValues<'a>, Match)> {
        self.is_match = false;
        if self.is_given_up() {
            return None;
        }
        let expected = self.list.get(self.current)?.next;
        let mut at = expected;
        let mut found = self.list.get(at).and_then(|template| read(template, &mut self.values));
        if found.is_none() {
            (at, found) = self.find_other(expected, read);
        }
        self.miss_count += usize::from(found.is_none());
        let found = found?;
        self.is_match = true;
        self.hit_count += 1;
        self.follow(at);
        Some((self.list.get(at)?, &mut self.values, found))
    }

    #[cold]
    fn find_other(
        &mut self,
        expected: usize,
        mut read: impl FnMut(&Template<O>, &mut RowValues<'a>) -> Option<Match>,
    ) -> (usize, Option<Match>) {
        let Self { list, values, .. } = self;
        let mut others = list.iter().enumerate().filter(|(at, _)| *at != expected);
        let found = others.find_map(|(at, template)| Some((at, Some(read(template, values)?))));
        found.unwrap_or((expected, None))
    }

    /// Begins a record that is read by the rules.
    #[inline]
    pub(super) fn begin_record(&mut self) {
        self.slots.clear();
    }

    /// Notes a range of the body that varies from record to record.
    #[inline]
    pub(super) fn note(&mut self, slot: Range<usize>, kind: SlotKind) {
        self.slots.push((slot, kind));
    }

    /// Learns the template of the record at `start` of the body, which was just accepted with these
    /// `cells`, and gives it back. `field` narrows the slot of a field, given within the record, to what varies in it.
    fn learn_from(
        &mut self,
        (record, start): (&[u8], usize),
        measurement: &str,
        batch: &BatchBuilder<'_>,
        cells: &[Cell<'_>],
        field: impl Fn(Range<usize>, &Cell<'_>) -> Option<(Range<usize>, Part<O>)>,
    ) -> Option<&mut Template<O>> {
        // Without its own time and tags, a record says too little for the fast way; with them in
        // pieces, or a key that comes twice, too much.
        let count = |wanted| self.slots.iter().filter(|(_, kind)| *kind == wanted).count();
        if self.is_match
            || self.list.len() >= TEMPLATES_MAX
            || self.is_given_up()
            || count(SlotKind::Time) != 1
            || count(SlotKind::Tags) != 1
            || count(SlotKind::Field) != cells.len()
            || !batch.columns.is_complete()
        {
            return None;
        }
        let mut cells = cells.iter();
        let slots = self.slots.iter().map(|(slot, kind)| {
            let slot = slot.start - start..slot.end - start;
            match kind {
                SlotKind::Time => Some((slot, Part::Time, 0)),
                SlotKind::Tags => Some((slot, Part::Tags, 0)),
                SlotKind::Field => {
                    let cell = cells.next()?;
                    let (slot, part) = field(slot, cell)?;
                    Some((slot, part, cell.column))
                }
            }
        });
        let at = self.add(Template::new(record, slots, measurement, batch)?);
        self.list.get_mut(at)
    }

    /// Remembers a template; its index. It may be known all the same: not every record of a known template has
    /// values that are read by it.
    fn add(&mut self, template: Template<O>) -> usize {
        let is_same = |other: &Template<O>| {
            (other.table, &other.parts, &other.last)
                == (template.table, &template.parts, &template.last)
        };
        let at = self.list.iter().position(is_same).unwrap_or(self.list.len());
        if at == self.list.len() {
            self.list.push(Template { next: at, ..template });
        }
        self.follow(at);
        at
    }

    fn is_given_up(&self) -> bool {
        self.miss_count > self.hit_count + MISSES_MAX
    }

    fn follow(&mut self, template: usize) {
        if let Some(current) = self.list.get_mut(self.current) {
            current.next = template;
        }
        self.current = template;
    }
}

impl<O> Template<O> {
    /// The template of `record`, whose slots are given in order, those of fields with their columns;
    /// `None` where a slot does not fit.
    fn new(
        record: &[u8],
        slots: impl Iterator<Item = Option<(Range<usize>, Part<O>, u32)>>,
        measurement: &str,
        batch: &BatchBuilder<'_>,
    ) -> Option<Self> {
        let mut at = 0;
        let mut parts = Vec::new();
        let mut columns = RowColumns::default();
        for slot in slots {
            let (slot, part, column) = slot?;
            match part {
                Part::Time | Part::Tags => {}
                Part::Double => columns.doubles.push(column),
                Part::Other(_) => columns.others.push(column),
            }
            parts.push((Prefix::new(record.get(at..slot.start)?), part));
            at = slot.end;
        }
        let last = Prefix::new(record.get(at..)?);
        let table = batch.columns.last_table()?;
        let raw_key_start = batch.series.raw_key_start(measurement);
        Some(Self { table, raw_key_start, parts, last, loose: None, columns, next: 0 })
    }
}
