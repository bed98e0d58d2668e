//! A [`Frame`] as an Arrow C stream of one batch (the Arrow project's "C data interface" and
//! "C stream interface"), so that any Arrow library takes it without a copy by us or a dependency.
//!
//! Ownership is the interface's: each structure carries a `release` that frees what it points to
//! and then marks itself released by clearing `release`; the consumer may move children out.
#![expect(unsafe_code, reason = "the C interface consists of raw pointers")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use fleetcast_core::query::{Frame, FrameColumn};

const FLAG_NULLABLE: i64 = 2;

/// `struct ArrowSchema` of the C data interface.
#[repr(C)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray` of the C data interface.
#[repr(C)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream` of the C stream interface.
#[repr(C)]
pub struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut Self, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Self, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

// SAFETY: a stream owns its private data alone, and the data is plain memory without ties to the
// thread that made it.
unsafe impl Send for ArrowArrayStream {}

/// Memory of a schema.
struct SchemaPrivate {
    format: CString,
    name: CString,
    children: Vec<*mut ArrowSchema>,
}

/// Memory of an array.
#[derive(Default)]
struct ArrayPrivate {
    memory: Vec<Buffer>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
}

/// Memory of one buffer.
enum Buffer {
    Bytes(Vec<u8>),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

struct StreamPrivate {
    schema: Vec<(String, &'static str)>,
    frame: Option<Frame>,
}

impl ArrowArrayStream {
    /// A stream that yields `frame` as one record batch.
    #[must_use]
    pub fn new(frame: Frame) -> Self {
        let schema =
            frame.columns.iter().map(|(name, column)| (name.clone(), format_of(column))).collect();
        let private = Box::new(StreamPrivate { schema, frame: Some(frame) });
        Self {
            get_schema: Some(stream_schema),
            get_next: Some(stream_next),
            get_last_error: Some(stream_error),
            release: Some(stream_release),
            private_data: Box::into_raw(private).cast(),
        }
    }
}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: `release` is still set, so nobody released this stream, and `self` is ours.
            unsafe { release(self) };
        }
    }
}

/// Format strings of the C data interface.
fn format_of(column: &FrameColumn) -> &'static str {
    match column {
        FrameColumn::TimeNs(_) => "tsn:UTC",
        FrameColumn::Float(_) => "g",
        FrameColumn::Bool(_) => "b",
        FrameColumn::Text(_) => "U",
    }
}

// SAFETY (of the four callbacks): the C stream interface promises that `stream` points to the
// live structure they were taken from, from one thread at a time, and that `out` is writable and
// holds nothing that needs a release.

unsafe extern "C" fn stream_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: see above; `private_data` was made from a Box<StreamPrivate> in `new`.
    unsafe {
        let private = &*(*stream).private_data.cast::<StreamPrivate>();
        let child = |(name, format): &(String, &str)| schema(format, name, Vec::new());
        let children = private.schema.iter().map(child).collect();
        out.write(schema("+s", "", children));
    }
    0
}

unsafe extern "C" fn stream_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: see above; `private_data` was made from a Box<StreamPrivate> in `new`.
    unsafe {
        let private = &mut *(*stream).private_data.cast::<StreamPrivate>();
        out.write(match private.frame.take() {
            Some(frame) => batch(frame),
            None => released_array(),
        });
    }
    0
}

unsafe extern "C" fn stream_error(_stream: *mut ArrowArrayStream) -> *const c_char {
    // No callback fails, so there is never a last error.
    ptr::null()
}

unsafe extern "C" fn stream_release(stream: *mut ArrowArrayStream) {
    // SAFETY: see above; the Box is taken back exactly once, since `release` is cleared.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamPrivate>()));
        (*stream).private_data = ptr::null_mut();
        (*stream).release = None;
    }
}

