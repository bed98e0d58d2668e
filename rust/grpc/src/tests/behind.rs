//! Calls that are handed on to a server behind the front, which shares one connection among all
//! clients.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::hostile::{END_HEADERS, HEADERS, PREFACE, RST_STREAM, SETTINGS, frame};
use super::*;

const DATA: u8 = 0;
const END_STREAM_AND_HEADERS: u8 = 5;
const CANCEL: [u8; 4] = [0, 0, 0, 8];
/// `:status: 200`.
const HEAD: &[u8] = &[0x88];
const TRAILERS: &[u8] = b"\x00\x0bgrpc-status\x010";
/// More small unread frames, and frames for forgotten streams, than `h2` allows by default.
const RESETS: usize = 1_200;
/// Fewer than the resets that end the connection of a client.
const OF_A_CLIENT: usize = 150;

/// Answers the calls that their clients reset, as late as it can, and then the first call. Reports
/// each head and reset.
async fn behind(mut connection: UnixStream, events: UnboundedSender<()>) {
    let mut preface = [0; PREFACE.len()];
    connection.read_exact(&mut preface).await.unwrap();
    connection.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    let mut resets = 0;
    while resets < RESETS {
        let mut head = [0; 9];
        connection.read_exact(&mut head).await.unwrap();
        let [high, middle, low, kind, _, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
        connection.read_exact(&mut payload).await.unwrap();
        // For a stream that the front no longer knows, it sends other codes.
        let is_reset = kind == RST_STREAM && payload == CANCEL;
        if kind == HEADERS || is_reset {
            events.send(()).unwrap();
        }
        if is_reset {
            resets += 1;
            let stream = u32::from_be_bytes(stream);
            connection.write_all(&frame(HEADERS, END_HEADERS, stream, HEAD)).await.unwrap();
            connection.write_all(&frame(DATA, 0, stream, b"x")).await.unwrap();
        }
    }
    for bytes in [
        frame(HEADERS, END_HEADERS, 1, HEAD),
        frame(DATA, 0, 1, b"late"),
        frame(HEADERS, END_STREAM_AND_HEADERS, 1, TRAILERS),
    ] {
        connection.write_all(&bytes).await.unwrap();
    }
    drop(tokio::io::copy(&mut connection, &mut tokio::io::sink()).await);
}

/// Begins a call that is handed on.
async fn begin(client: &Client) -> (h2::client::ResponseFuture, h2::SendStream<Bytes>) {
    let call = Request::post("https://x/behind").header("content-type", "application/grpc");
    let mut ready = client.0.clone().ready().await.unwrap();
    ready.send_request(call.body(()).unwrap(), false).unwrap()
}

#[test]
fn calls_that_one_client_resets_end_no_call_of_another() {
    let house = House::new();
    house.runtime.block_on(async {
        let listener = UnixListener::bind(house.folder.path().join("behind")).unwrap();
        let (sender, mut events) = unbounded_channel();
        tokio::spawn(async move { behind(listener.accept().await.unwrap().0, sender).await });
        let waiting = house.client().await;
        let (response, _body) = begin(&waiting).await;
        events.recv().await.unwrap();
        for _ in 0..RESETS / OF_A_CLIENT {
            let hostile = house.client().await;
            let mut calls = Vec::new();
            for _ in 0..OF_A_CLIENT {
                calls.push(begin(&hostile).await);
                events.recv().await.unwrap();
            }
            for (_, body) in &mut calls {
                body.send_reset(h2::Reason::CANCEL);
                events.recv().await.unwrap();
            }
        }
        assert_eq!(answer(response).await, (GrpcStatus::OK, String::new(), b"late".to_vec()));
    });
}
