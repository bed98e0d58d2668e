//! Rows of a scan as a stream of messages (the Arrow project's "IPC streaming format"), for
//! programs that read them over a network.

use std::collections::VecDeque;

use fleetcast_core::model::batch::FieldType;
use fleetcast_core::model::error::Result;
use fleetcast_core::plane::RowStream;
use fleetcast_core::query::scan::{ScanBatch, ScanColumn, ScanSchema, ScanValues, Texts};

use crate::flatbuffer::{Slot, align, children, pairs, table, text};

const VERSION_5: i16 = 4;
/// Begins a message and, with a length of 0, ends the stream.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Kinds of messages.
const SCHEMA: u8 = 1;
const DICTIONARY: u8 = 2;
const BATCH: u8 = 3;
/// Kinds of types.
const FLOATING_POINT: u8 = 3;
const UTF8: u8 = 5;
const BOOL: u8 = 6;
const TIMESTAMP: u8 = 10;
const STRUCT: u8 = 13;
const MAP: u8 = 17;
const DOUBLE: i16 = 2;
const NANOSECONDS: i16 = 3;
/// Bytes by which buffers are aligned.
const ALIGNMENT: usize = 8;

/// The messages of a scan, piece by piece.
pub struct RowMessages {
    rows: RowStream,
    /// Messages that are made already.
    ready: VecDeque<Vec<u8>>,
    rows_left: usize,
    is_over: bool,
}

impl RowMessages {
    /// Makes the messages of `rows`. The stream ends after the batch with row `rows_max`.
    #[must_use]
    pub fn new(rows: RowStream, rows_max: usize) -> Self {
        let ready = [schema_message(rows.schema()), measurements_message(rows.schema())];
        Self { rows, ready: ready.into(), rows_left: rows_max, is_over: false }
    }

    /// Returns the next messages. Returns `None` after the end of the stream.
    ///
    /// # Errors
    /// Returns the errors of [`RowStream::next_batch`].
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>> {
        if let Some(message) = self.ready.pop_front() {
            return Ok(Some(message));
        }
        if self.is_over {
            return Ok(None);
        }
        let next = if self.rows_left == 0 { None } else { self.rows.next_batch()? };
        let Some(batch) = next else {
            self.is_over = true;
            return Ok(Some([CONTINUATION, [0; 4]].concat()));
        };
        self.rows_left = self.rows_left.saturating_sub(batch.row_count);
        Ok(Some(batch_message(&batch, self.rows.schema())))
    }
}

/// Makes a message. `head` writes what the message tells, as a child of its table.
fn message(kind: u8, body: &[u8], head: impl FnOnce(&mut Vec<u8>, usize)) -> Vec<u8> {
    let body_bytes = i64::try_from(body.len()).expect("a length in memory fits 63 bits");
    let mut metadata = vec![0; 4]; // the way to the first table
    let slots = [Slot::Short(VERSION_5), Slot::Byte(kind), Slot::Child, Slot::Long(body_bytes)];
    let holder = table(&mut metadata, 0, &slots)[0];
    head(&mut metadata, holder);
    align(&mut metadata, ALIGNMENT);
    let length = u32::try_from(metadata.len()).expect("metadata has less than 4 GiB");
    [&CONTINUATION, &length.to_le_bytes()[..], &metadata, body].concat()
}

/// A type: its kind, the fields of its table, and a text in it.
type TypeParts = (u8, &'static [Slot], Option<&'static str>);

const TEXT: TypeParts = (UTF8, &[], None);

fn schema_message(schema: &ScanSchema) -> Vec<u8> {
    message(SCHEMA, &[], |out, holder| {
        let fields = table(out, holder, &[Slot::Default, Slot::Child])[0];
        let columns = children(out, fields, 3 + schema.columns.len());
        let time = (TIMESTAMP, &[Slot::Short(NANOSECONDS), Slot::Child][..], Some("UTC"));
        field(out, columns[0], "time", false, time, 0);
        measurement_field(out, columns[1]);
        let entries = field(out, columns[2], "tags", false, (MAP, &[Slot::Byte(1)], None), 1);
        let pair = field(out, entries[0], "entries", false, (STRUCT, &[], None), 2);
        field(out, pair[0], "key", false, TEXT, 0);
        field(out, pair[1], "value", true, TEXT, 0);
        for ((name, field_type), holder) in schema.columns.iter().zip(&columns[3..]) {
            let parts = match field_type {
                FieldType::Float => (FLOATING_POINT, &[Slot::Short(DOUBLE)][..], None),
                FieldType::Bool => (BOOL, &[][..], None),
                FieldType::Text => TEXT,
            };
            field(out, *holder, name, true, parts, 0);
        }
    })
}

/// Writes a field with `child_count` children. Returns the positions of the children.
fn field(
    out: &mut Vec<u8>,
    holder: usize,
    name: &str,
    is_nullable: bool,
    (kind, slots, text_of_type): TypeParts,
    child_count: usize,
) -> Vec<usize> {
    let nullable = Slot::Byte(u8::from(is_nullable));
    let held = [Slot::Child, nullable, Slot::Byte(kind), Slot::Child, Slot::Default, Slot::Child];
    let parts = table(out, holder, &held);
    text(out, parts[0], name);
    let of_type = table(out, parts[1], slots);
    if let (Some(value), Some(holder)) = (text_of_type, of_type.first()) {
        text(out, *holder, value);
    }
    children(out, parts[2], child_count)
}

