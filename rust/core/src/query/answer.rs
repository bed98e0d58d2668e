//! The answer of a series read, and its JSON.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::request::SeriesQuery;
use super::rows::{Channel, EntityRows};
use crate::model::batch::RowSet;
use crate::model::chunks::AnswerChunks;
use crate::model::json;
use crate::model::names::FieldId;
use crate::model::time::TimeWriter;

/// Numbers that are appended to an answer at a time.
const STRETCH: usize = 1024;

/// The position of a channel: the index of its entity, and its index in that entity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChannelPlace {
    entity: usize,
    channel: usize,
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesAnswer {
    /// The effective query.
    pub query: SeriesQuery,
    /// Rows of each entity of the query, in order. Channels are in byte order of their names.
    pub entities: Vec<EntityRows>,
    /// Names of the channels.
    pub names: HashMap<FieldId, Box<str>, RandomState>,
    /// Start of the next read, if a bound cut the answer short.
    pub next_start_ns: Option<i64>,
}

impl SeriesAnswer {
    /// Makes the answer to `query` from the rows of its `entities`. `name_of` names their fields.
    #[must_use]
    pub fn new(
        query: SeriesQuery,
        mut entities: Vec<EntityRows>,
        next_start_ns: Option<i64>,
        name_of: impl Fn(FieldId) -> Option<Box<str>>,
    ) -> Self {
        let mut names = HashMap::default();
        for Channel { field, .. } in entities.iter().flat_map(|entity| &entity.channels) {
            names.entry(*field).or_insert_with(|| name_of(*field).unwrap_or_default());
        }
        for entity in &mut entities {
            entity.channels.sort_unstable_by_key(|channel| &names[&channel.field]);
        }
        Self { query, entities, names, next_start_ns }
    }

    /// Returns the body of the answer, in pieces.
    #[must_use]
    pub fn to_json_chunks(&self) -> Vec<Vec<u8>> {
        let mut chunks = AnswerChunks::with_capacity(self.json_bytes());
        let (mut times, mut place) = (TimeWriter::default(), ChannelPlace::default());
        while self.write_next(&mut chunks, &mut place, &mut times) {}
        chunks.finish()
    }

    /// Returns the bytes of the channel names in the answer, which repeats them for each entity.
    #[must_use]
    pub fn names_bytes(&self) -> usize {
        let channels = self.entities.iter().flat_map(|entity| &entity.channels);
        channels.map(|channel| self.names[&channel.field].len()).sum()
    }

    /// Returns the approximate bytes of memory that the answer holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.json_bytes() + self.names.values().map(|name| name.len()).sum::<usize>()
    }

    /// Writes the channel at `place` and advances `place`. Also writes the text before a first
    /// channel and after a last channel. Returns false at the end of the answer.
    pub(super) fn write_next(
        &self,
        chunks: &mut AnswerChunks,
        place: &mut ChannelPlace,
        times: &mut TimeWriter,
    ) -> bool {
        if (place.entity, place.channel) == (0, 0) {
            self.write_head(chunks.open());
        }
        let Some(rows) = self.entities.get(place.entity) else {
            self.write_end(chunks.open());
            return false;
        };
        if place.channel == 0 {
            self.begin_entity(chunks, place.entity, rows, times);
        }
        if let Some(channel) = rows.channels.get(place.channel) {
            self.write_channel(chunks, place.channel, channel, rows.times_ns.len());
        }
        place.channel += 1;
        if place.channel >= rows.channels.len() {
            let out = chunks.open();
            out.extend_from_slice(b"},\"point_count\":");
            out.extend_from_slice(rows.times_ns.len().to_string().as_bytes());
            out.push(b'}');
            *place = ChannelPlace { entity: place.entity + 1, channel: 0 };
        }
        true
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        let query = &self.query;
        out.extend_from_slice(b"{\"measurement\":");
        json::write_string(out, &query.measurement);
        out.extend_from_slice(b",\"start\":");
        json::write_time(out, query.start_ns);
        out.extend_from_slice(b",\"end\":");
        json::write_time(out, query.end_ns);
        let (interval, aggregation) = query.windows.unzip();
        out.extend_from_slice(b",\"interval\":");
        write_name(out, interval.map(crate::model::aggregate::Interval::as_str));
        out.extend_from_slice(b",\"agg\":");
        write_name(out, aggregation.map(crate::model::aggregate::Aggregation::as_str));
        out.extend_from_slice(b",\"series\":[");
    }

    fn write_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"],\"truncated\":");
        json::write_bool(out, self.next_start_ns.is_some());
        out.extend_from_slice(b",\"next_start\":");
        match self.next_start_ns {
            Some(time_ns) => json::write_time(out, time_ns),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    }

    /// Returns the approximate bytes of the answer.
    fn json_bytes(&self) -> usize {
        let bytes = |rows: &EntityRows| {
            let channels = rows.channels.iter().map(|channel| 64 + 8 * channel.values.len());
            256 + 28 * rows.times_ns.len() + channels.sum::<usize>()
        };
        256 + self.entities.iter().map(bytes).sum::<usize>()
    }

    fn begin_entity(
        &self,
        chunks: &mut AnswerChunks,
        index: usize,
        rows: &EntityRows,
        times: &mut TimeWriter,
    ) {
        let out = chunks.open();
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"entity_id\":");
        json::write_string(out, &self.query.entity_ids[index]);
        out.extend_from_slice(b",\"times\":[");
        for (index, times_ns) in rows.times_ns.chunks(STRETCH).enumerate() {
            write_list(chunks.open(), index > 0, times_ns, |out, time_ns| {
                out.push(b'"');
                times.write(out, *time_ns);
                out.push(b'"');
            });
        }
        chunks.open().extend_from_slice(b"],\"channels\":{");
    }

    fn write_channel(
        &self,
        chunks: &mut AnswerChunks,
        index: usize,
        channel: &Channel,
        rows: usize,
    ) {
        let out = chunks.open();
        if index > 0 {
            out.push(b',');
        }
        json::write_string(out, &self.names[&channel.field]);
        out.extend_from_slice(b":[");
        channel.write(chunks, rows);
        chunks.open().push(b']');
    }
}

