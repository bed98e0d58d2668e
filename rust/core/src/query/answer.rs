//! The answer of a series read: rows per entity, the common time cut, and its JSON.

use super::request::SeriesQuery;
use crate::json;

/// Rows of one entity: ascending times, channels aligned with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntityRows {
    /// Time of each row.
    pub times_ns: Vec<i64>,
    /// By channel index: the values, NaN where a row has none; empty where no row has any.
    pub channels: Vec<Vec<f64>>,
}

impl EntityRows {
    /// Keeps the first `rows` rows and forgets channels left without a value (H9).
    fn truncate(&mut self, rows: usize) {
        self.times_ns.truncate(rows);
        for channel in &mut self.channels {
            channel.truncate(rows);
            if channel.iter().all(|value| value.is_nan()) {
                *channel = Vec::new();
            }
        }
    }
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesAnswer {
    /// The effective query.
    pub query: SeriesQuery,
    /// Names of the channels, ascending.
    pub channel_names: Vec<String>,
    /// One per entity of the query, in order.
    pub entities: Vec<EntityRows>,
    /// Where to go on when the point budget cut the answer short.
    pub next_start_ns: Option<i64>,
}

impl SeriesAnswer {
    /// Cuts all entities at one instant so that at most `points_max` rows stay (H23, H25).
    ///
    /// # Panics
    /// When `points_max` is 0.
    pub fn cut(&mut self, points_max: usize) {
        let total: usize = self.entities.iter().map(|entity| entity.times_ns.len()).sum();
        if total <= points_max {
            return;
        }
        let mut times: Vec<i64> =
            self.entities.iter().flat_map(|entity| &entity.times_ns).copied().collect();
        // The first row over the budget: with everything before its instant the budget holds,
        // with any later cut it does not.
        let (before, &mut cut_ns, _) = times.select_nth_unstable(points_max);
        let fits = before.iter().any(|time_ns| *time_ns < cut_ns);
        let mut left = points_max;
        for entity in &mut self.entities {
            let rows = if fits {
                entity.times_ns.partition_point(|time_ns| *time_ns < cut_ns)
            } else {
                // A single instant is over the budget: what exceeds it cannot be asked for.
                let rows = entity.times_ns.partition_point(|time_ns| *time_ns <= cut_ns);
                rows.min(left)
            };
            left = left.saturating_sub(rows);
            entity.truncate(rows);
        }
        self.next_start_ns = Some(if fits { cut_ns } else { cut_ns.saturating_add(1) });
    }

    /// The body of the answer.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let query = &self.query;
        let mut out = Vec::with_capacity(self.json_bytes_estimate());
        out.extend_from_slice(b"{\"measurement\":");
        json::write_string(&mut out, &query.measurement);
        out.extend_from_slice(b",\"start\":");
        json::write_time(&mut out, query.start_ns);
        out.extend_from_slice(b",\"end\":");
        json::write_time(&mut out, query.end_ns);
        let (interval, aggregation) = query.windows.unzip();
        out.extend_from_slice(b",\"interval\":");
        write_name(&mut out, interval.map(crate::aggregate::Interval::as_str));
        out.extend_from_slice(b",\"agg\":");
        write_name(&mut out, aggregation.map(crate::aggregate::Aggregation::as_str));
        out.extend_from_slice(b",\"series\":[");
        for (index, (id, rows)) in query.entity_ids.iter().zip(&self.entities).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.write_entity(&mut out, id, rows);
        }
        out.extend_from_slice(b"],\"truncated\":");
        json::write_bool(&mut out, self.next_start_ns.is_some());
        out.extend_from_slice(b",\"next_start\":");
        match self.next_start_ns {
            Some(time_ns) => json::write_time(&mut out, time_ns),
            None => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
        out
    }

