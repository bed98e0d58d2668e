//! Pieces of a stream, each a batch of its own.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::CStr;
use std::mem::MaybeUninit;

use fleetcast_core::model::error::Result;
use fleetcast_core::model::fault::FaultCode;
use fleetcast_core::model::time::parse_ns;
use fleetcast_core::wire::columnar::{InputField, InputRows, InputTags, InputValues};

use super::field::{Field, invalid};
use super::mapping::Mapping;
use super::plan::{Measurement, Plan, Tags};
use super::texts::{offsets, texts};
use super::view::{OwnedArray, View};
use crate::interface::{ArrowArrayStream, ArrowSchema};

/// Rows of a piece at most.
const PIECE_ROWS_MAX: usize = 65_536;
/// Cells of a piece at most, unless a single row has more.
const PIECE_CELLS_MAX: usize = 1 << 22;
/// Bytes of text of a piece at most, unless a single row has more.
const PIECE_TEXT_BYTES_MAX: usize = 16 << 20;

/// Rows of a stream, in pieces that are small enough to be written as one.
pub struct RowReader {
    stream: ArrowArrayStream,
    root: Field,
    plan: Plan,
    /// The batch that is being read, and its next row.
    current: Option<(OwnedArray, usize)>,
    /// Index of the next row in all that is written.
    next_row: usize,
}

impl RowReader {
    /// Reads the schema of `stream`. Without a mapping it has to be that of a scan. The first row
    /// has the index `first_row`.
    ///
    /// # Errors
    /// [`fleetcast_core::model::error::Error::Invalid`] for a stream that fails, is none of rows, or
    /// whose columns do not fit.
    pub fn new(
        mut stream: ArrowArrayStream,
        mapping: Option<Mapping>,
        first_row: usize,
    ) -> Result<Self> {
        let root = schema_of(&mut stream)?;
        if root.format != "+s" {
            return Err(invalid(format!("the stream has {}, not rows", root.type_name())));
        }
        let plan = match mapping {
            None => Plan::of_scan(&root)?,
            Some(mapping) => Plan::of_mapping(&root, mapping)?,
        };
        Ok(Self { stream, root, plan, current: None, next_row: first_row })
    }

    /// Index of the next row.
    #[must_use]
    pub const fn next_row(&self) -> usize {
        self.next_row
    }

    /// Hands the next piece to `write`; `None` where there is none left. The next call goes on
    /// behind it, whatever `write` gave.
    ///
    /// # Errors
    /// [`fleetcast_core::model::error::Error::Invalid`] where the stream fails, or a column has what
    /// cannot be stored.
    pub fn with_next<R>(&mut self, write: impl FnOnce(&InputRows<'_>) -> R) -> Result<Option<R>> {
        loop {
            if self.current.is_none() {
                let Some(batch) = next_array(&mut self.stream)? else { return Ok(None) };
                self.current = Some((batch, 0));
            }
            let Some((batch, start)) = &mut self.current else { return Ok(None) };
            let left = usize::try_from(batch.0.length).unwrap_or(0).saturating_sub(*start);
            if left == 0 {
                self.current = None;
                continue;
            }
            let cells = PIECE_CELLS_MAX / (self.root.children.len() + 1);
            let mut count = left.min(PIECE_ROWS_MAX).min(cells.max(1));
            loop {
                let view = View::new(&batch.0, &self.root, *start, count)?;
                let rows = self.plan.rows(&view, self.next_row)?;
                if count > 1 && text_bytes(&rows) > PIECE_TEXT_BYTES_MAX {
                    count /= 2;
                    continue;
                }
                *start += count;
                self.next_row += count;
                return Ok(Some(write(&rows)));
            }
        }
    }
}

/// Times of rows, and the rows that have none.
type Times<'a> = (Cow<'a, [i64]>, Vec<(usize, FaultCode)>);

fn text_bytes(rows: &InputRows<'_>) -> usize {
    let of_field = |field: &InputField<'_>| match &field.values {
        InputValues::Text(texts) => texts.iter().map(|text| text.len()).sum(),
        _ => 0,
    };
    rows.fields.iter().map(of_field).sum()
}

impl Plan {
    fn rows<'a>(&'a self, view: &View<'a>, first_row: usize) -> Result<InputRows<'a>> {
        let (times_ns, time_faults) = self.times(&view.child(self.time)?)?;
        let (measurements, measurement_of) = match &self.measurement {
            Measurement::Name(name) => (vec![Some(name.as_str())], Vec::new()),
            Measurement::Column(column) => measurements(&view.child(*column)?)?,
        };
        let mut fields = Vec::with_capacity(self.fields.len());
        for (name, column) in &self.fields {
            let column = view.child(*column)?;
            let present = column.present()?;
            // A column without a value may have any type, such as none.
            if present.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            fields.push(InputField { name, present, values: column.field_values()? });
        }
        Ok(InputRows {
            row_count: view.rows,
            first_row,
            times_ns,
            time_faults,
            measurements,
            measurement_of,
            tags: self.tags(view)?,
            fields,
        })
    }

