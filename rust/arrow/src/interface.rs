//! The three structures of the interfaces, field by field.

use std::ffi::{c_char, c_int, c_void};

/// `struct ArrowSchema` of the C data interface.
#[repr(C)]
pub struct ArrowSchema {
    pub(crate) format: *const c_char,
    pub(crate) name: *const c_char,
    pub(crate) metadata: *const c_char,
    pub(crate) flags: i64,
    pub(crate) n_children: i64,
    pub(crate) children: *mut *mut Self,
    pub(crate) dictionary: *mut Self,
    pub(crate) release: Option<unsafe extern "C" fn(*mut Self)>,
    pub(crate) private_data: *mut c_void,
}

/// `struct ArrowArray` of the C data interface.
#[repr(C)]
pub struct ArrowArray {
    pub(crate) length: i64,
    pub(crate) null_count: i64,
    pub(crate) offset: i64,
    pub(crate) n_buffers: i64,
    pub(crate) n_children: i64,
    pub(crate) buffers: *mut *const c_void,
    pub(crate) children: *mut *mut Self,
    pub(crate) dictionary: *mut Self,
    pub(crate) release: Option<unsafe extern "C" fn(*mut Self)>,
    pub(crate) private_data: *mut c_void,
}

/// `struct ArrowArrayStream` of the C stream interface.
#[repr(C)]
pub struct ArrowArrayStream {
    pub(crate) get_schema: Option<unsafe extern "C" fn(*mut Self, *mut ArrowSchema) -> c_int>,
    pub(crate) get_next: Option<unsafe extern "C" fn(*mut Self, *mut ArrowArray) -> c_int>,
    pub(crate) get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    pub(crate) release: Option<unsafe extern "C" fn(*mut Self)>,
    pub(crate) private_data: *mut c_void,
}

// SAFETY: a stream owns its private data alone. Our streams are plain memory without ties to a
// thread. The interface demands the same of other streams: any thread, one at a time.
unsafe impl Send for ArrowArrayStream {}

/// Returns a length in the integer type of the interfaces.
///
/// # Panics
/// Panics if the length does not fit 63 bits, which lengths in memory always do.
pub(crate) fn int(length: usize) -> i64 {
    i64::try_from(length).expect("lengths in memory fit 63 bits")
}
