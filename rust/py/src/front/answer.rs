//! Answers of the application on their way out.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyString};

use fleetcast_front::{Answer, BodyLength, LineBreak, Rest, answer_head};

use crate::latin1::bytes_of;
use crate::pieces::Piece;

/// Bytes below which a chunk is copied behind the head: that costs less than keeping it.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// `bytes` that the front keeps until they are sent.
struct KeptBytes {
    /// Never changes, and stays where it is as long as this reference lives.
    start: *const u8,
    length: usize,
    _object: Py<PyBytes>,
}

#[expect(unsafe_code, reason = "bytes of Python that are read without the interpreter")]
// SAFETY: `bytes` never change, so any thread may read them.
unsafe impl Send for KeptBytes {}

impl AsRef<[u8]> for KeptBytes {
    #[expect(unsafe_code, reason = "bytes of Python that are read without the interpreter")]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the object is `bytes` of this length, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

/// A piece of the engine that the front keeps until it is sent.
struct KeptPiece(Py<Piece>);

impl AsRef<[u8]> for KeptPiece {
    fn as_ref(&self) -> &[u8] {
        self.0.get().bytes()
    }
}

/// Puts the answer to a request together.
///
/// # Errors
/// `ValueError` for what no header can hold, `TypeError` for what is no text and no bytes.
pub(crate) fn answer(
    status: &Bound<'_, PyString>,
    fields: &[(Bound<'_, PyString>, Bound<'_, PyString>)],
    chunks: &[Bound<'_, PyAny>],
    bodiless: bool,
    keep: bool,
) -> PyResult<Answer> {
    let mut body = Body::default();
    if !bodiless {
        for chunk in chunks {
            body.add(chunk)?;
        }
    }
    let length = if bodiless { BodyLength::Unsaid } else { BodyLength::Bytes(body.length) };
    let mut head = head(status, fields, length, keep)?;
    head.extend_from_slice(&body.front);
    Ok(Answer { head, pieces: body.pieces, rest: None })
}

/// Puts an answer together whose body is made as its client takes it, in chunks if it knows them.
///
/// # Errors
/// As [`answer`].
pub(crate) fn long_answer(
    status: &Bound<'_, PyString>,
    fields: &[(Bound<'_, PyString>, Bound<'_, PyString>)],
    rest: Box<dyn Rest>,
    knows_chunks: bool,
    keep: bool,
) -> PyResult<Answer> {
    let length = if knows_chunks { BodyLength::Chunked } else { BodyLength::Unsaid };
    let head = head(status, fields, length, keep)?;
    Ok(Answer { head, pieces: Vec::new(), rest: Some(rest) })
}

fn head(
    status: &Bound<'_, PyString>,
    fields: &[(Bound<'_, PyString>, Bound<'_, PyString>)],
    length: BodyLength,
    keep: bool,
) -> PyResult<Vec<u8>> {
    let mut latin1 = Vec::with_capacity(fields.len());
    for (name, value) in fields {
        latin1.push((text_bytes(name)?, text_bytes(value)?));
    }
    let fields = latin1.iter().map(|(name, value)| (&**name, &**value));
    let head = answer_head(&text_bytes(status)?, keep, fields, length);
    head.map_err(|LineBreak| PyValueError::new_err("a response header holds a line break"))
}

/// A body in chunks.
#[derive(Default)]
struct Body {
    length: usize,
    /// The beginning, which is copied.
    front: Vec<u8>,
    pieces: Vec<fleetcast_front::Piece>,
}

impl Body {
    fn add(&mut self, chunk: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(bytes) = chunk.cast::<PyBytes>() {
            let content = bytes.as_bytes();
            self.length += content.len();
            if content.len() >= COPIED_BYTES_MAX {
                let (start, length) = (content.as_ptr(), content.len());
                let kept = KeptBytes { start, length, _object: bytes.clone().unbind() };
                self.pieces.push(Box::new(kept));
            } else {
                self.copy(content);
            }
            return Ok(());
        }
        let buffer = PyBuffer::<u8>::get(chunk)?;
        self.length += buffer.len_bytes();
        match piece_of(chunk, buffer.len_bytes())? {
            Some(piece) => self.pieces.push(Box::new(KeptPiece(piece))),
            None => self.copy(&buffer.to_vec(chunk.py())?),
        }
        Ok(())
    }

    fn copy(&mut self, content: &[u8]) {
        if self.pieces.is_empty() {
            self.front.extend_from_slice(content);
        } else if !content.is_empty() {
            self.pieces.push(Box::new(content.to_vec()));
        }
    }
}

/// The piece of the engine that a `memoryview` shows the whole of.
fn piece_of(chunk: &Bound<'_, PyAny>, length: usize) -> PyResult<Option<Py<Piece>>> {
    let Ok(view) = chunk.cast::<PyMemoryView>() else { return Ok(None) };
    let object = view.getattr(intern!(chunk.py(), "obj"))?;
    Ok(object
        .cast_into::<Piece>()
        .ok()
        .filter(|piece| piece.get().bytes().len() == length)
        .map(Bound::unbind))
}

/// The bytes of a text of a head.
pub(crate) fn text_bytes<'a>(
    text: &'a Bound<'_, PyString>,
) -> PyResult<std::borrow::Cow<'a, [u8]>> {
    let known = text.to_str()?;
    bytes_of(known).ok_or_else(|| PyValueError::new_err("a response header is no Latin-1"))
}
