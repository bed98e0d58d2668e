//! Rows as JSON lines. Each line is a record that a write accepts.

use super::arrays::{ScanColumn, ScanValues, Texts};
use super::batch::ScanBatch;
use super::schema::ScanSchema;
use super::tags::TagRuns;
use crate::model::column_name::field_of;
use crate::model::json;

/// A column, and the text before each of its values.
struct Member<'b> {
    /// `"NAME":`
    key: Vec<u8>,
    column: &'b ScanColumn,
}

/// Bytes of text from which no further line begins.
const PIECE_BYTES: usize = 1 << 20;

/// Returns about a mebibyte of lines, from row `start` of `batch` on, and the row after them.
#[must_use]
pub fn json_lines(batch: &ScanBatch, schema: &ScanSchema, start: usize) -> (Vec<u8>, usize) {
    let mut out = Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 16);
    let mut head = b"{\"measurement\":".to_vec();
    json::write_string(&mut head, &schema.measurements[batch.measurement as usize]);
    head.extend_from_slice(b",\"time\":");
    let named = batch.columns.iter().map(|(index, column)| (&schema.columns[*index].0, column));
    let members: Vec<Member<'_>> = named.map(|(name, column)| Member::new(name, column)).collect();
    let TagRuns { lengths, maps } = &batch.tags;
    let (mut row, mut run, mut run_end) = (start, 0, 0);
    let mut tags: Vec<u8> = Vec::new();
    while row < batch.row_count && out.len() < PIECE_BYTES {
        while run_end <= row {
            run_end += lengths[run];
            run += 1;
            tags.clear();
        }
        if tags.is_empty() {
            let pair = |index| (maps.keys.text(index), maps.values.text(index));
            tags.extend_from_slice(b",\"tags\":");
            json::write_object_of_strings(&mut tags, maps.entries_of(run - 1).map(pair));
            tags.extend_from_slice(b",\"fields\":");
        }
        out.extend_from_slice(&head);
        json::write_time(&mut out, batch.times_ns[row]);
        out.extend_from_slice(&tags);
        let mut before = b'{';
        for member in members.iter().filter(|member| member.column.has(row)) {
            out.push(before);
            before = b',';
            member.write(&mut out, row);
        }
        out.extend_from_slice(if before == b'{' { b"{}}\n" } else { b"}}\n" });
        row += 1;
    }
    (out, row)
}

impl<'b> Member<'b> {
    fn new(column_name: &str, column: &'b ScanColumn) -> Self {
        let mut key = Vec::new();
        json::write_string(&mut key, &field_of(column_name).0);
        key.push(b':');
        Self { key, column }
    }

    fn write(&self, out: &mut Vec<u8>, row: usize) {
        out.extend_from_slice(&self.key);
        match &self.column.values {
            ScanValues::Float(values) => json::write_f64(out, values[row]),
            ScanValues::Bool(bits) => json::write_bool(out, is_set(bits, row)),
            ScanValues::Text(texts) => json::write_string(out, texts.text(row)),
        }
    }
}

impl ScanColumn {
    /// Returns true if a row has a value.
    fn has(&self, row: usize) -> bool {
        self.validity.as_ref().is_none_or(|bits| is_set(bits, row))
    }
}

impl Texts {
    /// Returns the text at an index. The bytes are always a text; otherwise it would be empty.
    fn text(&self, index: usize) -> &str {
        std::str::from_utf8(self.bytes_of(index)).unwrap_or_default()
    }
}

fn is_set(bits: &[u8], row: usize) -> bool {
    bits[row / 8] >> (row % 8) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::super::tags::TagMaps;
    use super::*;
    use crate::model::batch::FieldType;

    fn texts(all: &[&str]) -> Texts {
        let mut texts = Texts::new();
        for text in all {
            texts.push(text);
        }
        texts
    }

    #[test]
    fn a_line_has_the_values_of_its_row_alone() {
        let column =
            |bits: u8, values| ScanColumn { validity: Some(vec![bits]), null_count: 1, values };
        let columns = vec![
            (0, column(0b01, ScanValues::Float(vec![-0.0, 7.0]))),
            (1, column(0b10, ScanValues::Bool(vec![0b10]))),
            (2, column(0b10, ScanValues::Text(texts(&["", "é\n"])))),
        ];
        let maps =
            TagMaps { offsets: vec![0, 0, 1], keys: texts(&["a"]), values: texts(&["\"b\""]) };
        let tags = TagRuns { lengths: vec![1, 1], maps };
        let batch = ScanBatch { row_count: 2, times_ns: vec![0, 1], measurement: 0, tags, columns };
        let named = [
            ("x:float", FieldType::Float),
            ("up", FieldType::Bool),
            ("x:text", FieldType::Text),
            ("gone", FieldType::Float),
        ];
        let mut schema = ScanSchema::default();
        schema.columns = named.map(|(name, of)| (name.to_owned(), of)).to_vec();
        schema.measurements = vec!["li\"nk".to_owned()];
        let (out, next) = json_lines(&batch, &schema, 0);
        let expected = concat!(
            r#"{"measurement":"li\"nk","time":"1970-01-01T00:00:00Z","tags":{},"#,
            r#""fields":{"x":-0.0}}"#,
            "\n",
            r#"{"measurement":"li\"nk","time":"1970-01-01T00:00:00.000000001Z","#,
            r#""tags":{"a":"\"b\""},"fields":{"up":true,"x":"é\n"}}"#,
            "\n",
        );
        assert_eq!((String::from_utf8(out).unwrap().as_str(), next), (expected, 2));
        let (rest, _) = json_lines(&batch, &schema, 1);
        assert!(!rest.is_empty() && expected.as_bytes().ends_with(&rest));
    }
}
