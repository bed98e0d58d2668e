//! Pieces of a stream. Each piece is written as its own batch.

use std::borrow::Cow;
use std::ffi::CStr;
use std::mem::MaybeUninit;

use fleetcast_core::model::error::Result;
use fleetcast_core::model::fault::FaultCode;
use fleetcast_core::model::time::parse_ns;
use fleetcast_core::wire::columnar::{InputField, InputRows, InputValues};

use super::field::{ArrowField, invalid};
use super::keys::RowKeys;
use super::mapping::ColumnMapping;
use super::plan::ColumnPlan;
use super::texts::TextColumn;
use super::view::{ArrayView, OwnedArray};
use crate::interface::{ArrowArrayStream, ArrowSchema};

/// Bound on the rows of a piece.
const PIECE_ROWS_MAX: usize = 65_536;
/// Bound on the cells of a piece, to bound its memory. A single row may have more.
const PIECE_CELLS_MAX: usize = 1 << 22;
/// Bound on the bytes of text of a piece, to bound its memory. A single row may have more.
const PIECE_TEXT_BYTES_MAX: usize = 16 << 20;

/// Rows of a stream, in pieces that are small enough to be written as one batch.
pub struct RowReader {
    stream: ArrowArrayStream,
    root: ArrowField,
    plan: ColumnPlan,
    /// The batch that is being read, and the index of its next row.
    current: Option<(OwnedArray, usize)>,
    /// Index of the next row in the whole input.
    next_row: usize,
}

impl RowReader {
    /// Reads the schema of `stream`. Without a mapping it must be the schema of a scan. The first
    /// row has the index `first_row`.
    ///
    /// # Errors
    /// Returns [`fleetcast_core::model::error::Error::Invalid`] if the stream fails, if it does not
    /// consist of rows, or if its columns do not fit.
    pub fn new(
        mut stream: ArrowArrayStream,
        mapping: Option<ColumnMapping>,
        first_row: usize,
    ) -> Result<Self> {
        let root = schema_of(&mut stream)?;
        if root.format != "+s" {
            return Err(invalid(format!("the stream has {}, not rows", root.type_name())));
        }
        let plan = match mapping {
            None => ColumnPlan::of_scan(&root)?,
            Some(mapping) => ColumnPlan::of_mapping(&root, mapping)?,
        };
        Ok(Self { stream, root, plan, current: None, next_row: first_row })
    }

    /// Index of the next row.
    #[must_use]
    pub const fn next_row(&self) -> usize {
        self.next_row
    }

    /// Passes the next piece to `write`. Returns `None` if no piece is left. The next call
    /// continues after the piece, even if `write` returned an error.
    ///
    /// # Errors
    /// Returns [`fleetcast_core::model::error::Error::Invalid`] if the stream fails, or if a column
    /// holds values that cannot be stored.
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
                let view = ArrayView::new(&batch.0, &self.root, *start, count)?;
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

/// Times of rows, and the rows without a valid time.
type Times<'a> = (Cow<'a, [i64]>, Vec<(usize, FaultCode)>);

fn text_bytes(rows: &InputRows<'_>) -> usize {
    let of_field = |field: &InputField<'_>| match &field.values {
        InputValues::Text(texts) => texts.iter().map(|text| text.len()).sum(),
        _ => 0,
    };
    rows.fields.iter().map(of_field).sum()
}

impl ColumnPlan {
    fn rows<'a>(&'a self, view: &ArrayView<'a>, first_row: usize) -> Result<InputRows<'a>> {
        let (times_ns, time_faults) = self.times(&view.child(self.time)?)?;
        let RowKeys { distinct: keys, of_row: key_of, tags } = self.keys(view)?;
        let mut fields = Vec::with_capacity(self.fields.len());
        for (name, column) in &self.fields {
            let column = view.child(*column)?;
            let present = column.present()?;
            // A column without values may have any type, also the null type.
            if present.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            fields.push(InputField { name, present, values: column.field_values()? });
        }
        let row_count = view.rows;
        Ok(InputRows { row_count, first_row, times_ns, time_faults, keys, key_of, tags, fields })
    }

    fn times<'a>(&self, view: &ArrayView<'a>) -> Result<Times<'a>> {
        let Some(unit_ns) = self.unit_ns else { return times_of_texts(view) };
        let mut times_ns = view.integers()?;
        let mut faults = Vec::new();
        let validity = view.validity()?;
        let is_valid = |row: usize| validity.is_none_or(|validity| validity.is_set(row));
        // The fold has no early end, so that the compiler uses wide instructions. Unsigned integers
        // beyond `i64` are read as its maximum.
        let max = i64::MAX - i64::from(view.field.is_u64());
        let (min, max) = (i64::MIN / unit_ns, max / unit_ns);
        let is_in_range = |time: &i64| (min..=max).contains(time);
        if validity.is_some() || !times_ns.iter().fold(true, |all, time| all & is_in_range(time)) {
            for (row, time) in times_ns.iter().enumerate() {
                if !is_valid(row) {
                    faults.push((row, FaultCode::DatetimeType));
                } else if !is_in_range(time) {
                    faults.push((row, FaultCode::DatetimeParsing));
                }
            }
        }
        if unit_ns != 1 {
            for time in times_ns.to_mut() {
                *time = time.wrapping_mul(unit_ns);
            }
        }
        Ok((times_ns, faults))
    }
}

fn times_of_texts<'a>(view: &ArrayView<'a>) -> Result<Times<'a>> {
    let texts = TextColumn::new(view)?;
    let mut faults = Vec::new();
    let mut times_ns = Vec::with_capacity(view.rows);
    for row in 0..view.rows {
        let time_ns = texts.get(row).map(parse_ns);
        match time_ns {
            None => faults.push((row, FaultCode::DatetimeType)),
            Some(None) => faults.push((row, FaultCode::DatetimeParsing)),
            Some(Some(_)) => {}
        }
        times_ns.push(time_ns.flatten().unwrap_or_default());
    }
    Ok((times_ns.into(), faults))
}

fn schema_of(stream: &mut ArrowArrayStream) -> Result<ArrowField> {
    let mut schema = MaybeUninit::<ArrowSchema>::uninit();
    let get_schema = stream.get_schema.ok_or_else(|| invalid("the stream was taken before"))?;
    // SAFETY: the stream is live, since its callbacks are there, and `schema` is ours to write.
    let code = unsafe { get_schema(&raw mut *stream, schema.as_mut_ptr()) };
    if code != 0 {
        return Err(stream_error(stream, code));
    }
    // SAFETY: `get_schema` has written the schema, which is released once, here.
    unsafe {
        let mut schema = schema.assume_init();
        let root = ArrowField::of(&schema, 0);
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
    // SAFETY: `get_next` has written the array, which is released when it is dropped.
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
