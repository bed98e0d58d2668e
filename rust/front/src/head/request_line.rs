//! Request lines: method, target and version.

use std::net::Ipv6Addr;
use std::ops::Range;

use super::refusal::HeadFault;
use super::span::ByteSpan;

/// A request line in its parts.
#[derive(Debug)]
pub(super) struct RequestLine {
    pub(super) method: ByteSpan,
    pub(super) path: ByteSpan,
    pub(super) query: ByteSpan,
    /// The `x` in HTTP/1.x.
    pub(super) minor_version: u8,
}

/// Returns true if a method or the name of a field may contain `byte` (RFC 9110, 5.6.2).
pub(super) fn is_token(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let tokens = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut index = 0;
    while index < tokens.len() {
        table[tokens[index] as usize] = true;
        index += 1;
    }
    table
};

/// Reads the line at `start..end` of `head`, without its line end.
pub(super) fn read(head: &[u8], start: usize, end: usize) -> Result<RequestLine, HeadFault> {
    let line = &head[start..end];
    let (method_bytes, target_end) = two_spaces(line).ok_or(HeadFault::BadRequest)?;
    let method = &line[..method_bytes];
    let target = &line[method_bytes + 1..target_end];
    let minor_version = match &line[target_end + 1..] {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', digit @ b'0'..=b'9'] => digit - b'0',
        _ => return Err(HeadFault::BadRequest),
    };
    if method.is_empty() || !method.iter().copied().all(is_token) {
        return Err(HeadFault::BadRequest);
    }
    let target_start = start + method_bytes + 1;
    let (path, query) = split_target(method, target).ok_or(HeadFault::BadRequest)?;
    let of_target =
        |range: Range<usize>| ByteSpan::of(target_start + range.start..target_start + range.end);
    Ok(RequestLine {
        method: ByteSpan::of(start..start + method_bytes),
        path: of_target(path),
        query: of_target(query),
        minor_version,
    })
}

fn two_spaces(line: &[u8]) -> Option<(usize, usize)> {
    let mut spaces = line.iter().enumerate().filter(|(_, byte)| **byte == b' ');
    Some((spaces.next()?.0, spaces.next()?.0))
}

type LineRanges = (Range<usize>, Range<usize>);

/// Returns the path and the query of a request target (RFC 9112, 3.2) as ranges in the target.
/// Returns `None` if the method cannot have this target.
fn split_target(method: &[u8], target: &[u8]) -> Option<LineRanges> {
    if target.is_empty() || !target.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    if target[0] == b'/' {
        return Some(path_and_query(target, 0));
    }
    if target == b"*" {
        return (method == b"OPTIONS").then(|| path_and_query(target, 0));
    }
    let is_absolute = target.windows(3).any(|three| three == b"://");
    if method != b"CONNECT" && !is_absolute {
        return None;
    }
    let mut start = scheme_bytes(target);
    if target[start..].starts_with(b"//") {
        let authority = &target[start + 2..];
        let bytes = authority.iter().take_while(|byte| !b"/?#".contains(byte)).count();
        if !is_authority(&authority[..bytes]) {
            return None;
        }
        start += 2 + bytes;
    }
    Some(path_and_query(target, start))
}

/// Splits a target whose path begins at `start`. A fragment belongs neither to the path nor to the
/// query.
fn path_and_query(target: &[u8], start: usize) -> LineRanges {
    let position = |from: usize, to: usize, wanted: u8| {
        target[from..to].iter().position(|byte| *byte == wanted).map(|index| from + index)
    };
    let end = position(start, target.len(), b'#').unwrap_or(target.len());
    match position(start, end, b'?') {
        Some(mark) => (start..mark, mark + 1..end),
        None => (start..end, end..end),
    }
}

/// Returns the length of the scheme and its colon, or 0 if the target has no scheme.
fn scheme_bytes(target: &[u8]) -> usize {
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    match target.iter().position(|byte| *byte == b':') {
        Some(colon) if target[0].is_ascii_alphabetic() && target[..colon].iter().all(is_scheme) => {
            colon + 1
        }
        _ => 0,
    }
}

/// Returns true if brackets in an authority hold an IPv6 address or a later version (RFC 3986).
fn is_authority(authority: &[u8]) -> bool {
    let position = |wanted: u8| authority.iter().position(|byte| *byte == wanted);
    match (position(b'['), position(b']')) {
        (None, None) => true,
        (Some(open), Some(_)) => {
            let rest = &authority[open + 1..];
            let end = rest.iter().position(|byte| *byte == b']').unwrap_or(rest.len());
            str::from_utf8(&rest[..end]).is_ok_and(is_bracketed_host)
        }
        _ => false,
    }
}

fn is_bracketed_host(host: &str) -> bool {
    if let Some(future) = host.strip_prefix('v') {
        return future.split_once('.').is_some_and(|(version, address)| {
            !version.is_empty()
                && version.bytes().all(|byte| byte.is_ascii_hexdigit())
                && !address.is_empty()
        });
    }
    let (address, is_zone) = match host.split_once('%') {
        Some((address, zone)) => (address, !zone.is_empty() && !zone.contains('%')),
        None => (host, true),
    };
    is_zone && address.parse::<Ipv6Addr>().is_ok()
}
