//! Rows of values by slot. Rows with the same fields have the same shape and are stored together. A
//! row therefore takes only the memory of its values, and a whole fleet stores its fields once.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::row_view::{RowCells, ViewValues};
use super::value::ValueRef;
use crate::model::batch::{Column, FieldType, Values};
use crate::model::catalog::Catalog;
use crate::model::names::FieldId;

/// No shape.
const NONE: u32 = u32::MAX;

/// Number of spare rows that a shape may keep memory for, in addition to four times its rows.
const SPARE_ROWS: usize = 64;

/// At most one row for each slot.
#[derive(Default)]
pub(super) struct Samples {
    /// Position of the row of each slot.
    positions: Vec<SamplePosition>,
    shapes: Vec<Shape>,
    /// The shapes in use, by the hash of their fields.
    by_fields: HashTable<(u64, u32)>,
    unused: Vec<u32>,
    /// Shapes that lost a row or were added since [`Self::sweep`], so they may be empty.
    emptied: Vec<u32>,
    hasher: RandomState,
}

#[derive(Clone, Copy)]
struct SamplePosition {
    shape: u32,
    row: u32,
}

const NOWHERE: SamplePosition = SamplePosition { shape: NONE, row: 0 };

/// All rows that have values of the same fields.
#[derive(Default)]
pub(super) struct Shape {
    /// Hash of the fields.
    hash: u64,
    /// Fields of doubles, then of booleans, then of strings.
    fields: Box<[FieldId]>,
    floats: usize,
    bools: usize,
    /// Indices into `fields` in byte order of their names, computed at the first use.
    by_name: OnceLock<Box<[u32]>>,
    /// Slot of each row.
    slots: Vec<u32>,
    /// Values row by row, in order of `fields`.
    float_values: Vec<f64>,
    bool_values: Vec<bool>,
    text_values: Vec<Box<str>>,
}

/// The values of a row, in order of their fields.
#[derive(Clone, Copy)]
pub(super) struct SampleRow<'a> {
    pub(super) shape: &'a Shape,
    pub(super) floats: &'a [f64],
    pub(super) bools: &'a [bool],
    pub(super) texts: &'a [Box<str>],
}

impl Samples {
    /// Adds a slot without a row.
    pub(super) fn push_slot(&mut self) {
        self.positions.push(NOWHERE);
    }

    fn shape_of(&mut self, columns: &[&Column]) -> u32 {
        let mut hasher = self.hasher.build_hasher();
        for column in columns {
            hasher.write_u32(column.field);
        }
        let hash = hasher.finish();
        let is_it = |(_, shape): &(u64, u32)| self.shapes[*shape as usize].is_of(columns);
        if let Some((_, shape)) = self.by_fields.find(hash, is_it) {
            return *shape;
        }
        let count = |field_type| {
            columns.iter().filter(|column| column.values.field_type() == field_type).count()
        };
        let new = Shape {
            hash,
            fields: columns.iter().map(|column| column.field).collect(),
            floats: count(FieldType::Float),
            bools: count(FieldType::Bool),
            ..Shape::default()
        };
        let shape = self.unused.pop().unwrap_or_else(|| {
            self.shapes.push(Shape::default());
            u32::try_from(self.shapes.len() - 1).expect("there are no more shapes than slots")
        });
        self.shapes[shape as usize] = new;
        self.by_fields.insert_unique(hash, (hash, shape), |(hash, _)| *hash);
        self.emptied.push(shape);
        shape
    }

    /// Returns the shape of a row's cells. The shape is valid until [`Self::sweep`].
    #[inline]
    pub(super) fn shape_for(&mut self, slot: u32, cells: &mut RowCells<'_>) -> u32 {
        if let Some(shape) = *cells.shape {
            return shape;
        }
        // Most rows have the same fields as the row before in their slot.
        let own = self.positions[slot as usize].shape;
        let is_own = own != NONE && self.shapes[own as usize].is_of(cells.columns);
        let shape = if is_own { own } else { self.shape_of(cells.columns) };
        *cells.shape = Some(shape);
        shape
    }

    /// Copies the rows of some slots, in this order.
    pub(super) fn of_slots(&self, slots: &[u32]) -> Self {
        let mut part = Self::default();
        let mut shapes: HashMap<u32, u32, RandomState> = HashMap::default();
        for (slot, at) in slots.iter().zip(0..) {
            let position = self.get(*slot).map_or(NOWHERE, |(number, row)| {
                let shape = *shapes.entry(number).or_insert_with(|| {
                    part.shapes.push(row.shape.without_rows());
                    u32::try_from(part.shapes.len() - 1).expect("there are fewer than slots")
                });
                SamplePosition { shape, row: part.shapes[shape as usize].push_copy(at, &row) }
            });
            part.positions.push(position);
        }
        part
    }

