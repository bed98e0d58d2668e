//! Series answers with long names, which are written while they are read.

use std::collections::VecDeque;

use super::answer::{ChannelPlace, SeriesAnswer};
use crate::model::chunks::{AnswerBody, AnswerChunks, LongPieces, PIECE_BYTES, PIECE_CAPACITY};
use crate::model::time::TimeWriter;

/// An answer that is written while it is read. It holds each name once, even if many entities have
/// a channel with this name.
pub struct LongSeries {
    answer: SeriesAnswer,
    place: ChannelPlace,
    times: TimeWriter,
    /// Pieces that are written but not read.
    made: VecDeque<Vec<u8>>,
    is_over: bool,
}

impl SeriesAnswer {
    /// Returns the body of the answer. If its names alone take more than a mebibyte, the body is
    /// written while it is read.
    #[must_use]
    pub fn into_json(self) -> AnswerBody {
        if self.names_bytes() <= PIECE_BYTES {
            return AnswerBody::Whole(self.to_json_chunks());
        }
        let (place, times, made) = Default::default();
        let long = LongSeries { answer: self, place, times, made, is_over: false };
        AnswerBody::Long(Box::new(long))
    }
}

impl Iterator for LongSeries {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.made.is_empty() && !self.is_over {
            let mut chunks = AnswerChunks::with_capacity(PIECE_BYTES);
            while !self.is_over && !chunks.has_piece() {
                let Self { answer, place, times, is_over, .. } = self;
                *is_over = !answer.write_next(&mut chunks, place, times);
            }
            self.made = chunks.finish().into();
        }
        self.made.pop_front()
    }
}

impl LongPieces for LongSeries {
    fn held_bytes(&self) -> usize {
        self.answer.held_bytes() + PIECE_CAPACITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::batch::RowSet;
    use crate::query::{Channel, EntityRows, SeriesQuery};

    /// An answer of 16 entities. Each entity has a channel for each of `names` names.
    fn answer(names: u32, name_bytes: usize) -> SeriesAnswer {
        let query = SeriesQuery {
            entity_ids: (0..16).map(|entity| format!("e{entity}")).collect(),
            start_ns: 0,
            end_ns: 100,
            measurement: "link".to_owned(),
            fields: Vec::new(),
            windows: None,
        };
        let channel = |field| Channel { field, rows: RowSet::All, values: vec![1.5, 2.5] };
        let rows = EntityRows { times_ns: vec![7, 8], channels: (0..names).map(channel).collect() };
        let name_of = |field| Some(format!("{field:0name_bytes$}").into());
        SeriesAnswer::new(query, vec![rows; 16], None, name_of)
    }

    #[test]
    fn o3_n3_names_that_each_entity_repeats_take_a_piece_at_a_time_and_the_bytes_are_the_same() {
        let whole = answer(40, 30_000).to_json_chunks().concat();
        let AnswerBody::Long(long) = answer(40, 30_000).into_json() else {
            panic!("16 entities repeat 1.2 MB of names");
        };
        let pieces: Vec<Vec<u8>> =
            long.inspect(|piece| assert!(piece.len() < 2 * PIECE_BYTES)).collect();
        assert!(pieces.len() > 16);
        assert_eq!(pieces.concat(), whole);
    }

    #[test]
    fn o3_an_answer_with_few_names_is_whole() {
        let AnswerBody::Whole(pieces) = answer(40, 300).into_json() else {
            panic!("the names take 192 kB");
        };
        assert_eq!(pieces.concat(), answer(40, 300).to_json_chunks().concat());
    }
}
