//! L5, L7, L25: the form of messages.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use super::*;

type Pieces = Vec<Bytes>;

/// Returns the answer to a call whose body comes in these pieces.
async fn told(client: &Client, fields: &[(&'static str, &str)], pieces: Pieces) -> Answer {
    let (response, mut body) = client.begin(&key('a'), fields).await;
    for piece in pieces {
        // A call that is refused early accepts no more data.
        drop(body.send_data(piece, false));
        tokio::task::yield_now().await;
    }
    drop(body.send_data(Bytes::new(), true));
    answer(response).await
}

#[test]
fn a_message_is_the_same_however_it_is_cut() {
    let house = House::new();
    house.runtime.block_on(async {
        let client = house.client().await;
        let whole = framed(0, &batch(1.0));
        for size in 1..=whole.len() {
            let pieces = whole.chunks(size).map(Bytes::copy_from_slice).collect();
            let (status, details, _) = told(&client, &[], pieces).await;
            assert_eq!((status, &*details), (GrpcStatus::OK, ""), "in pieces of {size}");
        }
    });
}

#[test]
fn a_body_that_is_not_one_message_is_refused_and_nothing_of_it_stored() {
    let house = House::new();
    let one = framed(0, &batch(1.0));
    let two = [&one[..], &one].concat();
    let (half, long) = (one.slice(..one.len() - 1), [&one[..], &[0]].concat());
    let odd = framed(2, &batch(1.0));
    let bodies: [(&str, Pieces); 6] = [
        ("none", vec![]),
        ("half a head", vec![one.slice(..3)]),
        ("half", vec![half]),
        ("one and a byte", vec![long.into()]),
        ("two", vec![two.into()]),
        ("an odd flag", vec![odd]),
    ];
    house.runtime.block_on(async {
        let client = house.client().await;
        for (name, pieces) in bodies {
            let (status, details, _) = told(&client, &[], pieces).await;
            let told = (status.name(), &*details);
            assert_eq!(told, ("INVALID_ARGUMENT", "invalid_input:payload"), "{name}");
        }
        let unpacked = vec![framed(1, &batch(1.0))];
        let (status, details, _) = told(&client, &[], unpacked).await;
        assert_eq!((status.name(), &*details), ("INVALID_ARGUMENT", "invalid_input:payload"));
    });
    let open = house.server.parts.planes.open("a1", "a").unwrap();
    assert_eq!(open.for_a_call().unwrap().stats().unwrap().counts.rows, 0);
    assert_eq!(house.server.held_bytes.total(), 0);
}

#[test]
fn l25_packed_messages_are_unpacked_within_the_bound() {
    let house = House::new();
    let gzip = |bytes: &[u8]| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    };
    let deflate = |bytes: &[u8]| {
        let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    };
    let cases = [
        ("gzip", framed(1, &gzip(&batch(1.0))), "OK", ""),
        ("deflate", framed(1, &deflate(&batch(1.0))), "OK", ""),
        ("gzip", framed(0, &batch(1.0)), "OK", ""),
        ("identity", framed(0, &batch(1.0)), "OK", ""),
        (
            "gzip",
            framed(1, &gzip(&vec![0; MESSAGE_BYTES_MAX + 1])),
            "RESOURCE_EXHAUSTED",
            "batch_too_large",
        ),
        ("gzip", framed(1, b"no gzip"), "INVALID_ARGUMENT", "invalid_input:payload"),
        ("snappy", framed(1, b""), "UNIMPLEMENTED", "unsupported_encoding"),
    ];
    house.runtime.block_on(async {
        let client = house.client().await;
        for (name, body, status, details) in cases {
            let told = told(&client, &[("grpc-encoding", name)], vec![body]).await;
            assert_eq!((told.0.name(), &*told.1), (status, details), "{name}");
            assert_eq!(house.server.held_bytes.total(), 0, "the next call has the whole share");
        }
    });
}

#[test]
fn l5_a_message_beyond_the_bound_is_refused_by_its_head() {
    let house = House::new();
    house.runtime.block_on(async {
        let client = house.client().await;
        let head = framed(0, &vec![0; MESSAGE_BYTES_MAX + 1]).slice(..5);
        let (response, mut body) = client.begin(&key('a'), &[]).await;
        body.send_data(head, false).unwrap();
        let (status, details, _) = answer(response).await;
        assert_eq!((status.name(), &*details), ("RESOURCE_EXHAUSTED", "batch_too_large"));
    });
}