    /// Returns the approximate bytes of memory that the rows take.
    pub(super) fn held_bytes(&self) -> usize {
        let shapes = self.shapes.iter().map(Shape::held_bytes).sum::<usize>();
        shapes + self.positions.len() * size_of::<SamplePosition>()
    }

    /// Returns true if a slot has a row of this shape.
    pub(super) fn has(&self, slot: u32, shape: u32) -> bool {
        self.positions[slot as usize].shape == shape
    }

    /// Writes the values of `cells`, which have this shape, to the row of a slot.
    #[inline]
    pub(super) fn set(&mut self, slot: u32, shape: u32, cells: &RowCells<'_>) {
        if self.positions[slot as usize].shape != shape {
            self.remove(slot);
            let row = self.shapes[shape as usize].push(slot);
            self.positions[slot as usize] = SamplePosition { shape, row };
        }
        let row = self.positions[slot as usize].row as usize;
        self.shapes[shape as usize].fill(row, cells);
    }

    /// Removes the row of a slot.
    pub(super) fn remove(&mut self, slot: u32) {
        let SamplePosition { shape, row } =
            std::mem::replace(&mut self.positions[slot as usize], NOWHERE);
        let Some(of) = self.shapes.get_mut(shape as usize) else { return };
        if let Some(moved) = of.swap_remove(row as usize) {
            self.positions[moved as usize].row = row;
        }
        if of.slots.is_empty() {
            self.emptied.push(shape);
        }
    }

    /// Removes the shapes that have no row.
    pub(super) fn sweep(&mut self) {
        for shape in std::mem::take(&mut self.emptied) {
            let of = &mut self.shapes[shape as usize];
            if !of.slots.is_empty() {
                continue;
            }
            let entry = self.by_fields.find_entry(of.hash, |(_, other)| *other == shape);
            if let Ok(entry) = entry {
                entry.remove();
                *of = Shape::default();
                self.unused.push(shape);
            }
        }
    }

    /// Returns the number of a slot's shape, and its row.
    pub(super) fn get(&self, slot: u32) -> Option<(u32, SampleRow<'_>)> {
        let SamplePosition { shape, row } = *self.positions.get(slot as usize)?;
        Some((shape, self.shapes.get(shape as usize)?.row(row as usize)))
    }

    /// Returns the number of shapes that memory is allocated for.
    #[cfg(test)]
    pub(super) fn shape_count(&self) -> usize {
        self.shapes.len()
    }

    /// Returns the shapes that have rows.
    pub(super) fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.shapes.iter().filter(|shape| !shape.slots.is_empty())
    }
}

impl Shape {
    fn is_of(&self, columns: &[&Column]) -> bool {
        self.fields.iter().eq(columns.iter().map(|column| &column.field))
    }

    fn texts(&self) -> usize {
        self.fields.len() - self.floats - self.bools
    }

    fn without_rows(&self) -> Self {
        Self {
            hash: self.hash,
            fields: self.fields.clone(),
            floats: self.floats,
            bools: self.bools,
            by_name: self.by_name.clone(),
            ..Self::default()
        }
    }

    fn push_copy(&mut self, slot: u32, row: &SampleRow<'_>) -> u32 {
        let at = u32::try_from(self.slots.len()).expect("there are no more rows than slots");
        self.slots.push(slot);
        self.float_values.extend_from_slice(row.floats);
        self.bool_values.extend_from_slice(row.bools);
        self.text_values.extend_from_slice(row.texts);
        at
    }

    fn held_bytes(&self) -> usize {
        let texts: usize =
            self.text_values.iter().map(|text| size_of::<Box<str>>() + text.len()).sum();
        let fields = self.fields.len() * (size_of::<FieldId>() + size_of::<u32>());
        let rows = size_of_val(&*self.slots) + size_of_val(&*self.float_values);
        fields + rows + self.bool_values.len() + texts
    }

    fn push(&mut self, slot: u32) -> u32 {
        let row = u32::try_from(self.slots.len()).expect("there are no more rows than slots");
        self.slots.push(slot);
        self.float_values.resize(self.slots.len() * self.floats, 0.0);
        self.bool_values.resize(self.slots.len() * self.bools, false);
        self.text_values.resize(self.slots.len() * self.texts(), Box::default());
        row
    }