    fn write_entity(&self, out: &mut Vec<u8>, id: &str, rows: &EntityRows) {
        out.extend_from_slice(b"{\"entity_id\":");
        json::write_string(out, id);
        out.extend_from_slice(b",\"times\":[");
        for (index, time_ns) in rows.times_ns.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            json::write_time(out, *time_ns);
        }
        out.extend_from_slice(b"],\"channels\":{");
        let present = self.channel_names.iter().zip(&rows.channels);
        let present = present.filter(|(_, values)| !values.is_empty());
        for (index, (name, values)) in present.enumerate() {
            if index > 0 {
                out.push(b',');
            }
            json::write_string(out, name);
            out.push(b':');
            write_values(out, values);
        }
        out.extend_from_slice(b"},\"point_count\":");
        out.extend_from_slice(rows.times_ns.len().to_string().as_bytes());
        out.push(b'}');
    }

    fn json_bytes_estimate(&self) -> usize {
        let values = |rows: &EntityRows| rows.channels.iter().map(Vec::len).sum::<usize>();
        let bytes = |rows: &EntityRows| 128 + 24 * rows.times_ns.len() + 8 * values(rows);
        256 + self.entities.iter().map(bytes).sum::<usize>()
    }
}

fn write_name(out: &mut Vec<u8>, name: Option<&str>) {
    match name {
        Some(name) => json::write_string(out, name),
        None => out.extend_from_slice(b"null"),
    }
}

fn write_values(out: &mut Vec<u8>, values: &[f64]) {
    out.push(b'[');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if value.is_nan() {
            out.extend_from_slice(b"null");
        } else {
            json::write_f64(out, *value);
        }
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(times: [&[i64]; 2]) -> SeriesAnswer {
        let query = SeriesQuery {
            entity_ids: vec!["a".to_owned(), "b".to_owned()],
            start_ns: 0,
            end_ns: 100,
            measurement: "link".to_owned(),
            fields: Vec::new(),
            windows: None,
        };
        let rows = |times: &[i64]| EntityRows {
            times_ns: times.to_vec(),
            channels: vec![vec![1.5; times.len()], Vec::new()],
        };
        SeriesAnswer {
            query,
            channel_names: vec!["snr_db".to_owned(), "unused".to_owned()],
            entities: times.map(rows).to_vec(),
            next_start_ns: None,
        }
    }

    fn times(answer: &SeriesAnswer) -> Vec<&[i64]> {
        answer.entities.iter().map(|rows| rows.times_ns.as_slice()).collect()
    }

    #[test]
    fn h23_one_cut_for_all_entities_never_splits_an_instant() {
        let mut cut = answer([&[1, 2, 3, 3], &[2, 3, 9]]);
        cut.cut(4);
        assert_eq!(times(&cut), [&[1, 2][..], &[2][..]]);
        assert_eq!(cut.next_start_ns, Some(3));
    }

    #[test]
    fn h23_an_answer_within_the_budget_is_left_alone() {
        let mut whole = answer([&[1, 2], &[2, 3]]);
        whole.cut(4);
        assert_eq!(whole, answer([&[1, 2], &[2, 3]]));
    }

    #[test]
    fn h25_an_instant_over_the_budget_alone_still_makes_progress() {
        let mut cut = answer([&[5, 5, 5], &[5, 5, 6]]);
        cut.cut(4);
        assert_eq!(times(&cut), [&[5, 5, 5][..], &[5][..]]);
        assert_eq!(cut.next_start_ns, Some(6));
    }

    #[test]
    fn h9_a_channel_without_a_value_before_the_cut_is_left_out() {
        let mut cut = answer([&[1, 2, 3], &[]]);
        cut.entities[0].channels[1] = vec![f64::NAN, f64::NAN, 7.0];
        cut.cut(2);
        let json = String::from_utf8(cut.to_json()).unwrap();
        assert!(json.contains("\"channels\":{\"snr_db\":[1.5,1.5]},\"point_count\":2"), "{json}");
        assert!(json.contains("\"times\":[],\"channels\":{},\"point_count\":0"), "{json}");
    }
}
