//! The body of an answer with forecasts.

use std::sync::Arc;

use fleetcast_core::model::json::{write_i64, write_string};
use fleetcast_core::model::time::{MINUTE_NS, write_rfc3339};

use super::question::{ForecastFamily, ForecastQuestion};
use super::value::ForecastValue;

/// Usual bytes of an item.
const ITEM_BYTES: usize = 512;

/// The reason that an entity has no new forecast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityError {
    /// Place of the entity in the question.
    pub place: usize,
    /// The code.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

/// Writes the answer to a question. `values` are by place of the entity in the question, and
/// `errors` ascend by place.
#[must_use]
pub fn forecasts_answer(
    asked: &ForecastQuestion,
    captured_at_ns: i64,
    values: &[Option<Arc<ForecastValue>>],
    errors: &[EntityError],
) -> Vec<u8> {
    let horizons = asked.horizons_minutes();
    let mut out = Vec::with_capacity((values.len() * horizons.len() + 1) * ITEM_BYTES);
    let shown = || values.iter().flatten();
    member(&mut out, b'{', "model_family", |out| write_string(out, &asked.family.name));
    member(&mut out, b',', "captured_at", |out| time(out, captured_at_ns));
    let release = shared(shown().map(|value| &*value.release_id));
    member(&mut out, b',', "model_release_id", |out| optional(out, release));
    let role = shared(shown().map(|value| &*value.role));
    member(&mut out, b',', "traffic_role", |out| optional(out, role));
    out.extend_from_slice(br#","items":["#);
    let items = asked.entity_ids.iter().zip(values);
    let items = items.filter_map(|(id, value)| Some((id, value.as_deref()?)));
    for (number, (id, value, horizon)) in items
        .flat_map(|(id, value)| horizons.iter().map(move |each| (id, value, *each)))
        .enumerate()
    {
        comma(&mut out, number);
        item(&mut out, &asked.family, id, value, horizon);
    }
    out.extend_from_slice(br#"],"entity_errors":["#);
    for (number, error) in errors.iter().enumerate() {
        comma(&mut out, number);
        member(&mut out, b'{', "entity_id", |out| {
            write_string(out, &asked.entity_ids[error.place]);
        });
        member(&mut out, b',', "code", |out| write_string(out, &error.code));
        member(&mut out, b',', "message", |out| write_string(out, &error.message));
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
    out
}

fn item(
    out: &mut Vec<u8>,
    family: &ForecastFamily,
    entity_id: &str,
    value: &ForecastValue,
    horizon_minutes: u32,
) {
    member(out, b'{', "link_id", |out| write_string(out, entity_id));
    member(out, b',', "horizon_minutes", |out| write_i64(out, horizon_minutes.into()));
    member(out, b',', "predicted_at", |out| time(out, value.predicted_at_ns));
    for (name, text) in [
        ("assignment_id", &value.assignment_id),
        ("lease_id", &value.lease_id),
        ("model_version", &value.model_version),
        ("feature_view_id", &value.feature_view_id),
        ("model_release_id", &value.release_id),
        ("traffic_role", &value.role),
    ] {
        member(out, b',', name, |out| write_string(out, text));
    }
    out.extend_from_slice(br#","value":"#);
    let quantiles = value.quantiles.get(&horizon_minutes);
    for (number, (name, quantile)) in
        family.value_names.iter().zip(quantiles.into_iter().flatten()).enumerate()
    {
        let text = |out: &mut Vec<u8>| out.extend_from_slice(quantile.as_str().as_bytes());
        member(out, if number == 0 { b'{' } else { b',' }, name, text);
    }
    out.push(b'}');
    if let Some(window_ns) = family.window_ns {
        let end_ns = value.issued_at_ns + i64::from(horizon_minutes) * MINUTE_NS;
        out.extend_from_slice(br#","demand":"#);
        member(out, b'{', "pool_id", |out| write_string(out, entity_id));
        out.extend_from_slice(br#","pool_tags":{"#);
        for (number, (name, text)) in value.tags.iter().enumerate() {
            comma(out, number);
            write_string(out, name);
            out.push(b':');
            write_string(out, text);
        }
        out.push(b'}');
        member(out, b',', "issued_at", |out| time(out, value.issued_at_ns));
        member(out, b',', "window_start", |out| time(out, end_ns - window_ns));
        member(out, b',', "window_end", |out| time(out, end_ns));
        out.push(b'}');
    }
    out.push(b'}');
}

/// Returns the text that all items have. Returns `None` if texts differ, or there are none.
fn shared<'v>(mut texts: impl Iterator<Item = &'v str>) -> Option<&'v str> {
    let first = texts.next()?;
    texts.all(|text| text == first).then_some(first)
}

/// Writes a member of an object after `before`, `{` or `,`.
fn member(out: &mut Vec<u8>, before: u8, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[before, b'"']);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    value(out);
}

fn comma(out: &mut Vec<u8>, number: usize) {
    if number > 0 {
        out.push(b',');
    }
}

fn optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => write_string(out, text),
        None => out.extend_from_slice(b"null"),
    }
}

fn time(out: &mut Vec<u8>, time_ns: i64) {
    out.push(b'"');
    write_rfc3339(out, time_ns);
    out.push(b'"');
}
