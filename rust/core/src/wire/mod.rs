//! Wire formats: bytes of a batch in, [`Batch`](crate::model::batch::Batch) or
//! [`BatchRefusal`](crate::model::fault::BatchRefusal) out.
//!
//! Every format finds a known series by the raw bytes of its tags. It checks the rest of a record
//! by the same rules, and hands accepted cells to the columns of a batch. Refusals have the order
//! of stages 9 to 13 in `docs/contract.md`.
//!
//! A record that differs from an earlier record only in its values is read by a template. Templates
//! only save time: in any doubt the rules read the record
//! (`docs/decisions/0014-record-template.md`). Each module may use the modules listed above it.

mod context;
mod faults;
mod key_set;
mod precision;
mod prefix;
mod rules;
mod value;

mod mapping;

mod columns;
mod series;

mod tokens;

mod tag_template;

mod builder;

mod template;

pub mod columnar;

mod csv;
mod json;
mod line;
mod metrics;
mod protobuf;

mod encode;

#[cfg(test)]
mod tests;

pub use context::ParseContext;
pub use csv::{CsvColumn, CsvColumns, CsvField, csv_cells, csv_records, parse_csv};
pub use encode::{FieldValue, RecordEncoder};
pub use json::{json_records, parse_json, parse_json_lines};
pub use line::{line_records, parse_adapted_lines, parse_lines};
pub use mapping::{Adapter, NameRules, Rule};
pub use metrics::{parse_otlp, parse_remote_write};
pub use precision::Precision;
pub use protobuf::{is_acceptable, parse_protobuf};
pub use tokens::line::Backslashes;

use crate::model::batch::ParseResult;

/// Encoding of the body of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON array of records.
    Json,
    /// A serialized `fleet.telemetry.v1.WriteRequest`.
    Protobuf,
    /// Lines that are a JSON object each.
    JsonLines,
    /// Lines of `InfluxDB`'s line protocol, with times in these units.
    Lines(Precision),
}

impl Format {
    /// Reads `body` as [`parse_json`], [`parse_protobuf`], [`parse_json_lines`] or [`parse_lines`]
    /// does.
    ///
    /// # Errors
    /// Returns the errors of these functions.
    ///
    /// # Panics
    /// Panics as these functions do.
    pub fn parse(self, body: &[u8], context: ParseContext<'_>) -> ParseResult {
        match self {
            Self::Json => parse_json(body, context),
            Self::Protobuf => parse_protobuf(body, context),
            Self::JsonLines => parse_json_lines(body, context),
            Self::Lines(precision) => parse_lines(body, precision, context),
        }
    }
}

/// Protocol of a body whose names are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Lines of `InfluxDB`'s line protocol, with times in these units, by the rules of a version.
    Lines(Precision, Backslashes),
    /// A decompressed `WriteRequest` of Prometheus's remote write 1.0.
    RemoteWrite,
    /// An `ExportMetricsServiceRequest` of OpenTelemetry.
    Otlp,
}

impl Protocol {
    /// Reads `body` as [`parse_adapted_lines`], [`parse_remote_write`] or [`parse_otlp`] does.
    ///
    /// # Errors
    /// Returns the errors of these functions.
    ///
    /// # Panics
    /// Panics as these functions do.
    pub fn parse(
        self,
        body: &[u8],
        adapter: Adapter<'_>,
        context: ParseContext<'_>,
    ) -> ParseResult {
        match self {
            Self::Lines(precision, backslashes) => {
                parse_adapted_lines(body, (precision, backslashes), adapter, context)
            }
            Self::RemoteWrite => parse_remote_write(body, adapter, context),
            Self::Otlp => parse_otlp(body, adapter, context),
        }
    }
}
