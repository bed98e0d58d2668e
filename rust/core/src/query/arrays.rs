//! An answer as arrays of numbers, for programs that compute with them.

use std::collections::BTreeMap;

use super::answer::SeriesAnswer;
use super::rows::Channel;
use crate::model::error::{Error, Result};

/// Number of cells that any answer may have, and number of cells per value that a larger answer may
/// have. Protects memory against sparse answers, whose rows times columns exceed their values by
/// far.
///
/// Example: an answer with a million values may have 16 million cells.
const CELLS_FREE: usize = 1 << 22;
const CELLS_PER_VALUE_MAX: usize = 16;

/// Rows of several entities, entity below entity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesArrays {
    /// Number of rows of each entity of the query.
    pub rows: Vec<usize>,
    /// Time of each row, in nanoseconds since 1970, UTC.
    pub times_ns: Vec<i64>,
    /// The channels in which any entity has a value, in byte order of their names: a number for
    /// each row. NaN stands for no value.
    pub channels: Vec<(String, Vec<f64>)>,
}

impl SeriesArrays {
    /// Places the rows of an answer below each other.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if there would be millions of cells, nearly all of them empty.
    pub fn new(answer: &SeriesAnswer) -> Result<Self> {
        let (mut rows, mut times_ns) = (Vec::with_capacity(answer.entities.len()), Vec::new());
        let mut parts: BTreeMap<&str, Vec<(usize, &Channel)>> = BTreeMap::new();
        for entity in &answer.entities {
            for channel in &entity.channels {
                parts
                    .entry(&answer.names[&channel.field])
                    .or_default()
                    .push((times_ns.len(), channel));
            }
            rows.push(entity.times_ns.len());
            times_ns.extend_from_slice(&entity.times_ns);
        }
        let values = parts.values().flatten().map(|(_, channel)| channel.values.len()).sum();
        check_cells(parts.len() * times_ns.len(), values)?;
        let column = |(name, parts): (&str, Vec<(usize, &Channel)>)| {
            let mut column = vec![f64::NAN; times_ns.len()];
            for (first_row, channel) in parts {
                for (index, value) in channel.values.iter().enumerate() {
                    column[first_row + channel.rows.row_at(index)] = *value;
                }
            }
            (name.to_owned(), column)
        };
        let channels = parts.into_iter().map(column).collect();
        Ok(Self { rows, times_ns, channels })
    }
}

/// Checks that an answer is not too sparse.
///
/// # Errors
/// Returns [`Error::Invalid`].
pub(super) fn check_cells(cells: usize, values: usize) -> Result<()> {
    if cells > CELLS_FREE.max(CELLS_PER_VALUE_MAX.saturating_mul(values)) {
        let message = format!("a frame of {cells} cells for {values} values: name the fields");
        return Err(Error::Invalid { message });
    }
    Ok(())
}
