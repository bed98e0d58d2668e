//! Rows of a scan, made batch by batch on demand.

use std::cell::LazyCell;
use std::sync::Arc;

use fleetcast_core::model::batch::FieldType;
use fleetcast_core::model::error::Result;
use fleetcast_core::plane::RowStream;
use fleetcast_core::query::scan::{
    ScanBatch, ScanColumn, ScanSchema, ScanValues, TagRuns, Texts, extend_repeated,
};

use crate::array::{ArrayBuffer, TextView, array, with_dictionary};
use crate::interface::{ArrowArray, ArrowArrayStream, ArrowSchema, int};
use crate::schema::{dictionary_of_texts, map_of_texts, required, schema};
use crate::stream::Batches;

impl From<RowStream> for ArrowArrayStream {
    fn from(rows: RowStream) -> Self {
        Self::of(Box::new(rows))
    }
}

impl From<(Arc<ScanSchema>, ScanBatch)> for ArrowArrayStream {
    /// A stream of one batch.
    fn from((schema, batch): (Arc<ScanSchema>, ScanBatch)) -> Self {
        Self::of(Box::new(OneBatch { schema, batch: Some(batch) }))
    }
}

struct OneBatch {
    schema: Arc<ScanSchema>,
    batch: Option<ScanBatch>,
}

impl Batches for OneBatch {
    fn schema(&self) -> ArrowSchema {
        schema_of(&self.schema)
    }

    fn next_batch(&mut self) -> Result<Option<ArrowArray>> {
        Ok(self.batch.take().map(|batch| record_batch(batch, &self.schema)))
    }
}

impl Batches for RowStream {
    fn schema(&self) -> ArrowSchema {
        schema_of(self.schema())
    }

    fn next_batch(&mut self) -> Result<Option<ArrowArray>> {
        let batch = Self::next_batch(self)?;
        Ok(batch.map(|batch| record_batch(batch, self.schema())))
    }
}

pub(crate) fn schema_of(rows: &ScanSchema) -> ArrowSchema {
    let mut children = vec![
        required(schema("tsn:UTC", "time", Vec::new())),
        dictionary_of_texts("measurement"),
        map_of_texts("tags"),
    ];
    let columns = rows.columns.iter();
    children.extend(columns.map(|(name, of)| schema(format_of(*of), name, Vec::new())));
    schema("+s", "", children)
}

const fn format_of(field_type: FieldType) -> &'static str {
    match field_type {
        FieldType::Float => "g",
        FieldType::Bool => "b",
        FieldType::Text => "u",
    }
}

fn record_batch(batch: ScanBatch, schema: &ScanSchema) -> ArrowArray {
    let rows = batch.row_count;
    // As long as the longest buffer of a column: one offset more than rows, or a double for each
    // row.
    let zeros = LazyCell::new(|| Arc::new(vec![0; rows + 1]));
    let mut names = Texts::new();
    schema.measurements.iter().for_each(|name| names.push(name));
    let indices = vec![batch.measurement.cast_signed(); rows];
    let mut children = vec![
        array(rows, 0, vec![None, Some(ArrayBuffer::Ints(batch.times_ns))], Vec::new()),
        with_dictionary(
            rows,
            0,
            vec![None, Some(ArrayBuffer::Offsets(indices))],
            Vec::new(),
            Some(texts(names, None, 0)),
        ),
        maps(batch.tags, rows),
    ];
    let mut columns = batch.columns.into_iter().peekable();
    for (index, (_, field_type)) in schema.columns.iter().enumerate() {
        children.push(match columns.next_if(|(at, _)| *at == index) {
            Some((_, column)) => values(column, rows),
            None => empty(*field_type, rows, &zeros),
        });
    }
    array(rows, 0, vec![None], children)
}

