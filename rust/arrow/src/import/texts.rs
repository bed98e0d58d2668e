//! Texts of columns of any layout of texts.

use fleetcast_core::model::error::Result;

use super::field::invalid;
use super::view::View;

/// Bytes of a text that lie in its view.
const INLINE_BYTES: usize = 12;

/// The texts of a column, `None` where a row has none.
///
/// # Errors
/// [`fleetcast_core::model::error::Error::Invalid`] where the column is none of texts.
pub(super) fn texts<'a>(view: &View<'a>) -> Result<Vec<Option<&'a [u8]>>> {
    if let Some(field) = &view.field.dictionary {
        return of_dictionary(view, field);
    }
    let mut texts = match view.field.format.as_str() {
        "u" => by_offsets::<i32>(view, |offset| usize::try_from(offset).ok())?,
        "U" => by_offsets::<i64>(view, |offset| usize::try_from(offset).ok())?,
        "vu" => by_views(view)?,
        "n" => vec![None; view.rows],
        _ => {
            let (name, type_name) = (&view.field.name, view.field.type_name());
            return Err(invalid(format!("column {name:?} is {type_name}, not text")));
        }
    };
    if !view.is_full() {
        for (text, is_valid) in texts.iter_mut().zip(view.validity()?) {
            *text = text.filter(|_| is_valid);
        }
    }
    Ok(texts)
}

fn of_dictionary<'a>(
    view: &View<'a>,
    field: &'a super::field::Field,
) -> Result<Vec<Option<&'a [u8]>>> {
    if view.array.dictionary.is_null() || !view.field.is_integer() {
        return Err(invalid(format!("column {:?} has no dictionary", view.field.name)));
    }
    // SAFETY: the dictionary of a live array is live as long as it is.
    let array = unsafe { &*view.array.dictionary };
    let length = usize::try_from(array.length).unwrap_or(0);
    let entries = texts(&View::new(array, field, 0, length)?)?;
    let indices = view.integers()?;
    let text_at = |(index, is_valid): (&i64, bool)| {
        if !is_valid {
            return Ok(None);
        }
        let entry = usize::try_from(*index).ok().and_then(|index| entries.get(index));
        entry.copied().ok_or_else(|| invalid(format!("column {:?} is broken", view.field.name)))
    };
    indices.iter().zip(view.validity()?).map(text_at).collect()
}

/// Offsets of `rows` items and their end.
pub(super) fn offsets<T: Copy>(
    view: &View<'_>,
    widen: impl Fn(T) -> Option<usize>,
) -> Result<Vec<usize>> {
    let broken = || invalid(format!("column {:?} has offsets that do not ascend", view.field.name));
    if view.rows == 0 {
        return Ok(vec![0]);
    }
    let offsets = view.buffer::<T>(1, view.start, view.rows + 1)?;
    let offsets = offsets.iter().map(|offset| widen(*offset));
    let offsets: Vec<usize> = offsets.collect::<Option<_>>().ok_or_else(broken)?;
    if offsets.is_sorted() { Ok(offsets) } else { Err(broken()) }
}

fn by_offsets<'a, T: Copy>(
    view: &View<'a>,
    widen: impl Fn(T) -> Option<usize>,
) -> Result<Vec<Option<&'a [u8]>>> {
    let offsets = offsets(view, widen)?;
    let end = offsets.last().copied().unwrap_or(0);
    let bytes: &[u8] = view.buffer(2, 0, end)?;
    Ok(offsets.windows(2).map(|ends| Some(&bytes[ends[0]..ends[1]])).collect())
}

fn by_views<'a>(view: &View<'a>) -> Result<Vec<Option<&'a [u8]>>> {
    let broken = || invalid(format!("column {:?} has a text that is not there", view.field.name));
    let views: &[[u8; 16]] = view.buffer(1, view.start, view.rows)?;
    // Validity, views, the buffers of texts, and last the lengths of these.
    let buffers = usize::try_from(view.array.n_buffers).unwrap_or(0);
    let lengths: &[i64] = view.buffer(buffers.saturating_sub(1), 0, buffers.saturating_sub(3))?;
    let validity = view.validity()?;
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte));
    let text_at = |(of_text, is_valid): (&'a [u8; 16], bool)| {
        if !is_valid {
            return Ok(None);
        }
        let length = number(&of_text[..4]);
        if length <= INLINE_BYTES {
            return Ok(Some(&of_text[4..4 + length]));
        }
        let (buffer, start) = (number(&of_text[8..12]), number(&of_text[12..]));
        let available = lengths.get(buffer).and_then(|length| usize::try_from(*length).ok());
        if available.is_none_or(|available| start + length > available) {
            return Err(broken());
        }
        view.buffer(2 + buffer, start, length).map(Some)
    };
    views.iter().zip(validity).map(text_at).collect()
}
