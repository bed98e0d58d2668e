//! Rows of an answer, entity by entity.

use crate::model::batch::RowSet;
use crate::model::names::FieldId;

/// Rows of one entity: ascending times, and the channels that have a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntityRows {
    /// Time of each row.
    pub times_ns: Vec<i64>,
    /// The channels. Each field occurs once and has at least one value.
    pub channels: Vec<Channel>,
}

/// Values of one field in the rows of an entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Field of the channel.
    pub field: FieldId,
    /// The rows that have a value.
    pub rows: RowSet,
    /// The values, in the order of the rows.
    pub values: Vec<f64>,
}

impl EntityRows {
    /// Keeps the first `rows` rows, and the channels that have a value in them.
    pub(super) fn truncate(&mut self, rows: usize) {
        self.times_ns.truncate(rows);
        self.channels.retain_mut(|channel| {
            channel.values.truncate(channel.rows.within(&(0..rows)).end);
            let values = channel.values.len();
            if let RowSet::Some(present) = &mut channel.rows {
                present.truncate(values);
            }
            if values == rows {
                channel.rows = RowSet::All;
            }
            values > 0
        });
    }
}

#[cfg(test)]
impl EntityRows {
    /// Returns the value of a field in each row.
    pub(super) fn cells(&self, field: FieldId) -> Vec<Option<f64>> {
        let channel = self.channels.iter().find(|channel| channel.field == field);
        let cell = |row: usize| {
            let channel = channel?;
            channel.values[channel.rows.within(&(row..row + 1))].first().copied()
        };
        (0..self.times_ns.len()).map(cell).collect()
    }
}
