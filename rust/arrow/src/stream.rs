//! Streams of batches.

use std::ffi::{CString, c_char, c_int};
use std::sync::Arc;
use std::{mem, ptr};

use fleetcast_core::model::error::{Result, catching};
use fleetcast_core::query::Frame;

use crate::array::{batch, released_array};
use crate::interface::{ArrowArray, ArrowArrayStream, ArrowSchema};
use crate::schema::schema_of_frame;

/// Result of `get_next` if reading failed: `EIO` of any system.
const EIO: c_int = 5;

/// The batches of a stream.
pub(crate) trait Batches: Send {
    fn schema(&self) -> ArrowSchema;

    /// Returns the next batch, or `None` after the last batch.
    fn next_batch(&mut self) -> Result<Option<ArrowArray>>;
}

struct StreamPrivate {
    batches: Box<dyn Batches>,
    /// Message of the last call that failed.
    error: Option<CString>,
}

/// A frame as a stream of a single batch. Other streams may share the frame.
struct OneFrame {
    frame: Arc<Frame>,
    is_given: bool,
}

impl Batches for OneFrame {
    fn schema(&self) -> ArrowSchema {
        schema_of_frame(&self.frame)
    }

    fn next_batch(&mut self) -> Result<Option<ArrowArray>> {
        let is_given = mem::replace(&mut self.is_given, true);
        Ok((!is_given).then(|| batch(&self.frame)))
    }
}

impl From<Arc<Frame>> for ArrowArrayStream {
    /// A stream that yields the frame as one record batch.
    fn from(frame: Arc<Frame>) -> Self {
        Self::of(Box::new(OneFrame { frame, is_given: false }))
    }
}

impl ArrowArrayStream {
    /// Moves the stream out of `stream`.
    ///
    /// # Safety
    /// `stream` points to a live structure, or to a structure that was released.
    #[must_use]
    pub unsafe fn take(stream: *mut Self) -> Self {
        // SAFETY: the caller promises a live structure; the structure that stays has no `release`.
        let stream = unsafe { stream.replace(Self::released()) };
        // A released structure has no valid callbacks.
        if stream.release.is_some() { stream } else { Self::released() }
    }

    const fn released() -> Self {
        Self {
            get_schema: None,
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    pub(crate) fn of(batches: Box<dyn Batches>) -> Self {
        let private = Box::new(StreamPrivate { batches, error: None });
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
            // SAFETY: `release` is still set, so this stream has not been released, and `self` owns
            // it.
            unsafe { release(self) };
        }
    }
}

// SAFETY (of the four callbacks): the C stream interface makes three promises. `stream` points to
// the live structure that holds the callback. One thread calls at a time. `out` is writable and
// holds no structure that needs a release.

unsafe extern "C" fn stream_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: see above; `private_data` was made from a Box<StreamPrivate> in `of`.
    unsafe {
        let private = &*(*stream).private_data.cast::<StreamPrivate>();
        out.write(private.batches.schema());
    }
    0
}

unsafe extern "C" fn stream_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: see above; `private_data` was made from a Box<StreamPrivate> in `of`.
    unsafe {
        let private = &mut *(*stream).private_data.cast::<StreamPrivate>();
        // A panic must not leave a function that C calls.
        match catching(|| private.batches.next_batch()) {
            Ok(batch) => {
                out.write(batch.unwrap_or_else(released_array));
                0
            }
            Err(error) => {
                let message = error.to_string().replace('\0', " ");
                private.error = CString::new(message).ok();
                EIO
            }
        }
    }
}

unsafe extern "C" fn stream_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: see above; the text stays until the next call, as the interface asks.
    unsafe {
        let private = &*(*stream).private_data.cast::<StreamPrivate>();
        private.error.as_ref().map_or(ptr::null(), |error| error.as_ptr())
    }
}

unsafe extern "C" fn stream_release(stream: *mut ArrowArrayStream) {
    // SAFETY: see above; the Box is taken back exactly once, since `release` is cleared.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamPrivate>()));
        (*stream).private_data = ptr::null_mut();
        (*stream).release = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetcast_core::query::FrameColumn;
    use std::mem::MaybeUninit;

    fn frame() -> Arc<Frame> {
        let text = |text: &str| Some(text.to_owned());
        Arc::new(Frame {
            row_count: 3,
            columns: vec![
                ("id".to_owned(), FrameColumn::Text(vec![text("a"), None, text("é")])),
                ("time".to_owned(), FrameColumn::TimeNs(vec![1, 2, 3])),
                ("value".to_owned(), FrameColumn::Float(vec![0.5, f64::NAN, -0.0])),
                ("up".to_owned(), FrameColumn::Bool(vec![Some(true), None, Some(false)])),
            ],
        })
    }

    #[test]
    fn a_stream_gives_its_schema_one_batch_and_then_the_end() {
        let mut stream = ArrowArrayStream::from(frame());
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
        let mut stream = ArrowArrayStream::from(frame());
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
