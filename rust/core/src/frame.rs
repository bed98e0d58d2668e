//! An answer as named columns, for programs that want frames instead of JSON.

use crate::plane::LatestView;
use crate::query::answer::SeriesAnswer;
use crate::query::latest::{Cells, LatestTable};

/// Columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// Number of rows.
    pub row_count: usize,
    /// Name and values of each column.
    pub columns: Vec<(String, FrameColumn)>,
}

/// Values of one column, one per row.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameColumn {
    /// Instants, nanoseconds since 1970, UTC.
    TimeNs(Vec<i64>),
    /// Doubles; NaN means none.
    Float(Vec<f64>),
    /// Booleans, or none.
    Bool(Vec<Option<bool>>),
    /// Strings, or none.
    Text(Vec<Option<String>>),
}

impl Frame {
    /// Rows of a series answer, entity below entity: `entity_id`, `time`, then the channels that
    /// any entity has a value in.
    #[must_use]
    pub fn of_series(answer: &SeriesAnswer) -> Self {
        let mut ids = Vec::new();
        let mut times_ns = Vec::new();
        for (id, rows) in answer.query.entity_ids.iter().zip(&answer.entities) {
            ids.resize(ids.len() + rows.times_ns.len(), Some(id.clone()));
            times_ns.extend_from_slice(&rows.times_ns);
        }
        let row_count = times_ns.len();
        let mut columns = vec![
            ("entity_id".to_owned(), FrameColumn::Text(ids)),
            ("time".to_owned(), FrameColumn::TimeNs(times_ns)),
        ];
        for (channel, name) in answer.channel_names.iter().enumerate() {
            let mut values = Vec::with_capacity(row_count);
            for rows in &answer.entities {
                let end = values.len() + rows.times_ns.len();
                values.extend_from_slice(&rows.channels[channel]);
                values.resize(end, f64::NAN);
            }
            if values.iter().any(|value| !value.is_nan()) {
                columns.push((name.clone(), FrameColumn::Float(values)));
            }
        }
        Self { row_count, columns }
    }

    /// Newest samples of one measurement: `entity_id`, `observed_at`, `tags` (a JSON object), then
    /// a column per field in byte order of its name.
    #[must_use]
    pub fn of_latest(view: &LatestView<'_>, measurement: &str) -> Self {
        let index = view.catalog.measurement(measurement);
        let empty = LatestTable::default();
        let table = index.and_then(|index| view.latest.table(index)).unwrap_or(&empty);
        let slots: Vec<u32> = table.slots_in(view.range_ns.clone()).collect();
        let id = |slot: &u32| Some(view.catalog.entity(table.entity(*slot)).id.to_string());
        let tags = |slot: &u32| {
            let mut json = Vec::new();
            table.write_tags(&mut json, *slot, view.catalog);
            Some(String::from_utf8_lossy(&json).into_owned())
        };
        let times_ns = slots.iter().map(|slot| table.time_ns(*slot)).collect();
        let mut columns = vec![
            ("entity_id".to_owned(), FrameColumn::Text(slots.iter().map(id).collect())),
            ("observed_at".to_owned(), FrameColumn::TimeNs(times_ns)),
            ("tags".to_owned(), FrameColumn::Text(slots.iter().map(tags).collect())),
        ];
        let named = |field| Some(view.catalog.field(field)?.name.to_string());
        let mut fields: Vec<_> = table
            .columns()
            .iter()
            .filter_map(|column| Some((named(column.field())?, column.cells())))
            .collect();
        fields.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        columns.extend(fields.into_iter().map(|(name, cells)| (name, pick(cells, &slots))));
        Self { row_count: slots.len(), columns }
    }
}

fn pick(cells: &Cells, slots: &[u32]) -> FrameColumn {
    let slots = slots.iter().map(|slot| *slot as usize);
    match cells {
        Cells::Float(cells) => FrameColumn::Float(slots.map(|at| cells[at]).collect()),
        Cells::Bool(cells) => FrameColumn::Bool(slots.map(|at| cells[at]).collect()),
        Cells::Text(cells) => {
            let text = |at: usize| cells[at].as_ref().map(ToString::to_string);
            FrameColumn::Text(slots.map(text).collect())
        }
    }
}
