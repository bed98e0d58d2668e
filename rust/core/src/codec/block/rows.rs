//! The rows of a table that have a value in a column.

use crate::codec::Effort;
use crate::codec::bytes::ByteReader;
use crate::codec::integer;
use crate::model::batch::RowSet;
use crate::model::error::Result;

/// Stored forms of the rows of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    All = 0,
    Bitmap = 1,
    List = 2,
    /// A list of the rows without a value.
    Gaps = 3,
}

impl Form {
    pub(super) const fn of_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::All),
            1 => Some(Self::Bitmap),
            2 => Some(Self::List),
            3 => Some(Self::Gaps),
            _ => None,
        }
    }
}

/// Appends `rows` in their shortest form. Returns that form.
pub(super) fn encode(rows: &RowSet, row_count: usize, effort: Effort, out: &mut Vec<u8>) -> Form {
    let RowSet::Some(rows) = rows else {
        return Form::All;
    };
    let (form, listed) = if rows.len() >= row_count - rows.len() {
        (Form::Gaps, gaps(rows, row_count))
    } else {
        (Form::List, rows.iter().map(|row| i64::from(*row)).collect())
    };
    let mut list = Vec::new();
    integer::encode_run(&listed, effort, &mut list);
    let bitmap_len = row_count.div_ceil(8);
    if list.len() < bitmap_len {
        out.append(&mut list);
        return form;
    }
    let start = out.len();
    out.resize(start + bitmap_len, 0);
    for &row in rows {
        out[start + row as usize / 8] |= 1 << (row % 8);
    }
    Form::Bitmap
}

/// Returns the rows that have no value.
fn gaps(rows: &[u32], row_count: usize) -> Vec<i64> {
    let mut gaps = Vec::with_capacity(row_count - rows.len());
    let mut next = 0;
    for row in rows.iter().map(|row| i64::from(*row)) {
        gaps.extend(next..row);
        next = row + 1;
    }
    gaps.extend((next..).take(row_count - rows.len() - gaps.len()));
    gaps
}

/// Reads the `count` rows of a column in a table of `row_count` rows.
pub(super) fn decode(
    input: &mut ByteReader<'_>,
    form: Form,
    row_count: usize,
    count: usize,
) -> Result<RowSet> {
    let end = u32::try_from(row_count).map_err(|_| input.corrupt())?;
    let rows = match form {
        Form::All => return Ok(RowSet::All),
        Form::List => integer::decode_run(input, count, end)?,
        Form::Gaps => {
            // At most as many rows are listed as there are values, which the caller bounds.
            input.check(row_count - count <= count)?;
            let gaps = integer::decode_run(input, row_count - count, end)?;
            input.check(gaps.is_sorted_by(|a, b| a < b))?;
            let mut rows = Vec::with_capacity(count);
            let mut next = 0;
            for gap in gaps {
                rows.extend(next..gap);
                next = gap + 1;
            }
            rows.extend(next..end);
            rows
        }
        Form::Bitmap => {
            let bitmap = input.take(row_count.div_ceil(8))?;
            let set: u32 = bitmap.iter().map(|byte| byte.count_ones()).sum();
            input.check(set as usize == count)?;
            let mut rows = Vec::with_capacity(count);
            for (first, &byte) in (0..).step_by(8).zip(bitmap) {
                let mut left = byte;
                while left != 0 {
                    rows.push(first + left.trailing_zeros());
                    left &= left - 1;
                }
            }
            rows
        }
    };
    input.check(rows.is_sorted_by(|a, b| a < b))?;
    input.check(rows.last().is_none_or(|last| *last < end))?;
    Ok(RowSet::Some(rows))
}
