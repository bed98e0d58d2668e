//! Schemas: names and types of columns.

use std::ffi::CString;
use std::ptr;

use fleetcast_core::query::{Frame, FrameColumn};

use crate::interface::{ArrowSchema, int};

const FLAG_NULLABLE: i64 = 2;
const FLAG_KEYS_SORTED: i64 = 4;

/// Memory that a schema owns.
struct SchemaPrivate {
    format: CString,
    name: CString,
    children: Vec<*mut ArrowSchema>,
    dictionary: Option<*mut ArrowSchema>,
}

/// Format string of a column.
fn format_of(column: &FrameColumn) -> &'static str {
    match column {
        FrameColumn::TimeNs(_) => "tsn:UTC",
        FrameColumn::Float(_) => "g",
        FrameColumn::Bool(_) => "b",
        FrameColumn::Text(_) => "U",
    }
}

/// Makes the schema of the batches of a frame.
pub(crate) fn schema_of_frame(frame: &Frame) -> ArrowSchema {
    let columns = frame.columns.iter();
    schema("+s", "", columns.map(|(name, of)| schema(format_of(of), name, Vec::new())).collect())
}

/// Makes a schema that owns its children.
pub(crate) fn schema(format: &str, name: &str, children: Vec<ArrowSchema>) -> ArrowSchema {
    // A name cannot hold NUL in C; readers see the part before it.
    let name = name.split('\0').next().unwrap_or_default();
    let c_string = |text: &str| CString::new(text).expect("no NUL is left");
    let mut private = Box::new(SchemaPrivate {
        format: c_string(format),
        name: c_string(name),
        children: children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect(),
        dictionary: None,
    });
    ArrowSchema {
        format: private.format.as_ptr(),
        name: private.name.as_ptr(),
        metadata: ptr::null(),
        flags: FLAG_NULLABLE,
        n_children: int(private.children.len()),
        children: private.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(schema_release),
        private_data: Box::into_raw(private).cast(),
    }
}

/// Makes the schema of a column of texts from a dictionary.
pub(crate) fn dictionary_of_texts(name: &str) -> ArrowSchema {
    let texts = Box::into_raw(Box::new(schema("u", "", Vec::new())));
    let mut indices = required(schema("i", name, Vec::new()));
    // SAFETY: `schema` made the structure just now, and no other code has it yet.
    unsafe { (*indices.private_data.cast::<SchemaPrivate>()).dictionary = Some(texts) };
    indices.dictionary = texts;
    indices
}

/// Makes the schema of a column of maps with ascending keys. Keys and values are views of texts.
pub(crate) fn map_of_texts(name: &str) -> ArrowSchema {
    let key = required(schema("vu", "key", Vec::new()));
    let entries = required(schema("+s", "entries", vec![key, schema("vu", "value", Vec::new())]));
    let map = schema("+m", name, vec![entries]);
    ArrowSchema { flags: FLAG_KEYS_SORTED, ..map }
}

/// Returns the same schema, marked as having no missing values.
pub(crate) const fn required(mut schema: ArrowSchema) -> ArrowSchema {
    schema.flags = 0;
    schema
}

unsafe extern "C" fn schema_release(schema: *mut ArrowSchema) {
    // SAFETY: the consumer calls this once on a live structure made by `schema`. Children that it
    // moved out have their `release` cleared, and this code still frees their shells.
    unsafe {
        let private = Box::from_raw((*schema).private_data.cast::<SchemaPrivate>());
        for child in private.children.into_iter().chain(private.dictionary) {
            let mut child = Box::from_raw(child);
            if let Some(release) = child.release {
                release(&raw mut *child);
            }
        }
        (*schema).private_data = ptr::null_mut();
        (*schema).release = None;
    }
}
