//! Records that are spelled like an earlier one.
//!
//! A producer's records differ in the values of `time`, `tags` and `fields` and in little else.
//! The [`Shape`] of an accepted record is the text between those values. Where a later record has
//! the same text between values of the same kinds, all rules about keys, their order and their
//! duplicates are known to hold, and only the values are left to read. Whenever anything is
//! different, the record is read from its start by the rules; nothing has happened to it yet.
//!
//! This gives what the rules would give: the text around a value is the same, each value is a
//! whole JSON value, and the text behind it begins with what ends a value.

use super::array::Parser;
use super::scan::Scanner;
use super::series::{find_series, first_brace_end};
use crate::batch::FieldType;
use crate::time::YEAR_2000_NS;
use crate::wire::columns::Value;
use crate::wire::prefix::Prefix;

/// Shapes of one batch that are remembered: bounds what trying them costs.
const SHAPES_MAX: usize = 8;
/// Records that may fit no shape beyond those that fit one, before shapes are given up.
const MISSES_MAX: usize = 32;

/// What a slot holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotValue {
    /// The text of the time, without its quotes.
    Time,
    /// The object of the tags.
    Tags,
    /// The value of the next field.
    Field,
}

/// Place of a value in the document.
pub(super) struct Slot {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) value: SlotValue,
}

/// What a slot of a shape holds.
#[derive(PartialEq)]
enum Part {
    Time,
    Tags,
    Field(FieldType),
}

struct Shape {
    table: u32,
    /// Text, and the slot behind it; fields with their types.
    parts: Vec<(Prefix, Part)>,
    /// Text behind the last slot.
    last: Prefix,
    /// Column of each field.
    columns: Vec<u32>,
    /// The shape that the record after one of this shape had.
    next: usize,
}

/// What a record of a known shape says, apart from its field values.
struct Shaped {
    series: u32,
    sent_ns: i64,
    end: usize,
}

/// The shapes seen so far.
#[derive(Default)]
pub(super) struct Shapes {
    list: Vec<Shape>,
    /// Shape of the record before.
    current: usize,
    hit_count: usize,
    miss_count: usize,
}

impl Shapes {
    fn given_up(&self) -> bool {
        self.miss_count > self.hit_count + MISSES_MAX
    }

    fn follow(&mut self, shape: usize) {
        if let Some(current) = self.list.get_mut(self.current) {
            current.next = shape;
        }
        self.current = shape;
    }
}

impl<'a> Parser<'a, '_> {
    /// Accepts the record that begins here if it has a known shape; the place behind it.
    #[inline]
    pub(super) fn shaped_record(&mut self, scan: Scanner<'a>) -> Option<usize> {
        if self.shapes.given_up() || !self.faults.are_none() || self.tags_refused {
            return None;
        }
        let expected = self.shapes.list.get(self.shapes.current)?.next;
        let found = match self.read_shaped(scan, expected) {
            Some(shaped) => Some((expected, shaped)),
            None => (0..self.shapes.list.len())
                .filter(|&other| other != expected)
                .find_map(|other| Some((other, self.read_shaped(scan, other)?))),
        };
        let Some((at, shaped)) = found else {
            self.shapes.miss_count += 1;
            return None;
        };
        self.shapes.hit_count += 1;
        self.shapes.follow(at);
        let shape = self.shapes.list.get(at)?;
        let time_ns = self.columns.clamp(shaped.sent_ns);
        let (columns, values) = (&shape.columns, &mut self.values);
        self.columns.accept_known(shape.table, shaped.series, time_ns, columns, values);
        Some(shaped.end)
    }

    /// Reads the record into `self.values` if it has this shape and would be accepted.
    fn read_shaped(&mut self, mut scan: Scanner<'a>, shape: usize) -> Option<Shaped> {
        let shape = self.shapes.list.get(shape)?;
        let measurement = self.columns.measurement(shape.table)?;
        let (mut series, mut sent_ns) = (0, 0);
        self.values.clear();
        for (text, slot) in &shape.parts {
            scan.at += taken(text, scan)?;
            match slot {
                Part::Field(field_type) => {
                    let value = simple_value(&mut scan)?;
                    if value.field_type() != *field_type {
                        return None;
                    }
                    self.values.push(value);
                }
                Part::Time => {
                    let end = scan.plain_end(scan.at);
                    sent_ns = self.times.parse_ns(scan.bytes().get(scan.at..end)?)?;
                    if sent_ns < YEAR_2000_NS {
                        return None;
                    }
                    scan.at = end;
                }
                Part::Tags => {
                    // Whole and valid where it is known, see `Parser::tags`.
                    let length = first_brace_end(scan.rest())?;
                    let tags = scan.rest().get(..length)?;
                    series = find_series(self.names, &self.fresh, measurement, tags)?;
                    scan.at += length;
                }
            }
        }
        let end = scan.at + taken(&shape.last, scan)?;
        Some(Shaped { series, sent_ns, end })
    }

    /// Remembers the shape of the record from `start` to `end`, which was just accepted.
    pub(super) fn learn_shape(&mut self, start: usize, end: usize) {
        if self.shapes.list.len() >= SHAPES_MAX || self.shapes.given_up() {
            return;
        }
        // A record that has no shape of its own teaches nothing.
        let _ = self.try_learn_shape(start, end);
    }

    fn try_learn_shape(&mut self, start: usize, end: usize) -> Option<()> {
        // Without its own time and tags, a record says too little for the fast way.
        let has = |value| self.slots.iter().any(|slot| slot.value == value);
        if !has(SlotValue::Time) || !has(SlotValue::Tags) || self.columns.batch().conflict.is_some()
        {
            return None;
        }
        let bytes = self.text.as_bytes();
        let mut at = start;
        let mut parts = Vec::with_capacity(self.slots.len());
        let mut cells = self.cells.iter();
        for slot in &self.slots {
            let part = match slot.value {
                SlotValue::Time => Part::Time,
                SlotValue::Tags => Part::Tags,
                SlotValue::Field => Part::Field(cells.next()?.value.field_type()),
            };
            parts.push((Prefix::new(bytes.get(at..slot.start)?), part));
            at = slot.end;
        }
        let columns = self.cells.iter().map(|cell| cell.column).collect();
        let last = Prefix::new(bytes.get(at..end)?);
        let table = self.columns.last_table()?;
        let list = &mut self.shapes.list;
        let is_same =
            |other: &Shape| (other.table, &other.parts, &other.last) == (table, &parts, &last);
        // It may be known already: a record whose series is new is read by the rules all the same.
        let shape = list.iter().position(is_same).unwrap_or(list.len());
        if shape == list.len() {
            list.push(Shape { table, parts, last, columns, next: shape });
        }
        self.shapes.follow(shape);
        Some(())
    }
}

/// The length of `text`, never 0, if it comes next.
#[inline]
fn taken(text: &Prefix, scan: Scanner<'_>) -> Option<usize> {
    Some(text.begins(scan.rest())).filter(|&length| length > 0)
}

/// A field value that needs no thought.
#[inline]
fn simple_value<'a>(scan: &mut Scanner<'a>) -> Option<Value<'a>> {
    match scan.peek() {
        b'-' | b'0'..=b'9' => {
            Some(Value::Float(scan.double().ok().filter(|value| value.is_finite())?))
        }
        b'"' => scan.string().ok().map(Value::Text),
        b't' => scan.literal(b"true").ok().map(|()| Value::Bool(true)),
        b'f' => scan.literal(b"false").ok().map(|()| Value::Bool(false)),
        _ => None,
    }
}
