//! Reading a block, whole or by columns.

use super::head::{ColumnHead, TableHead, TimeBounds};
use super::run_lengths::RunLengths;
use super::write::{CHECKSUM_LEN, FIRST_VERSION, VERSION};
use super::{bools, rows, texts};
use crate::codec::bytes::ByteReader;
use crate::codec::{float, integer};
use crate::model::batch::{Block, Column, FieldType, Table, Values};
use crate::model::error::Result;
use crate::model::limits::{BLOCK_CELLS_MAX, BLOCK_ROWS_MAX, BLOCK_TEXT_BYTES_MAX};

/// Decodes a whole block.
///
/// # Errors
///
/// Returns [`crate::model::error::Error::Corrupt`] if the bytes do not follow the format, and
/// [`crate::model::error::Error::Foreign`] for a block of a build before 0.3.0.
pub fn decode_block(bytes: &[u8]) -> Result<Block> {
    let reader = BlockReader::open(bytes)?;
    let mut text_left = BLOCK_TEXT_BYTES_MAX;
    let mut tables = Vec::with_capacity(reader.tables().len());
    for index in 0..reader.tables().len() {
        let table = reader.table(index)?;
        let columns = (0..table.head().columns.len())
            .map(|index| table.column_within(index, &mut text_left))
            .collect::<Result<_>>()?;
        tables.push(Table { series: table.series(), times_ns: table.times_ns()?, columns });
    }
    Ok(Block { ingest_ns: reader.ingest_ns(), tables })
}

/// A block whose checksum and heads are checked, and whose columns are decoded on demand.
#[derive(Clone, Debug)]
pub struct BlockReader<'a> {
    ingest_ns: i64,
    tables: Vec<TableHead>,
    /// Bodies of each table.
    bodies: Vec<&'a [u8]>,
}

impl<'a> BlockReader<'a> {
    /// Verifies the checksum and reads the heads.
    ///
    /// # Errors
    ///
    /// Returns [`crate::model::error::Error::Corrupt`] if the checksum or a head is wrong, and
    /// [`crate::model::error::Error::Foreign`] for a block of a build before 0.3.0.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let mut input = ByteReader::new(bytes, "the head of a block");
        let (covered, checksum) =
            bytes.split_last_chunk::<CHECKSUM_LEN>().ok_or_else(|| input.corrupt())?;
        input.check(crc32fast::hash(covered) == u32::from_le_bytes(*checksum))?;
        input = ByteReader::new(covered, "the head of a block");
        input.version_among(FIRST_VERSION..=VERSION)?;
        let ingest_ns = i64::from_le_bytes(input.array()?);
        let table_count = input.len(input.remaining())?;
        let (mut rows_left, mut cells_left) = (BLOCK_ROWS_MAX, BLOCK_CELLS_MAX);
        let mut tables = Vec::new();
        for _ in 0..table_count {
            let table = TableHead::decode(&mut input, ingest_ns, rows_left)?;
            rows_left -= table.row_count;
            for column in &table.columns {
                cells_left = cells_left.checked_sub(column.count).ok_or_else(|| input.corrupt())?;
            }
            tables.push(table);
        }
        let bodies = tables
            .iter()
            .map(|table| input.take(table.bodies_len().ok_or_else(|| input.corrupt())?))
            .collect::<Result<_>>()?;
        input.end()?;
        Ok(Self { ingest_ns, tables, bodies })
    }

    /// The ingest instant of the batch, in nanoseconds since 1970.
    #[must_use]
    pub const fn ingest_ns(&self) -> i64 {
        self.ingest_ns
    }

    /// Heads of the tables. A caller uses the heads to decide which tables to read.
    #[must_use]
    pub fn tables(&self) -> &[TableHead] {
        &self.tables
    }

    /// Reads the series of a table.
    ///
    /// # Errors
    ///
    /// Returns [`crate::model::error::Error::Corrupt`] if the series do not follow the format.
    ///
    /// # Panics
    ///
    /// Panics if the block has no table with this index.
    pub fn table(&self, index: usize) -> Result<TableReader<'_>> {
        let head = &self.tables[index];
        let mut input = ByteReader::new(self.bodies[index], "the series of a block");
        let mut series = ByteReader::new(input.take(head.series_len)?, "the series of a block");
        let runs = RunLengths::decode(&mut series, head.row_count)?;
        series.end()?;
        let times = input.take(head.times_len)?;
        let mut columns = Vec::with_capacity(head.columns.len());
        for column in &head.columns {
            columns.push((input.take(column.rows_len)?, input.take(column.values_len)?));
        }
        Ok(TableReader { head, runs, times, columns })
    }
}

/// A table whose series are decoded, and whose times and columns are decoded on demand.
#[derive(Clone, Debug)]
pub struct TableReader<'a> {
    head: &'a TableHead,
    runs: RunLengths,
    times: &'a [u8],
    /// Rows body and values body of each column.
    columns: Vec<(&'a [u8], &'a [u8])>,
}

impl TableReader<'_> {
    /// The head of this table.
    #[must_use]
    pub const fn head(&self) -> &TableHead {
        self.head
    }

    /// The series as runs. The runs give the rows of a series without a look at each row.
    #[must_use]
    pub const fn runs(&self) -> &RunLengths {
        &self.runs
    }

    /// The series of each row.
    #[must_use]
    pub fn series(&self) -> Vec<u32> {
        self.runs.expand()
    }

    /// The time of each row, in nanoseconds since 1970.
    ///
    /// # Errors
    ///
    /// Returns [`crate::model::error::Error::Corrupt`] if the times do not follow the format.
    pub fn times_ns(&self) -> Result<Vec<i64>> {
        let mut input = ByteReader::new(self.times, "the times of a block");
        let times = integer::decode(&mut input, self.head.row_count, self.runs.lengths())?.widen();
        input.end()?;
        input.check(self.head.times == TimeBounds::of(&times))?;
        Ok(times)
    }

    /// Decodes the column with this index in [`TableHead::columns`].
    ///
    /// # Errors
    ///
    /// Returns [`crate::model::error::Error::Corrupt`] if the column does not follow the format.
    ///
    /// # Panics
    ///
    /// Panics if the table has no column with this index.
    pub fn column(&self, index: usize) -> Result<Column> {
        self.column_within(index, &mut { BLOCK_TEXT_BYTES_MAX })
    }

    /// Decodes a column as [`Self::column`] does. `text_left` is the number of text bytes that the
    /// block may still hold.
    fn column_within(&self, index: usize, text_left: &mut usize) -> Result<Column> {
        let head: &ColumnHead = &self.head.columns[index];
        let (rows, values) = self.columns[index];
        let mut input = ByteReader::new(rows, "the rows of a column");
        let rows = rows::decode(&mut input, head.rows, self.head.row_count, head.count)?;
        input.end()?;
        let lengths = self.runs.lengths_of(&rows);
        let mut input = ByteReader::new(values, "the values of a column");
        let values = match head.field_type {
            FieldType::Float => {
                Values::Float(float::decode(&mut input, head.count, &lengths, head.bounds)?)
            }
            FieldType::Bool => Values::Bool(bools::decode(&mut input, head.count)?),
            FieldType::Text => {
                Values::Text(texts::decode(&mut input, head.count, &lengths, text_left)?)
            }
        };
        input.end()?;
        Ok(Column { field: head.field, rows, values })
    }
}
