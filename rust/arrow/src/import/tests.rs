//! Streams of every layout, and of broken layouts.

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::wire::columnar::{InputRows, InputValues};

use super::mapping::{ColumnMapping, MeasurementFrom};
use super::reader::RowReader;
use crate::array::{ArrayBuffer, array, with_dictionary};
use crate::interface::{ArrowArray, ArrowArrayStream, ArrowSchema};
use crate::schema::{dictionary_of_texts, schema};
use crate::stream::Batches;

const DICTIONARY: &str = "i of u";
/// A type that does not exist.
const FOREIGN_DICTIONARY: &str = "+L of u";

/// A column, or a part of a column.
#[derive(Default)]
struct Column {
    name: &'static str,
    format: &'static str,
    rows: usize,
    nulls: i64,
    offset: i64,
    buffers: Vec<Option<ArrayBuffer>>,
    children: Vec<Self>,
    dictionary: Option<Box<Self>>,
}

impl Column {
    fn new(
        name: &'static str,
        format: &'static str,
        rows: usize,
        values: Vec<ArrayBuffer>,
    ) -> Self {
        let buffers = std::iter::once(None).chain(values.into_iter().map(Some)).collect();
        Self { name, format, rows, buffers, ..Self::default() }
    }

    fn schema(&self) -> ArrowSchema {
        if self.format == DICTIONARY {
            return dictionary_of_texts(self.name);
        }
        if self.format == FOREIGN_DICTIONARY {
            let of_texts = dictionary_of_texts(self.name);
            return ArrowSchema { format: c"+L".as_ptr(), ..of_texts };
        }
        schema(self.format, self.name, self.children.iter().map(Self::schema).collect())
    }

    fn array(self) -> ArrowArray {
        let children = self.children.into_iter().map(Self::array).collect();
        let dictionary = self.dictionary.map(|dictionary| dictionary.array());
        let mut array = with_dictionary(self.rows, 0, self.buffers, children, dictionary);
        (array.null_count, array.offset) = (self.nulls, self.offset);
        array
    }
}

struct OneBatch(Option<Vec<Column>>, usize);

impl Batches for OneBatch {
    fn schema(&self) -> ArrowSchema {
        schema("+s", "", self.0.iter().flatten().map(Column::schema).collect())
    }

    fn next_batch(&mut self) -> Result<Option<ArrowArray>> {
        let columns = self.0.take();
        Ok(columns.map(|columns| {
            array(self.1, 0, vec![None], columns.into_iter().map(Column::array).collect())
        }))
    }
}