impl Channel {
    /// Appends a value or null for each of `row_count` rows.
    fn write(&self, chunks: &mut AnswerChunks, row_count: usize) {
        if self.rows == RowSet::All {
            for (index, values) in self.values.chunks(STRETCH).enumerate() {
                write_list(chunks.open(), index > 0, values, |out, value| {
                    json::write_f64(out, *value);
                });
            }
            return;
        }
        let mut start = 0;
        while start < row_count {
            let end = row_count.min(start + STRETCH);
            let mut values = self.rows.within(&(start..end)).peekable();
            let cells: Vec<Option<f64>> = (start..end)
                .map(|row| values.next_if(|index| self.rows.row_at(*index) == row))
                .map(|index| index.map(|index| self.values[index]))
                .collect();
            write_list(chunks.open(), start > 0, &cells, |out, cell| match cell {
                Some(value) => json::write_f64(out, *value),
                None => out.extend_from_slice(b"null"),
            });
            start = end;
        }
    }
}

/// Appends items with commas between them. If `out` already has items, a comma comes first.
fn write_list<T>(
    out: &mut Vec<u8>,
    has_some: bool,
    items: &[T],
    mut write: impl FnMut(&mut Vec<u8>, &T),
) {
    for (index, item) in items.iter().enumerate() {
        if has_some || index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
}

fn write_name(out: &mut Vec<u8>, name: Option<&str>) {
    match name {
        Some(name) => json::write_string(out, name),
        None => out.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h9_h11_a_channel_has_a_value_or_null_for_each_row_and_names_ascend() {
        let query = SeriesQuery {
            entity_ids: vec!["a".to_owned(), "b".to_owned()],
            start_ns: 0,
            end_ns: 100,
            measurement: "link".to_owned(),
            fields: Vec::new(),
            windows: None,
        };
        let rows = 3 * STRETCH;
        let far = RowSet::Some(vec![1, 2 * 1024 - 1, 2 * 1024]);
        let entity = EntityRows {
            times_ns: (0..).take(rows).collect(),
            channels: vec![
                Channel { field: 4, rows: far, values: vec![0.5, 1.5, 2.5] },
                Channel { field: 7, rows: RowSet::All, values: vec![3.5; rows] },
            ],
        };
        let name_of = |field| Some(if field == 4 { "z".into() } else { "a".into() });
        let entities = vec![entity, EntityRows::default()];
        let answer = SeriesAnswer::new(query, entities, Some(7), name_of);
        let json = String::from_utf8(answer.to_json_chunks().concat()).unwrap();
        let mut cells = vec!["null"; rows];
        (cells[1], cells[2 * STRETCH - 1], cells[2 * STRETCH]) = ("0.5", "1.5", "2.5");
        let channels = format!(
            "\"channels\":{{\"a\":[{}],\"z\":[{}]}},\"point_count\":{rows}}}",
            vec!["3.5"; rows].join(","),
            cells.join(","),
        );
        assert!(json.contains(&channels));
        let tail = "{\"entity_id\":\"b\",\"times\":[],\"channels\":{},\"point_count\":0}],\
                    \"truncated\":true,\"next_start\":\"1970-01-01T00:00:00.000000007Z\"}";
        assert!(json.ends_with(tail), "{}", &json[json.len() - 200..]);
    }
}
