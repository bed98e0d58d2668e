//! Metrics of Prometheus and OpenTelemetry, read in one pass over the protobuf wire format.
//!
//! Both send values by name, tags and time. A metric is a field of that name, and all values of one
//! set of tags and one time are a row. As for the service's own messages, nothing is allocated for a
//! length that is claimed, only for bytes that came. A fault rejects its value alone.

mod series_by_name;

mod points;

mod remote_write;

mod attributes;

mod otlp;

#[cfg(test)]
mod tests;

pub use otlp::parse_otlp;
pub use remote_write::parse_remote_write;