/// Reads `rows` rows with distinct times and `columns`, which make one piece.
fn read<R>(
    rows: usize,
    columns: Vec<Column>,
    tags: &[&str],
    look: impl FnOnce(&InputRows<'_>) -> R,
) -> Result<R> {
    let times = (0..).take(rows).collect();
    let mut all = vec![Column::new("time", "tsn:", rows, vec![ArrayBuffer::Ints(times)])];
    all.extend(columns);
    let mapping = ColumnMapping {
        time: "time".to_owned(),
        time_unit_ns: None,
        measurement: MeasurementFrom::Name("link".to_owned()),
        entity: None,
        tags: tags.iter().map(|tag| ((*tag).to_owned(), (*tag).to_owned())).collect(),
        fixed_tags: Vec::new(),
        fields: None,
    };
    let stream = ArrowArrayStream::of(Box::new(OneBatch(Some(all), rows)));
    let mut reader = RowReader::new(stream, Some(mapping), 0)?;
    let found = reader.with_next(look)?.expect("a piece");
    assert!(reader.with_next(|_| ())?.is_none(), "one piece");
    Ok(found)
}

/// Values of the only field, and the rows that have one.
fn field(rows: usize, column: Column) -> Result<(Vec<u32>, String)> {
    read(rows, vec![column], &[], |rows| {
        let [field] = rows.fields.as_slice() else { panic!("one field") };
        let present = field.present.clone().unwrap_or_default();
        let values = match &field.values {
            InputValues::Float(values) => format!("{values:?}"),
            InputValues::Bool(values) => format!("{values:?}"),
            InputValues::Text(values) => format!("{values:?}"),
        };
        (present, values)
    })
}

/// The value of the only tag of each row.
fn tags(rows: usize, column: Column) -> Result<Vec<Option<String>>> {
    let name = column.name;
    read(rows, vec![column], &[name], |rows| {
        let mut start = 0;
        let values: Vec<_> = rows
            .keys
            .iter()
            .map(|key| {
                let tags = &rows.tags[std::mem::replace(&mut start, key.tags_end)..key.tags_end];
                let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("UTF-8");
                tags.first().map(|tag| text(tag.value.as_deref().expect("a value")))
            })
            .collect();
        let key_of = |row: usize| rows.key_of.get(row).map_or(0, |key| *key as usize);
        (0..rows.row_count).map(|row| values[key_of(row)].clone()).collect()
    })
}

fn message<R: std::fmt::Debug>(found: Result<R>) -> String {
    match found {
        Err(Error::Invalid { message }) => message,
        found => panic!("not refused: {found:?}"),
    }
}

fn bytes(bytes: &[u8]) -> ArrayBuffer {
    ArrayBuffer::Bytes(bytes.to_vec())
}

/// Returns the view of a text. The text is inside the view, or at `start` of the first buffer.
fn view(text: &str, start: u32) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("short").to_le_bytes();
    let mut view = length.to_vec();
    if text.len() <= 12 {
        view.extend(text.as_bytes());
        view.resize(16, 0);
    } else {
        view.extend(&text.as_bytes()[..4]);
        view.extend(0_u32.to_le_bytes());
        view.extend(start.to_le_bytes());
    }
    view
}

const LONG: &str = "longer than a view";

/// The same four rows in each layout: `a`, a long text, no text, and `a`.
fn layouts() -> Vec<Column> {
    let nulls = |mut column: Column| {
        column.buffers[0] = Some(bytes(&[0b1011]));
        Column { nulls: 1, ..column }
    };
    let joined = format!("a{LONG}a");
    let end = i32::try_from(joined.len()).expect("short");
    let short = ArrayBuffer::Offsets(vec![0, 1, end - 1, end - 1, end]);
    let long = [0, 1, end - 1, end - 1, end].map(i64::from).to_vec();
    let views = [view("a", 0), view(LONG, 2), vec![0xff; 16], view("a", 0)].concat();
    let length = i64::try_from(LONG.len()).expect("short") + 2;
    let texts = bytes(format!("..{LONG}").as_bytes());
    let dictionary =
        vec![ArrayBuffer::Offsets(vec![0, end - 2, end - 1]), bytes(&joined.as_bytes()[1..])];
    let codes = ArrayBuffer::Offsets(vec![1, 0, -7, 1]);
    vec![
        nulls(Column::new("x", "u", 4, vec![short, bytes(joined.as_bytes())])),
        nulls(Column::new("x", "U", 4, vec![ArrayBuffer::Ints(long), bytes(joined.as_bytes())])),
        nulls(Column::new(
            "x",
            "vu",
            4,
            vec![bytes(&views), texts, ArrayBuffer::Ints(vec![length])],
        )),
        nulls(Column {
            dictionary: Some(Box::new(Column::new("", "u", 2, dictionary))),
            ..Column::new("x", DICTIONARY, 4, vec![codes])
        }),
    ]
}

#[test]
fn texts_of_every_layout_are_fields_and_tags() {
    for column in layouts() {
        let format = column.format;
        let (present, values) = field(4, column).expect("sound");
        assert_eq!(present, [0, 1, 3], "{format}");
        assert_eq!(values, format!("[\"a\", {LONG:?}, \"\", \"a\"]"), "{format}");
    }
    for column in layouts() {
        let expected = [Some("a"), Some(LONG), None, Some("a")];
        assert_eq!(tags(4, column).expect("sound"), expected.map(|text| text.map(str::to_owned)));
    }
}

