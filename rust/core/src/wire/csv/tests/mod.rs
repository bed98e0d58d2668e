//! Rows of CSV as batches, compared with the same records in JSON, and faulty rows.

mod faults;
mod properties;

use super::{CsvColumn, CsvColumns, CsvField};
use crate::model::batch::{FieldType, ParseResult};
use crate::model::limits::WriteLimits;
use crate::model::raw_keys::RawKeyCache;
use crate::wire::{ParseContext, parse_csv};

const NOW_NS: i64 = 1_790_000_000_000_000_000;
const TIME: &str = "2026-01-01T00:00:00Z";

fn field(name: &str, field_type: Option<FieldType>) -> CsvColumn {
    let field = Some(CsvField { name: name.to_owned(), field_type });
    CsvColumn { field, ..CsvColumn::default() }
}

fn tag(name: &str) -> CsvColumn {
    CsvColumn { tags: vec![name.to_owned()], ..CsvColumn::default() }
}

fn time() -> CsvColumn {
    CsvColumn { is_time: true, ..CsvColumn::default() }
}

/// Returns columns for rows of `link`.
fn header(cells: Vec<CsvColumn>) -> CsvColumns {
    CsvColumns { cells, measurement: Some("link".to_owned()), ..CsvColumns::default() }
}

fn parse(header: &mut CsvColumns, body: &[u8]) -> ParseResult {
    let limits = WriteLimits::default();
    parse_csv(body, header, ParseContext::new(&RawKeyCache::default(), &limits, "acme", NOW_NS))
}
