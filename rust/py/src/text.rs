//! Texts of files, in formats that keep a record in a line.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use fleetcast_core::model::batch::FieldType;
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::{Acknowledgement, Plane, WriteError, WriteReport};
use fleetcast_core::storage::store::Cursor;
use fleetcast_core::wire::{
    CsvColumn, CsvColumns, CsvField, Format, Precision, csv_cells, csv_records, json_records,
    line_records,
};
use fleetcast_docstrings::documented;

use crate::arguments::{PRECISIONS, field_type_of, precision_of};
use crate::gil::leave;

/// Start and end of a record in bytes, and the number of its line.
type RecordParts = (usize, usize, usize);

/// Position of an import, which is stored together with a text.
#[derive(FromPyObject)]
pub(crate) enum ImportPosition {
    /// Lines before the text. The lines of the text are added to this count.
    Lines(u64),
    Bytes(Vec<u8>),
}

impl ImportPosition {
    pub(crate) fn of(self, key: [u8; 16]) -> Acknowledgement {
        match self {
            Self::Lines(before) => Acknowledgement::AfterLines { key, before },
            Self::Bytes(position) => Acknowledgement::At(Cursor { key, position }),
        }
    }
}

enum TextKind {
    Json,
    Lines(Precision),
    /// The first cells decide the types of the columns.
    Csv(Mutex<CsvColumns>),
}

/// Roles of a column: tags, and the name and type of its field.
type ColumnParts = (Vec<String>, Option<(String, Option<String>)>);

#[documented]
#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct TextFormat {
    kind: TextKind,
}

impl TextFormat {
    pub(crate) fn write(
        &self,
        plane: &Plane,
        body: &[u8],
        limits: &WriteLimits,
        now_ns: i64,
        when: Acknowledgement,
    ) -> Result<WriteReport, WriteError> {
        match &self.kind {
            TextKind::Json => plane.write(Format::JsonLines, body, limits, now_ns, when),
            TextKind::Lines(precision) => {
                plane.write(Format::Lines(*precision), body, limits, now_ns, when)
            }
            TextKind::Csv(header) => {
                let mut header = header.lock().unwrap_or_else(PoisonError::into_inner);
                plane.write_csv(&mut header, body, limits, now_ns, when)
            }
        }
    }
}

#[documented]
#[pymethods]
impl TextFormat {
    fn __repr__(&self) -> String {
        match &self.kind {
            TextKind::Json => "TextFormat.json()".to_owned(),
            TextKind::Lines(precision) => {
                let name =
                    PRECISIONS.iter().find(|name| Precision::parse(name) == Some(*precision));
                format!("TextFormat.lines('{}')", name.unwrap_or(&""))
            }
            TextKind::Csv(header) => {
                let header = header.lock().unwrap_or_else(PoisonError::into_inner);
                format!("TextFormat.csv({} columns)", header.cells.len())
            }
        }
    }

    #[staticmethod]
    fn json() -> Self {
        Self { kind: TextKind::Json }
    }

    #[staticmethod]
    fn lines(precision: &str) -> PyResult<Self> {
        Ok(Self { kind: TextKind::Lines(precision_of(precision)?) })
    }

    #[staticmethod]
    #[pyo3(signature = (columns, *, time, time_unit, measurement, measurement_column, fixed_tags))]
    fn csv(
        columns: Vec<ColumnParts>,
        time: usize,
        time_unit: Option<&str>,
        measurement: Option<String>,
        measurement_column: Option<usize>,
        fixed_tags: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let unit_ns = |unit| precision_of(unit).map(Precision::unit_ns);
        let mut cells = columns.into_iter().map(column_of).collect::<PyResult<Vec<_>>>()?;
        let no_column = || PyValueError::new_err("no such column");
        cells.get_mut(time).ok_or_else(no_column)?.is_time = true;
        if let Some(at) = measurement_column {
            cells.get_mut(at).ok_or_else(no_column)?.is_measurement = true;
        }
        let time_unit_ns = time_unit.map(unit_ns).transpose()?;
        let header = CsvColumns { cells, time_unit_ns, measurement, fixed_tags };
        Ok(Self { kind: TextKind::Csv(Mutex::new(header)) })
    }

    #[staticmethod]
    fn cells(row: &str) -> Option<Vec<String>> {
        csv_cells(row)
    }

    fn kinds(&self) -> Vec<Option<&'static str>> {
        let TextKind::Csv(header) = &self.kind else { return Vec::new() };
        let header = header.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = |field: &CsvField| field.field_type.map(FieldType::as_str);
        header.cells.iter().map(|cell| cell.field.as_ref().and_then(kind)).collect()
    }

    #[pyo3(signature = (body, end=None))]
    fn records(
        &self,
        py: Python<'_>,
        body: &[u8],
        end: Option<usize>,
    ) -> PyResult<(Vec<RecordParts>, Option<usize>)> {
        let body = first_bytes(body, end);
        leave(py, || {
            Ok(match &self.kind {
                TextKind::Json => (json_records(body), None),
                TextKind::Lines(_) => line_records(body),
                TextKind::Csv(_) => csv_records(body),
            })
        })
    }
}

fn column_of((tags, field): ColumnParts) -> PyResult<CsvColumn> {
    let field = field.map(|(name, kind)| {
        let field_type = kind.as_deref().map(field_type_of).transpose()?;
        Ok::<_, PyErr>(CsvField { name, field_type })
    });
    Ok(CsvColumn { tags, field: field.transpose()?, ..CsvColumn::default() })
}

/// Returns the bytes of `body` before `end`.
pub(crate) fn first_bytes(body: &[u8], end: Option<usize>) -> &[u8] {
    end.and_then(|end| body.get(..end)).unwrap_or(body)
}