fn schema(format: &str, name: &str, children: Vec<ArrowSchema>) -> ArrowSchema {
    // A name cannot hold NUL in C; readers see the part before it.
    let name = name.split('\0').next().unwrap_or_default();
    let c_string = |text: &str| CString::new(text).expect("no NUL is left");
    let mut private = Box::new(SchemaPrivate {
        format: c_string(format),
        name: c_string(name),
        children: children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect(),
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

unsafe extern "C" fn schema_release(schema: *mut ArrowSchema) {
    // SAFETY: the consumer calls this once on a live structure made by `schema`; children that it
    // moved out have their `release` cleared, and their shells are still ours to free.
    unsafe {
        let private = Box::from_raw((*schema).private_data.cast::<SchemaPrivate>());
        for child in private.children {
            let mut child = Box::from_raw(child);
            if let Some(release) = child.release {
                release(&raw mut *child);
            }
        }
        (*schema).private_data = ptr::null_mut();
        (*schema).release = None;
    }
}

/// A struct array whose children are the columns.
fn batch(frame: Frame) -> ArrowArray {
    let rows = frame.row_count;
    let children = frame.columns.into_iter().map(|(_, column)| array_of(column)).collect();
    array(rows, 0, vec![None], children)
}

fn array_of(column: FrameColumn) -> ArrowArray {
    match column {
        FrameColumn::TimeNs(times) => {
            array(times.len(), 0, vec![None, Some(Buffer::Ints(times))], Vec::new())
        }
        FrameColumn::Float(values) => {
            let (validity, nulls) = bitmap(values.iter().map(|value| !value.is_nan()));
            let rows = values.len();
            array(rows, nulls, vec![Some(validity), Some(Buffer::Floats(values))], Vec::new())
        }
        FrameColumn::Bool(values) => {
            let (validity, nulls) = bitmap(values.iter().map(Option::is_some));
            let (bits, _) = bitmap(values.iter().map(|value| *value == Some(true)));
            array(values.len(), nulls, vec![Some(validity), Some(bits)], Vec::new())
        }
        FrameColumn::Text(values) => {
            let (validity, nulls) = bitmap(values.iter().map(Option::is_some));
            let mut offsets = vec![0];
            let mut bytes = Vec::new();
            for value in &values {
                bytes.extend_from_slice(value.as_deref().unwrap_or_default().as_bytes());
                offsets.push(int(bytes.len()));
            }
            let buffers =
                vec![Some(validity), Some(Buffer::Ints(offsets)), Some(Buffer::Bytes(bytes))];
            array(values.len(), nulls, buffers, Vec::new())
        }
    }
}

/// One bit per item, least significant first, and the number of clear bits.
fn bitmap(items: impl ExactSizeIterator<Item = bool>) -> (Buffer, usize) {
    let mut bytes = vec![0_u8; items.len().div_ceil(8)];
    let mut clear = 0;
    for (at, is_set) in items.enumerate() {
        if is_set {
            bytes[at / 8] |= 1 << (at % 8);
        } else {
            clear += 1;
        }
    }
    (Buffer::Bytes(bytes), clear)
}

fn array(
    rows: usize,
    nulls: usize,
    buffers: Vec<Option<Buffer>>,
    children: Vec<ArrowArray>,
) -> ArrowArray {
    let mut private = Box::<ArrayPrivate>::default();
    for buffer in buffers {
        // The memory of a Vec stays where it is when the Vec itself is moved into `memory`.
        let pointer = match &buffer {
            None => ptr::null(),
            Some(Buffer::Bytes(bytes)) => bytes.as_ptr().cast::<c_void>(),
            Some(Buffer::Ints(ints)) => ints.as_ptr().cast(),
            Some(Buffer::Floats(floats)) => floats.as_ptr().cast(),
        };
        private.buffers.push(pointer);
        private.memory.extend(buffer);
    }
    private.children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    ArrowArray {
        length: int(rows),
        null_count: int(nulls),
        offset: 0,
        n_buffers: int(private.buffers.len()),
        n_children: int(private.children.len()),
        buffers: private.buffers.as_mut_ptr(),
        children: private.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(array_release),
        private_data: Box::into_raw(private).cast(),
    }
}

/// Array that marks the end of a stream in `get_next`.
fn released_array() -> ArrowArray {
    ArrowArray {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: ptr::null_mut(),
        children: ptr::null_mut(),
        dictionary: ptr::null_mut(),
        release: None,
        private_data: ptr::null_mut(),
    }
}

unsafe extern "C" fn array_release(array: *mut ArrowArray) {
    // SAFETY: as in `schema_release`, for structures made by `array`.
    unsafe {
        let private = Box::from_raw((*array).private_data.cast::<ArrayPrivate>());
        for child in private.children {
            let mut child = Box::from_raw(child);
            if let Some(release) = child.release {
                release(&raw mut *child);
            }
        }
        (*array).private_data = ptr::null_mut();
        (*array).release = None;
    }
}

fn int(length: usize) -> i64 {
    i64::try_from(length).expect("lengths in memory fit 63 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::MaybeUninit;

    fn frame() -> Frame {
        let text = |text: &str| Some(text.to_owned());
        Frame {
            row_count: 3,
            columns: vec![
                ("id".to_owned(), FrameColumn::Text(vec![text("a"), None, text("é")])),
                ("time".to_owned(), FrameColumn::TimeNs(vec![1, 2, 3])),
                ("value".to_owned(), FrameColumn::Float(vec![0.5, f64::NAN, -0.0])),
                ("up".to_owned(), FrameColumn::Bool(vec![Some(true), None, Some(false)])),
            ],
        }
    }

    #[test]
    fn a_stream_gives_its_schema_one_batch_and_then_the_end() {
        let mut stream = ArrowArrayStream::new(frame());
        let mut schema = MaybeUninit::uninit();
        let mut array = MaybeUninit::uninit();
        // SAFETY: used as the interface demands: live stream, writable targets, one release each.
        unsafe {
            assert_eq!(stream.get_schema.unwrap()(&raw mut stream, schema.as_mut_ptr()), 0);
            let mut schema = schema.assume_init();
            assert_eq!(schema.n_children, 4);
            schema.release.unwrap()(&raw mut schema);
            assert!(schema.release.is_none());

            assert_eq!(stream.get_next.unwrap()(&raw mut stream, array.as_mut_ptr()), 0);
            let mut batch: ArrowArray = array.assume_init();
            assert_eq!((batch.length, batch.n_children), (3, 4));
            let value = &**batch.children.add(2);
            assert_eq!(value.null_count, 1);
            let values = (*value.buffers.add(1)).cast::<f64>();
            assert_eq!((*values, *values.add(2)), (0.5, -0.0));
            batch.release.unwrap()(&raw mut batch);

            let mut end = MaybeUninit::uninit();
            assert_eq!(stream.get_next.unwrap()(&raw mut stream, end.as_mut_ptr()), 0);
            assert!(end.assume_init().release.is_none());
        }
    }

    #[test]
    fn a_child_moved_out_by_the_consumer_outlives_its_parent() {
        let mut stream = ArrowArrayStream::new(frame());
        let mut array = MaybeUninit::uninit();
        // SAFETY: as above; the moved child is marked released in its parent, as the interface
        // asks, and released on its own.
        unsafe {
            stream.get_next.unwrap()(&raw mut stream, array.as_mut_ptr());
            let mut batch: ArrowArray = array.assume_init();
            let slot = *batch.children.add(1);
            let mut times = slot.read();
            (*slot).release = None;
            batch.release.unwrap()(&raw mut batch);
            assert_eq!(*(*times.buffers.add(1)).cast::<i64>().add(2), 3);
            times.release.unwrap()(&raw mut times);
        }
    }
}