    fn times<'a>(&self, view: &View<'a>) -> Result<Times<'a>> {
        let mut faults = Vec::new();
        let Some(unit_ns) = self.unit_ns else {
            let mut times_ns = Vec::with_capacity(view.rows);
            for (row, text) in texts(view)?.into_iter().enumerate() {
                let time_ns = text.map(parse_ns);
                match time_ns {
                    None => faults.push((row, FaultCode::DatetimeType)),
                    Some(None) => faults.push((row, FaultCode::DatetimeParsing)),
                    Some(Some(_)) => {}
                }
                times_ns.push(time_ns.flatten().unwrap_or_default());
            }
            return Ok((times_ns.into(), faults));
        };
        let mut times_ns = view.integers()?;
        for (row, is_valid) in view.validity()?.into_iter().enumerate() {
            if !is_valid {
                faults.push((row, FaultCode::DatetimeType));
            } else if times_ns[row].checked_mul(unit_ns).is_none() {
                faults.push((row, FaultCode::DatetimeParsing));
            }
        }
        if unit_ns != 1 {
            for time in times_ns.to_mut() {
                *time = time.wrapping_mul(unit_ns);
            }
        }
        Ok((times_ns, faults))
    }

    fn tags<'a>(&'a self, view: &View<'a>) -> Result<InputTags<'a>> {
        let (columns, fixed) = match &self.tags {
            Tags::Map(column) => return maps(&view.child(*column)?),
            Tags::Columns { columns, fixed } => (columns, fixed),
        };
        let mut named = Vec::with_capacity(columns.len());
        for (key, column) in columns {
            named.push((key.as_str(), tag_values(&view.child(*column)?)?));
        }
        let fixed = fixed.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        Ok(InputTags::Columns { columns: named, fixed })
    }
}

/// Values of a tag: texts, or integers in their shortest spelling.
fn tag_values<'a>(view: &View<'a>) -> Result<Vec<Option<Cow<'a, [u8]>>>> {
    if view.field.is_integer() && view.field.dictionary.is_none() {
        let numbers = view.integers()?;
        let values = numbers.iter().zip(view.validity()?);
        let text = |(number, is_valid): (&i64, bool)| {
            is_valid.then(|| Cow::Owned(number.to_string().into_bytes()))
        };
        return Ok(values.map(text).collect());
    }
    Ok(texts(view)?.into_iter().map(|text| text.map(Cow::Borrowed)).collect())
}

fn maps<'a>(view: &View<'a>) -> Result<InputTags<'a>> {
    let widen = |offset: i32| usize::try_from(offset).ok();
    let mut offsets = match view.field.format.as_str() {
        "+L" => offsets::<i64>(view, |offset| usize::try_from(offset).ok())?,
        _ => offsets::<i32>(view, widen)?,
    };
    let first = offsets[0];
    let count = offsets[offsets.len() - 1] - first;
    for offset in &mut offsets {
        *offset -= first;
    }
    let entries = View::new(view.child_array(0)?, &view.field.children[0], first, count)?;
    let (keys, values) = (texts(&entries.child(0)?)?, texts(&entries.child(1)?)?);
    Ok(InputTags::Maps { offsets, keys, values })
}

/// Distinct names of measurements, and the index of that of each row.
fn measurements<'a>(view: &View<'a>) -> Result<(Vec<Option<&'a str>>, Vec<u32>)> {
    let mut names = Vec::new();
    let mut index_of: HashMap<Option<&'a [u8]>, u32> = HashMap::new();
    let mut measurement_of: Vec<u32> = Vec::with_capacity(view.rows);
    let texts = texts(view)?;
    for of_name in texts.chunk_by(|a, b| a == b) {
        let next = u32::try_from(names.len()).expect("fewer names than rows");
        let index = *index_of.entry(of_name[0]).or_insert(next);
        if index == next {
            let name = of_name[0].map(std::str::from_utf8).transpose();
            let broken = || format!("column {:?} has text that is not UTF-8", view.field.name);
            names.push(name.map_err(|_| invalid(broken()))?);
        }
        measurement_of.resize(measurement_of.len() + of_name.len(), index);
    }
    Ok((names, measurement_of))
}

fn schema_of(stream: &mut ArrowArrayStream) -> Result<Field> {
    let mut schema = MaybeUninit::<ArrowSchema>::uninit();
    let get_schema = stream.get_schema.ok_or_else(|| invalid("the stream was taken before"))?;
    // SAFETY: the stream is live, since its callbacks are there, and `schema` is ours to write.
    let code = unsafe { get_schema(&raw mut *stream, schema.as_mut_ptr()) };
    if code != 0 {
        return Err(stream_error(stream, code));
    }
    // SAFETY: `get_schema` has written it; it is released once, here.
    unsafe {
        let mut schema = schema.assume_init();
        let root = Field::of(&schema, 0);
        if let Some(release) = schema.release {
            release(&raw mut schema);
        }
        root
    }
}

fn next_array(stream: &mut ArrowArrayStream) -> Result<Option<OwnedArray>> {
    let mut array = MaybeUninit::uninit();
    let get_next = stream.get_next.ok_or_else(|| invalid("the stream was taken before"))?;
    // SAFETY: as in `schema_of`.
    let code = unsafe { get_next(&raw mut *stream, array.as_mut_ptr()) };
    if code != 0 {
        return Err(stream_error(stream, code));
    }
    // SAFETY: `get_next` has written it; from here on it is released where it is dropped.
    let array = OwnedArray(unsafe { array.assume_init() });
    Ok(array.0.release.is_some().then_some(array))
}

fn stream_error(stream: &mut ArrowArrayStream, code: i32) -> fleetcast_core::model::error::Error {
    let message = stream.get_last_error.and_then(|get_last_error| {
        // SAFETY: the stream is live, and the text stays until the next call.
        unsafe {
            let text = get_last_error(&raw mut *stream);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    });
    let message = message.unwrap_or_else(|| format!("error {code}"));
    invalid(format!("the stream failed: {message}"))
}
