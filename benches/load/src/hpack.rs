//! As much of HPACK (RFC 7541) as one kind of request needs.

use std::io;

use fluke_hpack::Decoder;

/// Static fields `:method: POST` and `:scheme: https`.
const POST_HTTPS: [u8; 2] = [0x83, 0x87];
const AUTHORITY: u8 = 1;
const PATH: u8 = 4;
const CONTENT_TYPE: u8 = 31;
const FIRST_DYNAMIC: u8 = 62;
const INCREMENTAL: u8 = 0x40;
const INDEXED: u8 = 0x80;

/// Header blocks of a channel's requests.
pub(crate) struct Blocks {
    /// That of the first request, which has all fields in full.
    pub(crate) first: Vec<u8>,
    /// That of each later one: the peer has the fields in its table.
    pub(crate) later: Vec<u8>,
}

impl Blocks {
    /// Fields of a call of a method with a key.
    pub(crate) fn of_call(path: &str, authority: &str, key: &str) -> Self {
        let mut first = POST_HTTPS.to_vec();
        for (index, value) in
            [(PATH, path), (AUTHORITY, authority), (CONTENT_TYPE, "application/grpc")]
        {
            integer(&mut first, index.into(), INCREMENTAL, 6);
            text(&mut first, value);
        }
        let named = [("te", "trailers"), ("user-agent", "fleetcast-load"), ("x-api-key", key)];
        for (name, value) in named {
            first.push(INCREMENTAL);
            text(&mut first, name);
            text(&mut first, value);
        }
        let mut later = POST_HTTPS.to_vec();
        // The newest has the lowest index.
        later.extend((FIRST_DYNAMIC..FIRST_DYNAMIC + 6).rev().map(|index| INDEXED | index));
        Self { first, later }
    }
}

/// The status of gRPC in the fields of a block.
///
/// # Errors
///
/// A block that is none.
pub(crate) fn grpc_status(decoder: &mut Decoder<'_>, block: &[u8]) -> io::Result<Option<u16>> {
    let fields = decoder.decode(block).map_err(|_| io::ErrorKind::InvalidData)?;
    let status = fields.iter().find(|(name, _)| name == b"grpc-status");
    Ok(status.and_then(|(_, value)| str::from_utf8(value).ok()?.parse().ok()))
}

fn integer(to: &mut Vec<u8>, value: usize, flags: u8, bits: u32) {
    let limit = (1 << bits) - 1;
    if value < limit {
        to.push(flags | u8::try_from(value).expect("below the limit"));
        return;
    }
    to.push(flags | u8::try_from(limit).expect("of so many bits"));
    let mut rest = value - limit;
    while rest >= 0x80 {
        to.push(u8::try_from(rest & 0x7F).expect("seven bits") | 0x80);
        rest >>= 7;
    }
    to.push(u8::try_from(rest).expect("seven bits"));
}

fn text(to: &mut Vec<u8>, value: &str) {
    integer(to, value.len(), 0, 7);
    to.extend_from_slice(value.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{Blocks, Decoder, grpc_status, integer};

    /// RFC 7541, C.1.
    #[test]
    fn integers_are_those_of_the_standard() {
        for (value, bits, expected) in
            [(10, 5, &[0b01010][..]), (1_337, 5, &[0b11111, 0b1001_1010, 0b1010]), (42, 8, &[42])]
        {
            let mut written = Vec::new();
            integer(&mut written, value, 0, bits);
            assert_eq!(written, expected);
        }
    }

    #[test]
    fn a_status_is_found_among_other_fields() {
        let mut block = vec![0x20]; // no table
        for (name, value) in [("grpc-message", "no"), ("grpc-status", "8")] {
            block.push(0);
            super::text(&mut block, name);
            super::text(&mut block, value);
        }
        let status = |block: &[u8]| grpc_status(&mut Decoder::new(), block);
        assert_eq!(status(&block).unwrap(), Some(8));
        assert_eq!(status(&[0x88]).unwrap(), None);
        status(&block[..block.len() - 1]).unwrap_err();
    }

    #[test]
    fn later_calls_name_each_field_by_its_index() {
        let blocks = Blocks::of_call("/a", "b", "c");
        assert_eq!(blocks.later, [0x83, 0x87, 0xC3, 0xC2, 0xC1, 0xC0, 0xBF, 0xBE]);
    }
}