/// Writes the field of the measurement: an index into the texts of the dictionary 0.
fn measurement_field(out: &mut Vec<u8>, holder: usize) {
    let held =
        [Slot::Child, Slot::Default, Slot::Byte(UTF8), Slot::Child, Slot::Child, Slot::Child];
    let parts = table(out, holder, &held);
    text(out, parts[0], "measurement");
    table(out, parts[1], &[]);
    let index = table(out, parts[2], &[Slot::Long(0), Slot::Child])[0];
    table(out, index, &[Slot::Int(32), Slot::Byte(1)]);
    children(out, parts[3], 0);
}

fn measurements_message(schema: &ScanSchema) -> Vec<u8> {
    let mut names = Texts::new();
    schema.measurements.iter().for_each(|name| names.push(name));
    let mut arrays = Arrays::default();
    arrays.texts(&names, None, 0);
    message(DICTIONARY, &arrays.body, |out, holder| {
        let data = table(out, holder, &[Slot::Long(0), Slot::Child])[0];
        arrays.describe(out, data, schema.measurements.len());
    })
}

fn batch_message(batch: &ScanBatch, schema: &ScanSchema) -> Vec<u8> {
    let rows = batch.row_count;
    let mut arrays = Arrays::default();
    arrays.node(rows, 0, None);
    arrays.numbers(batch.times_ns.iter().map(|time| time.to_le_bytes()));
    arrays.node(rows, 0, None);
    let index = batch.measurement.to_le_bytes();
    arrays.numbers(std::iter::repeat_n(index, rows));
    arrays.node(rows, 0, None);
    let tags = batch.tags.by_row();
    arrays.numbers(tags.offsets.iter().map(|offset| offset.to_le_bytes()));
    arrays.node(tags.keys.offsets.len() - 1, 0, None);
    arrays.texts(&tags.keys, None, 0);
    arrays.texts(&tags.values, None, 0);
    let mut columns = batch.columns.iter().peekable();
    for (at, (_, field_type)) in schema.columns.iter().enumerate() {
        match columns.next_if(|(index, _)| *index == at) {
            Some((_, column)) => arrays.column(column, rows),
            None => arrays.empty(*field_type, rows),
        }
    }
    message(BATCH, &arrays.body, |out, holder| arrays.describe(out, holder, rows))
}

/// The arrays of a batch: lengths and nulls of each, and their buffers in one body.
#[derive(Default)]
struct Arrays {
    /// Length and number of nulls.
    nodes: Vec<(i64, i64)>,
    /// Start and length in the body.
    buffers: Vec<(i64, i64)>,
    body: Vec<u8>,
    /// Zeros in the body that all columns without values share.
    zeros: Option<(i64, i64)>,
}

impl Arrays {
    /// Begins an array with its bits of validity.
    fn node(&mut self, rows: usize, null_count: usize, validity: Option<&[u8]>) {
        self.nodes.push((long(rows), long(null_count)));
        self.buffer(validity.unwrap_or_default());
    }

    fn buffer(&mut self, bytes: &[u8]) {
        self.put(|body| body.extend_from_slice(bytes));
    }

    /// Adds a buffer of numbers, each as its bytes.
    fn numbers<const N: usize>(&mut self, numbers: impl ExactSizeIterator<Item = [u8; N]>) {
        self.put(|body| {
            body.reserve(N * numbers.len());
            numbers.for_each(|number| body.extend_from_slice(&number));
        });
    }

    /// Adds the buffer that `write` appends to the body.
    fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.body.len();
        write(&mut self.body);
        self.buffers.push((long(start), long(self.body.len() - start)));
        align(&mut self.body, ALIGNMENT);
    }

    fn texts(&mut self, texts: &Texts, validity: Option<&[u8]>, null_count: usize) {
        self.node(texts.offsets.len() - 1, null_count, validity);
        self.numbers(texts.offsets.iter().map(|offset| offset.to_le_bytes()));
        self.buffer(&texts.bytes);
    }

    fn column(&mut self, column: &ScanColumn, rows: usize) {
        let validity = column.validity.as_deref();
        match &column.values {
            ScanValues::Text(values) => self.texts(values, validity, column.null_count),
            ScanValues::Float(values) => {
                self.node(rows, column.null_count, validity);
                self.numbers(values.iter().map(|value| value.to_le_bytes()));
            }
            ScanValues::Bool(bits) => {
                self.node(rows, column.null_count, validity);
                self.buffer(bits);
            }
        }
    }

    /// Adds a column without values.
    fn empty(&mut self, field_type: FieldType, rows: usize) {
        let zeros = self.zeros.unwrap_or_else(|| {
            let start = self.body.len();
            // As long as the longest buffer of a column: a double for each row, and one more.
            self.body.resize(start + ALIGNMENT * (rows + 1), 0);
            (long(start), long(self.body.len() - start))
        });
        self.zeros = Some(zeros);
        let (start, _) = zeros;
        let bits = rows.div_ceil(8);
        self.nodes.push((long(rows), long(rows)));
        self.buffers.push((start, long(bits)));
        match field_type {
            FieldType::Float => self.buffers.push((start, long(8 * rows))),
            FieldType::Bool => self.buffers.push((start, long(bits))),
            FieldType::Text => self.buffers.extend([(start, long(4 * (rows + 1))), (start, 0)]),
        }
    }

    /// Writes the table of a batch.
    fn describe(&self, out: &mut Vec<u8>, holder: usize, rows: usize) {
        let parts = table(out, holder, &[Slot::Long(long(rows)), Slot::Child, Slot::Child]);
        pairs(out, parts[0], &self.nodes);
        pairs(out, parts[1], &self.buffers);
    }
}

fn long(number: usize) -> i64 {
    i64::try_from(number).expect("a length in memory fits 63 bits")
}
