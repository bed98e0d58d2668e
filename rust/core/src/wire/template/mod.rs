//! Record templates: for records that differ from an earlier record only in their values.
//!
//! Records of a producer differ in their time, their tags and the values of their fields, and
//! rarely in more. The [`Template`] of an accepted record is the text between these values. If a
//! later record has the same text between values of the same kinds, all rules about its keys hold.
//! Only its values are left to read. If any byte of the text differs, the rules read the record
//! from its start; the template has changed no state by then.
//!
//! Example: after
//! `{"time":"2026-01-01T00:00:00Z","tags":{"entity_id":"e1"},"fields":{"snr_db":1.5}}` the template
//! reads the same record with another time, entity and number.
//!
//! `O` is the content of a slot that is not a double. Each format defines it, and reads the values.

pub(super) mod json;
pub(super) mod line;
pub(super) mod protobuf;

use std::ops::Range;

use super::builder::BatchBuilder;
use super::prefix::Prefix;
use super::series::UnknownKey;
use super::value::{FieldCell, RecordValues, RowColumns};
use crate::model::raw_key::RawKeyStart;

/// Templates of a batch that are remembered: bounds the time to try them.
const TEMPLATES_MAX: usize = 8;
/// Templates are given up if more records than the matches plus this number match no template.
/// Example: after 100 matches and 133 misses.
const MISSES_MAX: usize = 32;

/// A record without its values.
struct Template<O> {
    table: u32,
    measurement: Box<str>,
    /// Beginning of the raw keys of its series.
    raw_key_start: RawKeyStart,
    /// Text, and the slot after it.
    parts: Vec<(Prefix, SlotContent<O>)>,
    /// Text after the last slot.
    last: Prefix,
    /// Fields of the template, if they may have another order or be absent.
    loose: Option<LooseFields>,
    columns: RowColumns,
    /// Index of the template that the next record matched after a record of this template.
    next: usize,
}

/// The fields of a template whose keys can be separated from the text around them.
struct LooseFields {
    /// Indices of their parts.
    parts: Range<usize>,
    /// Text from the slot before the fields to the first key.
    start: Prefix,
}

/// Content of a slot of a template. A separate tag byte makes the branch fast that each value
/// takes.
#[derive(PartialEq)]
#[repr(u8)]
enum SlotContent<O> {
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

/// Content of a record that matches a template, without the values of its fields.
struct Match {
    /// The tags of an unknown series are not checked yet.
    series: Result<u32, UnknownKey>,
    /// Range of its tags in the body.
    tags: Range<usize>,
    sent_ns: i64,
    /// Offset after the record.
    end: usize,
    /// If true, [`RecordValues::columns`] has the columns of its values. If false, the template has
    /// them.
    is_loose: bool,
}

impl Match {
    const fn new() -> Self {
        Self { series: Ok(0), tags: 0..0, sent_ns: 0, end: 0, is_loose: false }
    }
}

/// The templates of a batch so far. `'a` is its body.
pub(super) struct Templates<'a, O> {
    list: Vec<Template<O>>,
    /// Index of the template that the previous record matched.
    current: usize,
    /// If true, the last record matched a template.
    is_match: bool,
    hit_count: usize,
    miss_count: usize,
    /// Ranges of the body, in order, that vary in the record that the rules are reading.
    slots: Vec<(Range<usize>, SlotKind)>,
    /// Field values of the record that a template is reading.
    values: RecordValues<'a>,
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
            values: RecordValues::default(),
        }
    }
}

impl<'a, O: PartialEq> Templates<'a, O> {
    /// Returns the first template for which `read` finds a match, and the values. Tries the most
    /// likely template first.
    #[inline]
    fn find(
        &mut self,
        mut read: impl FnMut(&Template<O>, &mut RecordValues<'a>) -> Option<Match>,
    ) -> Option<(&Template<O>, &mut RecordValues<'a>, Match)> {
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
        mut read: impl FnMut(&Template<O>, &mut RecordValues<'a>) -> Option<Match>,
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
    /// `cells`, and returns it. `field` narrows the slot of a field, as a range in the record, to
    /// its varying part.
    fn learn_from(
        &mut self,
        (record, start): (&[u8], usize),
        measurement: &str,
        batch: &BatchBuilder<'_>,
        cells: &[FieldCell<'_>],
        field: impl Fn(Range<usize>, &FieldCell<'_>) -> Option<(Range<usize>, SlotContent<O>)>,
    ) -> Option<&mut Template<O>> {
        // Without a time and tags of its own, a record has too little to match. Times or tags in
        // pieces, or a repeated key, are left to the rules.
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
                SlotKind::Time => Some((slot, SlotContent::Time, 0)),
                SlotKind::Tags => Some((slot, SlotContent::Tags, 0)),
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

    /// Remembers a template. Returns its index. The template may be known already: some records of
    /// a known template have values that it cannot read.
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
    /// Returns the template of `record`. Slots come in order, field slots with their columns.
    /// Returns `None` if a slot does not fit.
    fn new(
        record: &[u8],
        slots: impl Iterator<Item = Option<(Range<usize>, SlotContent<O>, u32)>>,
        measurement: &str,
        batch: &BatchBuilder<'_>,
    ) -> Option<Self> {
        let mut at = 0;
        let mut parts = Vec::new();
        let mut columns = RowColumns::default();
        for slot in slots {
            let (slot, part, column) = slot?;
            match part {
                SlotContent::Time | SlotContent::Tags => {}
                SlotContent::Double => columns.doubles.push(column),
                SlotContent::Other(_) => columns.others.push(column),
            }
            parts.push((Prefix::new(record.get(at..slot.start)?), part));
            at = slot.end;
        }
        let last = Prefix::new(record.get(at..)?);
        let table = batch.columns.last_table()?;
        let raw_key_start = batch.series.raw_key_start(measurement);
        let measurement = measurement.into();
        let (loose, next) = (None, 0);
        Some(Self { table, measurement, raw_key_start, parts, last, loose, columns, next })
    }
}
