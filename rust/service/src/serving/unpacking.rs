//! Compressed bodies. No more bytes are unpacked than a body may have.

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::GzDecoder;

use crate::refusal::{ContextValue, Refusal};

/// Bound on the members of a gzip body. Each member costs some microseconds, even if it is empty.
const MEMBERS_MAX: usize = 1024;

/// Returns the content of a body in this coding, at most `bytes_max`.
///
/// # Errors
/// Returns `request_too_large` for more bytes, or for more than 1,024 members of gzip. Returns
/// `invalid_input` if the body is malformed in its coding or ends early.
pub(super) fn unpacked<'b>(
    coding: &[u8],
    body: &'b [u8],
    bytes_max: usize,
) -> Result<Cow<'b, [u8]>, Refusal> {
    match &*coding.to_ascii_lowercase() {
        b"gzip" => gunzip(body, bytes_max).map(Cow::Owned),
        b"snappy" => unsnap(body, bytes_max).map(Cow::Owned),
        _ => Ok(Cow::Borrowed(body)),
    }
}

/// Returns the content of all members, one after the other.
fn gunzip(packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, Refusal> {
    let mut content = Vec::with_capacity(packed.len());
    let mut member = GzDecoder::new(packed);
    for _ in 0..MEMBERS_MAX {
        // One more byte shows that a body is too long, and lets the end of the member be checked.
        let bytes_left = (bytes_max - content.len()).saturating_add(1);
        let read = member.by_ref().take(bytes_left as u64).read_to_end(&mut content);
        if content.len() > bytes_max {
            return Err(too_large());
        }
        read.map_err(|_| malformed())?;
        let rest = *member.get_ref();
        if rest.is_empty() {
            return Ok(content);
        }
        member.reset(rest);
    }
    Err(too_large())
}

/// Returns the content of a block of snappy, whose length is at its start.
fn unsnap(packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, Refusal> {
    if snap::raw::decompress_len(packed).map_err(|_| malformed())? > bytes_max {
        return Err(too_large());
    }
    snap::raw::Decoder::new().decompress_vec(packed).map_err(|_| malformed())
}

fn too_large() -> Refusal {
    Refusal::new("request_too_large")
}

fn malformed() -> Refusal {
    Refusal::new("invalid_input").with("field", ContextValue::Text("payload".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const ANY: usize = 10_000_000;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    /// Returns bytes that do not compress.
    fn noise(count: usize) -> Vec<u8> {
        let next =
            |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        let states = std::iter::successors(Some(1_u64), next);
        states.map(|state| (state >> 56) as u8).take(count).collect()
    }

    fn code(coding: &str, body: &[u8], bytes_max: usize) -> &'static str {
        unpacked(coding.as_bytes(), body, bytes_max).map_or_else(|found| found.code, |_| "")
    }

    #[test]
    fn a_body_is_unpacked_byte_for_byte_and_no_part_of_it_alone() {
        let content = noise(300_000);
        let packed = content.chunks(70_000).flat_map(gzip).collect::<Vec<_>>();
        assert_eq!(unpacked(b"GZip", &packed, ANY).unwrap(), content);
        for end in [0, 1, 9, 65_535, 65_536, packed.len() - 8, packed.len() - 1] {
            assert_eq!(code("gzip", &packed[..end], ANY), "invalid_input", "{end}");
        }
        assert_eq!(code("gzip", &[&packed[..], b"x"].concat(), ANY), "invalid_input");
        let packed = snap::raw::Encoder::new().compress_vec(&content).unwrap();
        assert_eq!(unpacked(b"snappy", &packed, ANY).unwrap(), content);
        assert_eq!(code("snappy", &packed[..packed.len() - 1], ANY), "invalid_input");
        assert_eq!(code("snappy", b"", ANY), "invalid_input");
        assert!(matches!(unpacked(b"identity", &packed, 0), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn no_more_is_unpacked_than_a_body_may_have() {
        let (first, second) = (vec![0; 600_000], vec![0; 400_000]);
        let packed = [gzip(&first), gzip(&second)].concat();
        assert_eq!(code("gzip", &packed, 1_000_000), "");
        assert_eq!(code("gzip", &packed, 999_999), "request_too_large");
        let packed = snap::raw::Encoder::new().compress_vec(&[0; 1_000]).unwrap();
        assert_eq!(code("snappy", &packed, 1_000), "");
        assert_eq!(code("snappy", &packed, 999), "request_too_large");
        let claim = [0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0];
        assert_eq!(code("snappy", &claim, ANY), "request_too_large");
    }

    #[test]
    fn a_body_has_so_many_members_and_no_more() {
        let members = |count| gzip(b"").repeat(count);
        assert_eq!(code("gzip", &members(MEMBERS_MAX), ANY), "");
        assert_eq!(code("gzip", &members(MEMBERS_MAX + 1), ANY), "request_too_large");
    }
}
