//! Keys of the fields of samples, as JSON has them.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::merged_sample::MergedSample;
use super::samples::Shape;
use super::value::ValueRef;
use crate::model::catalog::Catalog;
use crate::model::json;
use crate::model::names::FieldId;

/// Bytes of keys that are cached for further rows. Few fleets have more.
const KEYS_BYTES_MAX: usize = 1 << 20;

/// Bytes of field names in one row beyond which the names are not cached but looked up.
const KEPT_BYTES_MAX: usize = if cfg!(test) { 64 } else { 64 << 10 };

/// The keys of the shapes that were last written.
#[derive(Default)]
pub(super) struct KeyCache {
    keys: Vec<ValueKeys>,
    /// Index in `keys` of each shape.
    of_shape: HashMap<u32, usize, RandomState>,
    /// The shape that was last used. It is usually the next one, too.
    last: Option<(u32, usize)>,
    bytes: usize,
}

/// The keys of a row's values, in byte order of the field names.
pub(super) enum ValueKeys {
    /// Keys that take few bytes.
    Kept {
        /// Keys with colons and commas, one after another.
        text: Vec<u8>,
        /// Index of each value, and the end of its key in `text`.
        ends: Vec<(u32, u32)>,
    },
    /// Index of each value, and its field. The names may take a thousand times as many bytes.
    Known(Vec<(u32, FieldId)>),
}

impl KeyCache {
    pub(super) fn of(&mut self, number: u32, shape: &Shape, catalog: &Catalog) -> &ValueKeys {
        let at = match self.last {
            Some((last, at)) if last == number => at,
            _ => self.find(number, shape, catalog),
        };
        self.last = Some((number, at));
        &self.keys[at]
    }

    fn find(&mut self, number: u32, shape: &Shape, catalog: &Catalog) -> usize {
        if let Some(at) = self.of_shape.get(&number) {
            return *at;
        }
        if self.bytes > KEYS_BYTES_MAX {
            *self = Self::default();
        }
        let keys = ValueKeys::new(shape.fields(), shape.by_name(catalog), catalog);
        self.bytes += keys.bytes();
        self.of_shape.insert(number, self.keys.len());
        self.keys.push(keys);
        self.keys.len() - 1
    }
}

impl ValueKeys {
    /// Makes the keys of `fields`. `order` has the indices of `fields` in order of their names.
    fn new(fields: &[FieldId], order: &[u32], catalog: &Catalog) -> Self {
        let fields = || order.iter().map(|at| (*at, fields[*at as usize]));
        let names_bytes: usize = fields().map(|(_, field)| name_of(field, catalog).len()).sum();
        if names_bytes > KEPT_BYTES_MAX {
            return Self::Known(fields().collect());
        }
        let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(order.len()));
        for (at, field) in fields() {
            write_key(&mut text, ends.is_empty(), field, catalog);
            let end = u32::try_from(text.len()).expect("the names are few bytes");
            ends.push((at, end));
        }
        Self::Kept { text, ends }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Kept { text, ends } => text.len() + size_of_val(ends.as_slice()),
            Self::Known(fields) => size_of_val(fields.as_slice()),
        }
    }

    /// Writes a value after each key, from index `from` on. If the keys are looked up, the writer
    /// pauses when `out` has `bytes_max`. Returns the index of the value to continue with, or
    /// `None` at the end.
    #[inline]
    pub(super) fn write<'v>(
        &self,
        out: &mut Vec<u8>,
        (from, bytes_max): (usize, usize),
        catalog: &Catalog,
        value: impl Fn(usize) -> ValueRef<'v>,
    ) -> Option<usize> {
        match self {
            Self::Kept { text, ends } => {
                let mut start = 0;
                for (at, end) in ends {
                    let end = *end as usize;
                    out.extend_from_slice(&text[start..end]);
                    write_value(out, value(*at as usize));
                    start = end;
                }
            }
            Self::Known(fields) => {
                for (index, (at, field)) in fields.iter().enumerate().skip(from) {
                    if out.len() >= bytes_max {
                        return Some(index);
                    }
                    write_key(out, index == 0, *field, catalog);
                    write_value(out, value(*at as usize));
                }
            }
        }
        None
    }
}

fn name_of(field: FieldId, catalog: &Catalog) -> &str {
    // The name of a field is stored before its first value, so it is known.
    catalog.field(field).map_or("", |field| &field.name)
}

fn write_key(out: &mut Vec<u8>, is_first: bool, field: FieldId, catalog: &Catalog) {
    if !is_first {
        out.push(b',');
    }
    json::write_string(out, name_of(field, catalog));
    out.push(b':');
}

#[inline]
fn write_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Float(value) => json::write_f64(out, value),
        ValueRef::Bool(value) => json::write_bool(out, value),
        ValueRef::Text(value) => json::write_string(out, value),
    }
}

/// Values of several rows, and the keys of the last fields. If the entities of a fleet send several
/// records of one instant, the same fields come again and again.
#[derive(Default)]
pub(super) struct MergedKeys {
    fields: Vec<FieldId>,
    keys: Option<ValueKeys>,
}

impl MergedKeys {
    /// Does the same as [`ValueKeys::write`].
    pub(super) fn write(
        &mut self,
        out: &mut Vec<u8>,
        bounds: (usize, usize),
        sample: &MergedSample,
        catalog: &Catalog,
    ) -> Option<usize> {
        let values: Vec<(FieldId, ValueRef<'_>)> = sample.values().collect();
        if !self.fields.iter().eq(values.iter().map(|(field, _)| field)) {
            self.fields = values.iter().map(|(field, _)| *field).collect();
            let name = |at: &u32| name_of(self.fields[*at as usize], catalog);
            let mut order: Vec<u32> = (0..).take(values.len()).collect();
            order.sort_unstable_by(|a, b| name(a).cmp(name(b)));
            self.keys = Some(ValueKeys::new(&self.fields, &order, catalog));
        }
        self.keys.as_ref()?.write(out, bounds, catalog, |at| values[at].1)
    }
}
