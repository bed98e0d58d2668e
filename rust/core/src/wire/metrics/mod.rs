//! Metrics of Prometheus and OpenTelemetry, read in one pass over the protobuf wire format.
//!
//! Both send values by name, tags and time. A metric is a field with its name. All values with the
//! same tags and time are one row. Memory is allocated only for bytes that arrived, never for a
//! claimed length. A fault rejects only its value.

mod series_by_name;

mod points;

mod remote_write;

mod attributes;

mod otlp;

#[cfg(test)]
mod tests;

pub use otlp::parse_otlp;
pub use remote_write::parse_remote_write;