fn values(column: ScanColumn, rows: usize) -> ArrowArray {
    let ScanColumn { validity, null_count, values } = column;
    let validity = validity.map(ArrayBuffer::Bytes);
    let values = match values {
        ScanValues::Float(values) => ArrayBuffer::Floats(values),
        ScanValues::Bool(bits) => ArrayBuffer::Bytes(bits),
        ScanValues::Text(values) => return texts(values, validity, null_count),
    };
    array(rows, null_count, vec![validity, Some(values)], Vec::new())
}

fn texts(texts: Texts, validity: Option<ArrayBuffer>, null_count: usize) -> ArrowArray {
    let rows = texts.offsets.len() - 1;
    let buffers = vec![
        validity,
        Some(ArrayBuffer::Offsets(texts.offsets)),
        Some(ArrayBuffer::Bytes(texts.bytes)),
    ];
    array(rows, null_count, buffers, Vec::new())
}

/// Makes a map for each row. Its texts are views, because readers that hold views, such as polars,
/// then take the columns as they are. Rows of a series share the bytes of their texts.
fn maps(tags: TagRuns, rows: usize) -> ArrowArray {
    let TagRuns { lengths, maps } = tags;
    let int32 = |number: usize| i32::try_from(number).expect("a batch has fewer tags");
    let (keys, values) = (views(&maps.keys), views(&maps.values));
    let entry_count_of = |(run, length): (usize, &usize)| length * maps.entries_of(run).len();
    let entry_count = lengths.iter().enumerate().map(entry_count_of).sum();
    let mut key_of_row = Vec::with_capacity(entry_count);
    let mut value_of_row = Vec::with_capacity(entry_count);
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0);
    for (run, length) in lengths.into_iter().enumerate() {
        let entries = maps.entries_of(run);
        extend_repeated(&mut key_of_row, &keys[entries.clone()], length);
        extend_repeated(&mut value_of_row, &values[entries.clone()], length);
        let (end, count) = (offsets[offsets.len() - 1], int32(entries.len()));
        offsets.extend((1..=int32(length)).map(|row| end + row * count));
    }
    let children =
        vec![viewed(key_of_row, maps.keys.bytes), viewed(value_of_row, maps.values.bytes)];
    let entries = array(entry_count, 0, vec![None], children);
    array(rows, 0, vec![None, Some(ArrayBuffer::Offsets(offsets))], vec![entries])
}

/// Makes the views of texts: the length, and then the whole of a short text. Of a longer text, the
/// first four bytes, the index of its buffer, and its offset there.
fn views(texts: &Texts) -> Vec<TextView> {
    let view = |index| {
        let text = texts.bytes_of(index);
        let (start, end) = (texts.offsets[index], texts.offsets[index + 1]);
        let mut view = [0; size_of::<TextView>()];
        view[..4].copy_from_slice(&(end - start).to_le_bytes());
        if let Some(inline) = view[4..].get_mut(..text.len()) {
            inline.copy_from_slice(text);
        } else {
            view[4..8].copy_from_slice(&text[..4]);
            view[12..].copy_from_slice(&start.to_le_bytes());
        }
        TextView::from_le_bytes(view)
    };
    (0..texts.offsets.len() - 1).map(view).collect()
}

fn viewed(views: Vec<TextView>, bytes: Vec<u8>) -> ArrowArray {
    let (count, lengths) = (views.len(), vec![int(bytes.len())]);
    let buffers =
        [ArrayBuffer::Views(views), ArrayBuffer::Bytes(bytes), ArrayBuffer::Ints(lengths)];
    let buffers = std::iter::once(None).chain(buffers.map(Some)).collect();
    array(count, 0, buffers, Vec::new())
}

/// Makes a column without values, which needs no memory of its own.
fn empty(field_type: FieldType, rows: usize, zeros: &Arc<Vec<u64>>) -> ArrowArray {
    let buffers = if field_type == FieldType::Text { 3 } else { 2 };
    let buffers = (0..buffers).map(|_| Some(ArrayBuffer::Zeros(Arc::clone(zeros)))).collect();
    array(rows, rows, buffers, Vec::new())
}
