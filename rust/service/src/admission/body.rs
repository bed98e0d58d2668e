//! Checks of the head of a write: length, coding and type of its body.

use super::request::{BodyState, ClientRequest};
use super::routes::Language;
use crate::refusal::{DetailFault, Refusal};

/// Checks the head of a write whose body may have `bytes_max`, and the length of a body that has
/// arrived. Returns false if the body has not arrived.
pub(super) fn check(
    request: &dyn ClientRequest,
    language: Language,
    bytes_max: u64,
) -> Result<bool, Refusal> {
    let length = length(request, language, bytes_max)?;
    match language {
        Language::Json => check_json(request)?,
        _ => check_adapted(request, language)?,
    }
    let BodyState::Come(bytes) = request.body() else { return Ok(false) };
    if length.is_some_and(|length| length != bytes as u64) {
        return Err(Refusal::new("invalid_content_length"));
    }
    if bytes == 0 && language == Language::Json {
        return Err(fault("missing", &["body"], "Field required"));
    }
    Ok(true)
}

/// Returns the length in the head, or `None` for a body in chunks.
fn length(
    request: &dyn ClientRequest,
    language: Language,
    bytes_max: u64,
) -> Result<Option<u64>, Refusal> {
    let is_oversized = request.body() == BodyState::Oversized;
    if language != Language::Json && request.is_chunked() {
        return if is_oversized { Err(Refusal::new("request_too_large")) } else { Ok(None) };
    }
    let text = request.field("CONTENT_LENGTH").ok_or_else(|| Refusal::new("length_required"))?;
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Refusal::new("invalid_content_length"));
    }
    // A number above 64 bits is too large in any case.
    let length = str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
    // The limit may have been raised since the head arrived, and the body was left unread.
    if is_oversized || length > bytes_max {
        return Err(Refusal::new("request_too_large"));
    }
    Ok(Some(length))
}

fn check_json(request: &dyn ClientRequest) -> Result<(), Refusal> {
    let is_identity = |coding: &[u8]| coding.trim_ascii().eq_ignore_ascii_case(b"identity");
    if !request.field("CONTENT_ENCODING").is_none_or(is_identity) {
        return Err(Refusal::new("unsupported_content_encoding"));
    }
    if !request.field("CONTENT_TYPE").is_none_or(is_json) {
        let message = "Content-Type should be application/json";
        return Err(fault("content_type", &["header", "content-type"], message));
    }
    Ok(())
}

fn is_json(content_type: &[u8]) -> bool {
    let media_type = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    let media_type = media_type.trim_ascii().to_ascii_lowercase();
    media_type == b"application/json"
        || media_type.starts_with(b"application/") && media_type.ends_with(b"+json")
}

fn check_adapted(request: &dyn ClientRequest, language: Language) -> Result<(), Refusal> {
    let coding = coding(request.field("CONTENT_ENCODING"));
    if !language.codings().iter().any(|each| coding.eq_ignore_ascii_case(each.as_bytes())) {
        return Err(Refusal::new("unsupported_content_encoding"));
    }
    let content_type = request.field("CONTENT_TYPE").unwrap_or_default();
    let (media_type, parameters) = parts(content_type);
    let is = |each: &str| media_type.eq_ignore_ascii_case(each.as_bytes());
    let named = parameters.iter().rfind(|(name, _)| name.eq_ignore_ascii_case(b"proto"));
    let is_message = match (language.message(), named) {
        (Some(message), Some((_, value))) => value == message.as_bytes(),
        _ => true,
    };
    let is_known = language.media_type().is_none_or(is) && is_message;
    if is_known { Ok(()) } else { Err(Refusal::new("unsupported_media_type")) }
}

/// Returns the coding of a body with this field, or `identity` if the field is missing.
pub(crate) fn coding(field: Option<&[u8]>) -> &[u8] {
    field.filter(|coding| !coding.is_empty()).map_or(b"identity", <[u8]>::trim_ascii)
}

/// Name and value.
type Parameter<'h> = (&'h [u8], Vec<u8>);

/// Splits a field into the media type and its parameters (RFC 9110, 5.6.6). Example: `text/plain;
/// charset="utf-8"` gives `text/plain` and `charset` with `utf-8`.
fn parts(field: &[u8]) -> (&[u8], Vec<Parameter<'_>>) {
    let mut parts = Vec::new();
    let (mut start, mut is_quoted, mut is_escaped) = (0, false, false);
    for (index, byte) in field.iter().enumerate() {
        match byte {
            b';' if !is_quoted => {
                parts.push(&field[start..index]);
                start = index + 1;
            }
            b'"' if !is_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        is_escaped = *byte == b'\\' && !is_escaped;
    }
    parts.push(&field[start..]);
    let (media_type, rest) = parts.split_first().map_or((&b""[..], &[][..]), |(a, b)| (*a, b));
    let named = rest.iter().filter_map(|part| {
        let equals = part.iter().position(|byte| *byte == b'=')?;
        Some((part[..equals].trim_ascii(), unquoted(part[equals + 1..].trim_ascii())))
    });
    (media_type.trim_ascii(), named.collect())
}

/// Returns a value without its quotation marks.
fn unquoted(value: &[u8]) -> Vec<u8> {
    let Some(inner) = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")) else {
        return value.to_vec();
    };
    let mut plain = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        plain.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
    }
    plain
}

fn fault(kind: &'static str, place: &[&str], message: &'static str) -> Refusal {
    Refusal::of_faults(vec![DetailFault::new(kind, place, message)])
}