#[test]
fn rows_begin_behind_the_offset_of_their_column() {
    for mut column in layouts() {
        (column.offset, column.rows) = (1, 3);
        let expected = [Some(LONG.to_owned()), None, Some("a".to_owned())];
        assert_eq!(tags(3, column).expect("sound"), expected);
    }
    let bits = Column::new("x", "b", 9, vec![bytes(&[0b1000_0001, 0b10])]);
    let (_, values) = field(3, Column { offset: 7, rows: 3, ..bits }).expect("sound");
    assert_eq!(values, "[true, false, true]");
}

#[test]
fn numbers_of_every_width_are_fields() {
    let raw = |bytes: &[u8]| ArrayBuffer::Bytes(bytes.to_vec());
    for (format, values, expected) in [
        ("c", raw(&[0x80, 1]), "[-128.0, 1.0]"),
        ("C", raw(&[0x80, 1]), "[128.0, 1.0]"),
        ("s", raw(&[0, 0x80, 1, 0]), "[-32768.0, 1.0]"),
        ("S", raw(&[0, 0x80, 1, 0]), "[32768.0, 1.0]"),
        ("i", ArrayBuffer::Offsets(vec![-5, 1]), "[-5.0, 1.0]"),
        ("I", ArrayBuffer::Offsets(vec![-1, 1]), "[4294967295.0, 1.0]"),
        ("l", ArrayBuffer::Ints(vec![i64::MIN, 1]), "[-9.223372036854776e18, 1.0]"),
        ("L", ArrayBuffer::Ints(vec![-1, 1]), "[1.8446744073709552e19, 1.0]"),
        ("g", ArrayBuffer::Floats(vec![-0.0, 1.5]), "[-0.0, 1.5]"),
        ("f", raw(&[0, 0, 0xc0, 0x3f, 0, 0, 0, 0x80]), "[1.5, -0.0]"),
    ] {
        let found = field(2, Column::new("x", format, 2, vec![values]));
        assert_eq!(found.expect("sound").1, expected, "{format}");
    }
    let numbers = Column::new("x", "c", 2, vec![bytes(&[0xff, 7])]);
    assert_eq!(tags(2, numbers).expect("sound"), [Some("-1".to_owned()), Some("7".to_owned())]);
}

#[test]
fn what_is_not_there_is_not_read() {
    let offsets = |offsets: &[i32]| {
        let values = vec![ArrayBuffer::Offsets(offsets.to_vec()), bytes(b"abc")];
        Column::new("x", "u", 2, values)
    };
    let views = |view: Vec<u8>, length: i64| {
        let values = vec![bytes(&view), bytes(LONG.as_bytes()), ArrayBuffer::Ints(vec![length])];
        Column::new("x", "vu", 1, values)
    };
    let length = i64::try_from(LONG.len()).expect("short");
    let mut foreign = view(LONG, 0);
    foreign[8] = 1;
    let dictionary = |codes: Vec<i32>, dictionary: Option<Column>| Column {
        dictionary: dictionary.map(Box::new),
        ..Column::new("x", DICTIONARY, 2, vec![ArrayBuffer::Offsets(codes)])
    };
    let numbers = || Column::new("x", "g", 2, vec![ArrayBuffer::Floats(vec![1.0, 2.0])]);
    for (rows, column, expected) in [
        (2, offsets(&[0, 3, 2]), "offsets that do not ascend"),
        (2, offsets(&[-1, 0, 2]), "offsets that do not ascend"),
        (1, views(view(LONG, 1), length), "a text that is not there"),
        (1, views(view(LONG, u32::MAX), length), "a text that is not there"),
        (1, views(foreign, length), "a text that is not there"),
        (1, views(view(LONG, 0), -1), "a text that is not there"),
        (2, dictionary(vec![0, 3], Some(offsets(&[0, 1, 3]))), "not in its dictionary"),
        (2, dictionary(vec![-1, 0], Some(offsets(&[0, 1, 3]))), "not in its dictionary"),
        (2, dictionary(vec![0, 0], None), "no dictionary"),
        (3, numbers(), "fewer rows than it says"),
        (2, Column { offset: -1, ..numbers() }, "fewer rows than it says"),
        (2, Column { offset: i64::MAX - 1, ..numbers() }, "fewer rows than it says"),
        (2, Column { buffers: vec![None, None], ..numbers() }, "no buffer 1"),
        (2, Column { buffers: vec![None], ..numbers() }, "no buffer 1"),
    ] {
        let message = message(field(rows, column));
        assert!(message.contains("column \"x\" has") && message.contains(expected), "{message}");
    }
    let broken = Column::new("x", "u", 1, vec![ArrayBuffer::Offsets(vec![0, 1]), bytes(b"\xff")]);
    assert!(message(field(1, broken)).contains("text that is not UTF-8"));
}

