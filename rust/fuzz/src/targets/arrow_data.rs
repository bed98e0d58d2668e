//! Makes rows of any type from bytes, most of them valid.

use crate::producer::{Data, Type};
use crate::targets::view::NOW_NS;

/// Greatest length, in bytes, of a buffer of texts or of bounds of parts.
const PART_MAX: i64 = 64;
/// The byte before a number that may have any value.
const ANY: u8 = 0xff;

/// Bytes that are taken one by one; zeros after the end.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl Input<'_> {
    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Returns true if the next part of the data should be invalid.
    pub(super) fn is_odd(&mut self) -> bool {
        self.byte() == ANY
    }

    fn word(&mut self) -> [u8; 8] {
        std::array::from_fn(|_| self.byte())
    }

    /// Returns a small number, or any number.
    fn number(&mut self) -> i64 {
        match self.byte() {
            ANY => i64::from_le_bytes(self.word()),
            small => i64::from(small),
        }
    }
}

/// Makes rows of a type. Buffers have the length that the interface asks for, with any numbers.
pub(super) fn data_of(of: &Type, rows: usize, input: &mut Input<'_>) -> Data {
    let offset = usize::from(input.byte() % 4);
    let length = if input.is_odd() { rows.saturating_sub(1) } else { rows };
    let end = offset + length;
    let null_count = [0, 0, -1, 1][usize::from(input.byte() % 4)];
    let validity = (null_count != 0).then(|| bytes(end.div_ceil(8), input));
    let mut data = Data {
        length: count(length),
        null_count,
        offset: count(offset),
        buffers: vec![validity],
        ..Data::default()
    };
    let mut parts = end;
    match of.format.as_bytes() {
        _ if of.dictionary.is_some() => data.buffers.push(Some(numbers(&of.format, end, input))),
        b"n" => data.buffers.clear(),
        b"+s" => {}
        b"u" | b"z" => texts::<4>(&mut data, end, input),
        b"U" => texts::<8>(&mut data, end, input),
        b"+m" | b"+l" => (parts, data.buffers) = offsets::<4>(data.buffers, end, input),
        b"+L" => (parts, data.buffers) = offsets::<8>(data.buffers, end, input),
        b"vu" => views(&mut data, end, input),
        b"b" => data.buffers.push(Some(bytes(end.div_ceil(8), input))),
        _ => data.buffers.push(Some(numbers(&of.format, end, input))),
    }
    let parts = if input.is_odd() { parts.saturating_sub(1) } else { parts };
    data.children = of.children.iter().map(|of| data_of(of, parts, input)).collect();
    data.dictionary = of.dictionary.as_ref().map(|of| {
        let entries = usize::from(input.byte() % 8);
        Box::new(data_of(of, entries, input))
    });
    twist(&mut data, input);
    data
}

/// Leaves a part out, or sets a number to an impossible value.
fn twist(data: &mut Data, input: &mut Input<'_>) {
    if !input.is_odd() {
        return;
    }
    match input.byte() % 7 {
        0 => data.length = -data.length,
        1 => data.offset = -1 - data.offset,
        2 => data.children.truncate(usize::from(input.byte() % 2)),
        3 => data.dictionary = None,
        // If there are more than three buffers, the last holds lengths that must exist.
        4 => data.buffers.truncate(usize::from(input.byte() % 3)),
        5 => {
            let at = usize::from(input.byte() % 4);
            data.buffers.iter_mut().skip(at).take(1).for_each(|buffer| *buffer = None);
        }
        _ => data.null_count = input.number(),
    }
}

fn bytes(count: usize, input: &mut Input<'_>) -> Box<[u8]> {
    (0..count).map(|_| input.byte()).collect()
}

/// Makes numbers of a format, or eight bytes each if the format has no numbers.
fn numbers(format: &std::ffi::CStr, count: usize, input: &mut Input<'_>) -> Box<[u8]> {
    let mut bytes = Vec::new();
    for _ in 0..count {
        let number = input.number();
        match format.to_bytes() {
            b"c" | b"C" => bytes.extend(&number.to_le_bytes()[..1]),
            b"s" | b"S" => bytes.extend(&number.to_le_bytes()[..2]),
            b"i" | b"I" | b"f" | b"tdD" => bytes.extend(&number.to_le_bytes()[..4]),
            b"tsn:UTC" => bytes.extend(NOW_NS.wrapping_sub(number).to_le_bytes()),
            _ => bytes.extend(number.to_le_bytes()),
        }
    }
    bytes.into()
}

/// Returns the greatest bound of `end` parts, and the buffers with the bounds: mostly ascending, of
/// `N` bytes each.
fn offsets<const N: usize>(
    mut buffers: Vec<Option<Box<[u8]>>>,
    end: usize,
    input: &mut Input<'_>,
) -> (usize, Vec<Option<Box<[u8]>>>) {
    let (mut bytes, mut last, mut max) = (Vec::new(), 0, 0);
    for _ in 0..=end {
        let number = input.number();
        // A bound beyond all parts would cause a read past them, which no reader can detect.
        let is_small = (0..256).contains(&number);
        let bound = if is_small { last + number % 8 } else { number };
        last = bound.clamp(-PART_MAX, PART_MAX);
        max = last.max(max);
        bytes.extend(&last.to_le_bytes()[..N]);
    }
    buffers.push(Some(bytes.into()));
    (usize::try_from(max).expect("no less than 0"), buffers)
}

fn texts<const N: usize>(data: &mut Data, end: usize, input: &mut Input<'_>) {
    let length;
    (length, data.buffers) = offsets::<N>(std::mem::take(&mut data.buffers), end, input);
    data.buffers.push(Some(bytes(length, input)));
}

/// Makes views of texts, which are in the view itself or in a buffer.
fn views(data: &mut Data, end: usize, input: &mut Input<'_>) {
    let mut views = Vec::new();
    for _ in 0..end {
        let length = input.number();
        views.extend(&length.to_le_bytes()[..4]);
        if (0..=12).contains(&length) {
            let mut text = bytes(usize::try_from(length).expect("small"), input).into_vec();
            text.resize(12, 0);
            views.extend(text);
        } else {
            views.extend([input.byte(); 4]);
            views.extend(&(input.number() % 4).to_le_bytes()[..4]);
            views.extend(&input.number().to_le_bytes()[..4]);
        }
    }
    let buffers = [bytes(usize::from(input.byte() % 64), input), bytes(20, input)];
    let mut lengths: Vec<i64> = buffers.iter().map(|buffer| count(buffer.len())).collect();
    if input.is_odd() {
        lengths[0] = -1;
    }
    data.buffers.push(Some(views.into()));
    data.buffers.extend(buffers.map(Some));
    data.buffers.push(Some(lengths.iter().flat_map(|length| length.to_le_bytes()).collect()));
}

fn count(length: usize) -> i64 {
    i64::try_from(length).expect("small")
}
