//! A producer of Arrow C streams, like any Arrow library. It hands out the given data, and checks
//! that each structure comes back once.
//!
//! It keeps only the memory rules of the interface: each structure has as many children and buffers
//! as it says, and each buffer is a separate allocation of exact length.
#![expect(unsafe_code, reason = "the C interface consists of raw pointers")]

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use fleetcast_arrow::ArrowArrayStream;

thread_local! {
    /// Structures that were handed out and not released.
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

/// Returns the number of structures that this thread handed out and that were not released.
#[must_use]
pub(crate) fn live_structures() -> usize {
    LIVE.get()
}

/// A type.
pub(crate) struct Type {
    /// Format string of the interface.
    pub(crate) format: CString,
    /// Name of the column.
    pub(crate) name: CString,
    /// Types of its children.
    pub(crate) children: Vec<Self>,
    /// Type of the texts in its dictionary.
    pub(crate) dictionary: Option<Box<Self>>,
}

/// Rows of a type.
#[derive(Default)]
pub(crate) struct Data {
    /// Number of rows.
    pub(crate) length: i64,
    /// Rows without a value.
    pub(crate) null_count: i64,
    /// Rows of the buffers that precede the first row.
    pub(crate) offset: i64,
    /// The buffers; `None` is a null pointer.
    pub(crate) buffers: Vec<Option<Box<[u8]>>>,
    /// Rows of its children.
    pub(crate) children: Vec<Self>,
    /// Texts of its dictionary.
    pub(crate) dictionary: Option<Box<Self>>,
}

/// Batches, or the code of an error.
pub(crate) type Batches = VecDeque<Result<Data, c_int>>;

#[repr(C)]
struct Schema {
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

#[repr(C)]
struct Array {
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

#[repr(C)]
struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Self, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Self, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// Memory of a structure: its data, pointers to its buffers, and its children.
struct Owned<O, S> {
    content: O,
    buffers: Vec<*const c_void>,
    children: Vec<*mut S>,
    dictionary: *mut S,
}

struct Source {
    schema: Option<Type>,
    batches: Batches,
}

/// Makes a stream of `schema` and `batches`. The stream fails if there is no schema.
#[must_use]
pub(crate) fn stream(schema: Option<Type>, batches: Batches) -> ArrowArrayStream {
    LIVE.set(LIVE.get() + 1);
    let source = Box::into_raw(Box::new(Source { schema, batches }));
    let mut stream = Stream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: source.cast(),
    };
    // SAFETY: the stream is live, has the structure of the interface, and is moved out.
    unsafe { ArrowArrayStream::take((&raw mut stream).cast()) }
}

fn schema_of(of: Type) -> Schema {
    LIVE.set(LIVE.get() + 1);
    let Type { format, name, children, dictionary } = of;
    let boxed = |of: Type| Box::into_raw(Box::new(schema_of(of)));
    let mut owned = Box::new(Owned {
        buffers: Vec::new(),
        children: children.into_iter().map(boxed).collect(),
        dictionary: dictionary.map_or(ptr::null_mut(), |of| boxed(*of)),
        content: (format, name),
    });
    Schema {
        format: owned.content.0.as_ptr(),
        name: owned.content.1.as_ptr(),
        metadata: ptr::null(),
        flags: 2,
        n_children: count(owned.children.len()),
        children: owned.children.as_mut_ptr(),
        dictionary: owned.dictionary,
        release: Some(release_schema),
        private_data: Box::into_raw(owned).cast(),
    }
}

fn array_of(data: Data) -> Array {
    LIVE.set(LIVE.get() + 1);
    let Data { length, null_count, offset, buffers, children, dictionary } = data;
    let boxed = |data: Data| Box::into_raw(Box::new(array_of(data)));
    let address = |buffer: &Option<Box<[u8]>>| {
        buffer.as_ref().map_or(ptr::null(), |bytes| bytes.as_ptr().cast())
    };
    let mut owned = Box::new(Owned {
        children: children.into_iter().map(boxed).collect(),
        dictionary: dictionary.map_or(ptr::null_mut(), |data| boxed(*data)),
        buffers: buffers.iter().map(address).collect(),
        content: buffers,
    });
    Array {
        length,
        null_count,
        offset,
        n_buffers: count(owned.buffers.len()),
        n_children: count(owned.children.len()),
        buffers: owned.buffers.as_mut_ptr(),
        children: owned.children.as_mut_ptr(),
        dictionary: owned.dictionary,
        release: Some(release_array),
        private_data: Box::into_raw(owned).cast(),
    }
}

fn count(length: usize) -> i64 {
    i64::try_from(length).expect("small")
}

// SAFETY (of all callbacks): consumers keep the rules of the interface. They pass the live
// structure that holds the callback, release it once, and pass memory that may be written.

unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut Schema) -> c_int {
    // SAFETY: see above.
    unsafe {
        let source = &mut *(*stream).private_data.cast::<Source>();
        let Some(schema) = source.schema.take() else { return 5 };
        out.write(schema_of(schema));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut Array) -> c_int {
    // SAFETY: see above.
    unsafe {
        let source = &mut *(*stream).private_data.cast::<Source>();
        match source.batches.pop_front() {
            Some(Ok(data)) => out.write(array_of(data)),
            Some(Err(code)) => return code,
            // A structure without a release marks the end.
            None => out.write(std::mem::zeroed()),
        }
    }
    0
}

unsafe extern "C" fn get_last_error(_: *mut Stream) -> *const c_char {
    ptr::null()
}

unsafe extern "C" fn release_stream(stream: *mut Stream) {
    LIVE.set(LIVE.get() - 1);
    // SAFETY: see above.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<Source>()));
        (*stream).release = None;
    }
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    LIVE.set(LIVE.get() - 1);
    // SAFETY: see above; children that were not moved out are released with it.
    unsafe {
        let owned =
            Box::from_raw((*schema).private_data.cast::<Owned<(CString, CString), Schema>>());
        let dictionary = (!owned.dictionary.is_null()).then_some(owned.dictionary);
        for child in owned.children.iter().copied().chain(dictionary) {
            let mut child = Box::from_raw(child);
            if let Some(release) = child.release {
                release(&raw mut *child);
            }
        }
        (*schema).release = None;
    }
}

unsafe extern "C" fn release_array(array: *mut Array) {
    LIVE.set(LIVE.get() - 1);
    // SAFETY: see above; children that were not moved out are released with it.
    unsafe {
        let owned =
            Box::from_raw((*array).private_data.cast::<Owned<Vec<Option<Box<[u8]>>>, Array>>());
        let dictionary = (!owned.dictionary.is_null()).then_some(owned.dictionary);
        for child in owned.children.iter().copied().chain(dictionary) {
            let mut child = Box::from_raw(child);
            if let Some(release) = child.release {
                release(&raw mut *child);
            }
        }
        (*array).release = None;
    }
}
