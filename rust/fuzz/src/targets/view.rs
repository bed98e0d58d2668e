//! Meaning of a parsed batch: two bodies that differ only in style have the same view.

use std::collections::BTreeMap;

use fleetcast_core::model::batch::{Batch, NEW_SERIES_BASE, ParseResult, RowSet, Table, Values};
use fleetcast_core::model::fault::{BatchRefusal, FaultCode};
use fleetcast_core::model::limits::{FAULTS_MAX, WriteLimits};
use fleetcast_core::model::names::SeriesName;
use fleetcast_core::model::raw_keys::RawKeyCache;
use fleetcast_core::model::time::SECOND_NS;
use fleetcast_core::wire::{Format, ParseContext};

use crate::cost::{Body, Cost, cost_of};

/// Small, so that inputs of some hundred bytes reach these limits.
pub(super) const LIMITS: WriteLimits = WriteLimits {
    batch_records_max: 12,
    tags_max: 4,
    fields_max: 6,
    tenant_fields_max: 9,
    tenant_series_max: 9,
    tenant_names_bytes_max: 1 << 20,
};
pub(super) const NOW_NS: i64 = 1_790_000_000 * SECOND_NS;

#[derive(Debug, PartialEq, PartialOrd)]
pub(super) enum Value {
    Float(u64),
    Bool(bool),
    Text(String),
}

#[derive(Debug, PartialEq)]
pub(super) struct Row {
    name: SeriesName,
    time_ns: i64,
    cells: BTreeMap<String, Value>,
}

/// Meaning of a batch.
#[derive(Debug, PartialEq)]
pub(super) enum View {
    /// The refusal in words; faults are sorted.
    Refused(Vec<String>),
    /// The record of the first conflict. The cells that were left out depend on the order of the
    /// keys, so the view has none.
    Conflict {
        record: u32,
        rejected: Vec<u32>,
    },
    /// More fields than a tenant may have. The fields that were left out depend on the order of the
    /// keys, so the view has none.
    TooManyFields {
        rejected: Vec<u32>,
    },
    Accepted {
        tables: Vec<(String, Vec<Row>)>,
        rejected: Vec<u32>,
        clamped: u32,
    },
}

impl View {
    /// Returns the view with the rows of each series and time next to each other, in their old
    /// order.
    pub(super) fn ordered(mut self) -> Self {
        if let Self::Accepted { tables, .. } = &mut self {
            for (_, rows) in &mut *tables {
                rows.sort_by_cached_key(|row| (row.name.view().as_bytes().to_vec(), row.time_ns));
            }
            tables.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        self
    }
}

pub(super) fn parse(format: Format, body: &[u8], names: &RawKeyCache) -> ParseResult {
    format.parse(body, ParseContext::new(names, &LIMITS, "acme", NOW_NS))
}

/// Returns a cache with every `step`th new series of a batch, and their names by id.
pub(super) fn cache_of(batch: &Batch, step: usize) -> (RawKeyCache, Vec<SeriesName>) {
    let mut cache = RawKeyCache::default();
    let mut names = Vec::new();
    for new in batch.new_series.iter().step_by(step) {
        let known = names.iter().position(|name: &SeriesName| name.view() == new.name);
        let id = known.unwrap_or(names.len());
        cache.insert(new.raw_key, u32::try_from(id).expect("a batch has few series"));
        if known.is_none() {
            names.push(new.name.to_name());
        }
    }
    (cache, names)
}

/// Returns the cost of a body under these limits.
pub(super) fn cost(body: Body<'_>) -> Cost {
    cost_of(body, &LIMITS, NOW_NS).0
}

/// Reads `body` with a cold, a half warm and a warm cache. All views must be equal.
pub(super) fn view_of(format: Format, body: &[u8]) -> View {
    let cold = parse(format, body, &RawKeyCache::default());
    let seen = view(&cold, &[]);
    if let Ok(batch) = &cold {
        for step in [1, 2] {
            let (cache, names) = cache_of(batch, step);
            let warm = parse(format, body, &cache);
            if step == 1 {
                let new = warm.as_ref().map(|batch| batch.new_series.len());
                assert_eq!(new, Ok(0), "a series is not found by its raw key");
            }
            assert_eq!(view(&warm, &names), seen, "a warm cache changes what is read");
        }
    }
    seen
}

pub(super) fn view(parsed: &ParseResult, known: &[SeriesName]) -> View {
    let batch = match parsed {
        Ok(batch) => batch,
        Err(BatchRefusal::Faults(faults)) => {
            assert!((1..=FAULTS_MAX).contains(&faults.len()));
            let mut words: Vec<_> = faults.iter().map(|fault| format!("{fault:?}")).collect();
            words.sort();
            return View::Refused(words);
        }
        Err(refusal) => return View::Refused(vec![format!("{refusal:?}")]),
    };
    let rejected = batch.rejected_indices.clone();
    if batch.has_excess_fields {
        return View::TooManyFields { rejected };
    }
    if let Some(conflict) = &batch.conflict {
        return View::Conflict { record: conflict.at.record, rejected };
    }
    let tables = batch.measurements.iter().zip(&batch.tables);
    let tables: Vec<_> =
        tables.map(|(name, table)| (name.clone(), rows(batch, table, known))).collect();
    let accepted: usize = tables.iter().map(|(_, rows)| rows.len()).sum();
    assert_eq!(accepted, batch.accepted_count as usize);
    View::Accepted { tables, rejected, clamped: batch.clamped_count }
}

fn rows(batch: &Batch, table: &Table, known: &[SeriesName]) -> Vec<Row> {
    let series_name = |series: u32| match series.checked_sub(NEW_SERIES_BASE) {
        Some(new) => {
            batch.new_series.get(new as usize).expect("a number of the batch").name.to_name()
        }
        None => known[series as usize].clone(),
    };
    assert_eq!(table.series.len(), table.times_ns.len());
    let rows = table.series.iter().zip(&table.times_ns).map(|(&series, &time_ns)| Row {
        name: series_name(series),
        time_ns,
        cells: BTreeMap::new(),
    });
    let mut rows: Vec<_> = rows.collect();
    for column in &table.columns {
        let field = &batch.fields[column.field as usize];
        assert_eq!(field.field_type, column.values.field_type());
        let row_indices: Vec<usize> = match &column.rows {
            RowSet::All => (0..rows.len()).collect(),
            RowSet::Some(some) => some.iter().map(|&row| row as usize).collect(),
        };
        assert_eq!(row_indices.len(), column.values.len());
        for (at, row) in row_indices.into_iter().enumerate() {
            let value = match &column.values {
                Values::Float(values) => Value::Float(values[at].to_bits()),
                Values::Bool(values) => Value::Bool(values[at]),
                Values::Text(values) => Value::Text(values[at].to_string()),
            };
            assert!(rows[row].cells.insert(field.name.clone(), value).is_none());
        }
    }
    assert!(rows.iter().all(|row| !row.cells.is_empty()), "a row without a field");
    rows
}

/// Returns true if the batch is refused because it is not JSON.
pub(super) fn is_json_invalid(parsed: &ParseResult) -> bool {
    matches!(parsed, Err(BatchRefusal::Faults(faults)) if faults[0].code == FaultCode::JsonInvalid)
}