    #[inline]
    fn fill(&mut self, row: usize, cells: &RowCells<'_>) {
        let texts = self.texts();
        let float_values = &mut self.float_values[row * self.floats..][..self.floats];
        let bool_values = &mut self.bool_values[row * self.bools..][..self.bools];
        let text_values = &mut self.text_values[row * texts..][..texts];
        match &cells.values {
            ViewValues::Dense { at, floats, bools, texts } => {
                float_values.iter_mut().zip(*floats).for_each(|(to, values)| *to = values[*at]);
                bool_values.iter_mut().zip(*bools).for_each(|(to, values)| *to = values[*at]);
                text_values.iter_mut().zip(*texts).for_each(|(to, of)| to.clone_from(&of[*at]));
            }
            ViewValues::Sparse(indices) => {
                let mut floats = float_values.iter_mut();
                let mut bools = bool_values.iter_mut();
                let mut texts = text_values.iter_mut();
                for (column, (_, index)) in cells.columns.iter().zip(*indices) {
                    let index = *index as usize;
                    let is_taken = match &column.values {
                        Values::Float(values) => floats.next().map(|to| *to = values[index]),
                        Values::Bool(values) => bools.next().map(|to| *to = values[index]),
                        Values::Text(values) => {
                            texts.next().map(|to| to.clone_from(&values[index]))
                        }
                    };
                    debug_assert!(is_taken.is_some(), "one field id has one type for ever");
                }
            }
        }
    }

    /// Removes a row and moves the last row to its place. Returns the slot of the moved row.
    fn swap_remove(&mut self, row: usize) -> Option<u32> {
        let last = self.slots.len() - 1;
        swap_remove(&mut self.float_values, row, last, self.floats);
        swap_remove(&mut self.bool_values, row, last, self.bools);
        let texts = self.texts();
        swap_remove(&mut self.text_values, row, last, texts);
        self.slots.swap_remove(row);
        if self.slots.capacity() > 4 * self.slots.len() + SPARE_ROWS {
            self.float_values.shrink_to_fit();
            self.bool_values.shrink_to_fit();
            self.text_values.shrink_to_fit();
            self.slots.shrink_to_fit();
        }
        self.slots.get(row).copied()
    }

    fn row(&self, row: usize) -> SampleRow<'_> {
        let texts = self.texts();
        SampleRow {
            shape: self,
            floats: &self.float_values[row * self.floats..][..self.floats],
            bools: &self.bool_values[row * self.bools..][..self.bools],
            texts: &self.text_values[row * texts..][..texts],
        }
    }

    pub(super) fn fields(&self) -> &[FieldId] {
        &self.fields
    }

    pub(super) fn slots(&self) -> &[u32] {
        &self.slots
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = SampleRow<'_>> {
        (0..self.slots.len()).map(|row| self.row(row))
    }

    /// Returns the indices into [`Self::fields`] in byte order of the field names.
    pub(super) fn by_name(&self, catalog: &Catalog) -> &[u32] {
        self.by_name.get_or_init(|| {
            let mut order: Vec<u32> = (0..).take(self.fields.len()).collect();
            let name = |at: u32| catalog.field(self.fields[at as usize]).map(|field| &*field.name);
            order.sort_unstable_by(|a, b| name(*a).cmp(&name(*b)));
            order.into()
        })
    }
}

/// Removes a row of `width` values and moves the last row to its place.
fn swap_remove<T>(values: &mut Vec<T>, row: usize, last: usize, width: usize) {
    for at in 0..width {
        values.swap(row * width + at, last * width + at);
    }
    values.truncate(last * width);
}

impl<'a> SampleRow<'a> {
    /// Returns the value at an index of the shape's fields.
    pub(super) fn value(&self, at: usize) -> ValueRef<'a> {
        let bools_from = self.floats.len();
        let texts_from = bools_from + self.bools.len();
        match at {
            _ if at < bools_from => ValueRef::Float(self.floats[at]),
            _ if at < texts_from => ValueRef::Bool(self.bools[at - bools_from]),
            _ => ValueRef::Text(&self.texts[at - texts_from]),
        }
    }

    /// Returns the values of the row, with their fields.
    pub(super) fn values(self) -> impl Iterator<Item = (FieldId, ValueRef<'a>)> {
        let fields = self.shape.fields.iter().enumerate();
        fields.map(move |(at, field)| (*field, self.value(at)))
    }
}
