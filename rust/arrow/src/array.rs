//! Arrays: the values of columns.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use fleetcast_core::query::{Frame, FrameColumn};

use crate::interface::{ArrowArray, int};

/// Memory that an array owns.
#[derive(Default)]
struct ArrayPrivate {
    memory: Vec<ArrayBuffer>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: Option<*mut ArrowArray>,
}

/// A text of a column of views, in the layout of Arrow.
pub(crate) type TextView = u128;

/// Memory of one buffer.
pub(crate) enum ArrayBuffer {
    Bytes(Vec<u8>),
    Ints(Vec<i64>),
    Offsets(Vec<i32>),
    Floats(Vec<f64>),
    Views(Vec<TextView>),
    /// Zeros that all columns of a batch without values share.
    Zeros(Arc<Vec<u64>>),
    /// Numbers of the frame's column with this index.
    Column(Arc<Frame>, usize),
}

/// Makes a struct array whose children are the columns. The numbers stay in the frame.
pub(crate) fn batch(frame: &Arc<Frame>) -> ArrowArray {
    let children = (0..frame.columns.len()).map(|column| array_of(frame, column)).collect();
    array(frame.row_count, 0, vec![None], children)
}

fn array_of(frame: &Arc<Frame>, column: usize) -> ArrowArray {
    let numbers = || Some(ArrayBuffer::Column(Arc::clone(frame), column));
    match &frame.columns[column].1 {
        FrameColumn::TimeNs(times) => array(times.len(), 0, vec![None, numbers()], Vec::new()),
        FrameColumn::Float(values) => {
            let (validity, nulls) = bitmap(values.iter().map(|value| !value.is_nan()));
            array(values.len(), nulls, vec![Some(validity), numbers()], Vec::new())
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
            for value in values {
                bytes.extend_from_slice(value.as_deref().unwrap_or_default().as_bytes());
                offsets.push(int(bytes.len()));
            }
            let buffers = vec![
                Some(validity),
                Some(ArrayBuffer::Ints(offsets)),
                Some(ArrayBuffer::Bytes(bytes)),
            ];
            array(values.len(), nulls, buffers, Vec::new())
        }
    }
}

/// Returns one bit for each item, least significant first, and the count of clear bits. Example:
/// `[true, false, true]` gives the byte 0b101 and 1.
fn bitmap(items: impl ExactSizeIterator<Item = bool>) -> (ArrayBuffer, usize) {
    let mut bytes = vec![0_u8; items.len().div_ceil(8)];
    let mut clear = 0;
    for (at, is_set) in items.enumerate() {
        if is_set {
            bytes[at / 8] |= 1 << (at % 8);
        } else {
            clear += 1;
        }
    }
    (ArrayBuffer::Bytes(bytes), clear)
}

pub(crate) fn array(
    rows: usize,
    nulls: usize,
    buffers: Vec<Option<ArrayBuffer>>,
    children: Vec<ArrowArray>,
) -> ArrowArray {
    with_dictionary(rows, nulls, buffers, children, None)
}

/// Makes an array. If there is a `dictionary`, the values are indices into it.
pub(crate) fn with_dictionary(
    rows: usize,
    nulls: usize,
    buffers: Vec<Option<ArrayBuffer>>,
    children: Vec<ArrowArray>,
    dictionary: Option<ArrowArray>,
) -> ArrowArray {
    let mut private = Box::<ArrayPrivate>::default();
    for buffer in buffers {
        // The memory of a Vec stays where it is when the Vec itself is moved into `memory`. A frame
        // is not changed once it is shared.
        let pointer = match &buffer {
            None => ptr::null(),
            Some(ArrayBuffer::Bytes(bytes)) => bytes.as_ptr().cast::<c_void>(),
            Some(ArrayBuffer::Ints(ints)) => ints.as_ptr().cast(),
            Some(ArrayBuffer::Offsets(offsets)) => offsets.as_ptr().cast(),
            Some(ArrayBuffer::Zeros(zeros)) => zeros.as_ptr().cast(),
            Some(ArrayBuffer::Floats(floats)) => floats.as_ptr().cast(),
            Some(ArrayBuffer::Views(views)) => views.as_ptr().cast(),
            Some(ArrayBuffer::Column(frame, column)) => numbers_of(&frame.columns[*column].1),
        };
        private.buffers.push(pointer);
        private.memory.extend(buffer);
    }
    private.children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
    private.dictionary = dictionary.map(|dictionary| Box::into_raw(Box::new(dictionary)));
    ArrowArray {
        length: int(rows),
        null_count: int(nulls),
        offset: 0,
        n_buffers: int(private.buffers.len()),
        n_children: int(private.children.len()),
        buffers: private.buffers.as_mut_ptr(),
        children: private.children.as_mut_ptr(),
        dictionary: private.dictionary.unwrap_or(ptr::null_mut()),
        release: Some(array_release),
        private_data: Box::into_raw(private).cast(),
    }
}

fn numbers_of(column: &FrameColumn) -> *const c_void {
    match column {
        FrameColumn::TimeNs(times) => times.as_ptr().cast(),
        FrameColumn::Float(values) => values.as_ptr().cast(),
        FrameColumn::Bool(_) | FrameColumn::Text(_) => ptr::null(),
    }
}

/// An array that marks the end of a stream in `get_next`.
pub(crate) fn released_array() -> ArrowArray {
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
        for child in private.children.into_iter().chain(private.dictionary) {
            let mut child = Box::from_raw(child);
            if let Some(release) = child.release {
                release(&raw mut *child);
            }
        }
        (*array).private_data = ptr::null_mut();
        (*array).release = None;
    }
}