/// Rows of a scan with these offsets of their entries, keys `k` and values `v`.
fn scan(format: &'static str, offsets: ArrayBuffer, entries: usize) -> Vec<Column> {
    let texts = |name: &'static str| {
        let offsets = (0..).take(entries + 1).collect();
        Column::new(
            name,
            "u",
            entries,
            vec![ArrayBuffer::Offsets(offsets), bytes(&vec![b'k'; entries])],
        )
    };
    let times = vec![ArrayBuffer::Ints(vec![1, 2])];
    let names = vec![ArrayBuffer::Offsets(vec![0, 4, 8]), bytes(b"linklink")];
    let structs = Column {
        children: vec![texts("key"), texts("value")],
        ..Column::new("entries", "+s", entries, Vec::new())
    };
    vec![
        Column::new("time", "tsn:UTC", 2, times),
        Column::new("measurement", "u", 2, names),
        Column { children: vec![structs], ..Column::new("tags", format, 2, vec![offsets]) },
    ]
}

fn tag_counts(columns: Vec<Column>) -> Result<Vec<usize>> {
    let stream = ArrowArrayStream::of(Box::new(OneBatch(Some(columns), 2)));
    let mut reader = RowReader::new(stream, None, 0)?;
    let found = reader.with_next(|rows| {
        let ends: Vec<_> = rows.keys.iter().map(|key| key.tags_end).collect();
        ends.iter().scan(0, |start, end| Some(end - std::mem::replace(start, *end))).collect()
    });
    Ok(found?.expect("a piece"))
}

#[test]
fn maps_and_lists_of_structs_are_tags() {
    let found = tag_counts(scan("+m", ArrayBuffer::Offsets(vec![1, 2, 4]), 4));
    assert_eq!(found.expect("sound"), [1, 2]);
    let found = tag_counts(scan("+L", ArrayBuffer::Ints(vec![0, 0, 3]), 3));
    assert_eq!(found.expect("sound"), [0, 3]);
    let found = tag_counts(scan("+l", ArrayBuffer::Offsets(vec![0, 2, 4]), 4));
    assert_eq!(found.expect("sound"), [2], "rows that are alike have one key");
}

#[test]
fn entries_that_are_not_there_are_not_read() {
    let beyond = tag_counts(scan("+m", ArrayBuffer::Offsets(vec![0, 1, 5]), 4));
    assert!(message(beyond).contains("fewer rows than it says"));
    let mut columns = scan("+m", ArrayBuffer::Offsets(vec![0, 1, 2]), 2);
    columns[2].children[0].children[1].rows = 1;
    assert!(message(tag_counts(columns)).contains("fewer rows than it says"));
}

#[test]
fn a_dictionary_of_anything_but_integers_is_refused() {
    let mut columns = scan("+L", ArrayBuffer::Ints(vec![0, 1, 2]), 2);
    columns[2].format = FOREIGN_DICTIONARY;
    assert!(message(tag_counts(columns)).contains("column \"tags\" has a dictionary without"));
}

#[test]
fn types_that_nest_without_end_are_refused() {
    let mut column = Column::new("x", "g", 0, vec![ArrayBuffer::Floats(Vec::new())]);
    for _ in 0..9 {
        column = Column { children: vec![column], ..Column::new("x", "+s", 0, Vec::new()) };
    }
    assert!(message(field(0, column)).contains("nest too deep"));
}
