//! One connection of HTTP/2, from its preface to its end.

use std::future::{pending, poll_fn};
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::server::Builder;
use h2::{Ping, PingPong, Reason};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::call::{AnswerStream, CallOrigin};
use crate::connections::ConnectionSeat;
use crate::dispatch::serve as serve_call;
use crate::flood::MeteredStream;

/// Bound on the concurrent streams of a connection.
const STREAMS_MAX: u32 = 256;
/// Bound on the bytes of a head's fields; each field counts 32 bytes more (RFC 9113, 6.5.2).
const HEAD_BYTES_MAX: u32 = 16 << 10;
/// Bound on the bytes of a frame. A frame is held whole before it is examined.
const FRAME_BYTES_MAX: u32 = 16 << 10;
/// Bytes that a client may send before a valid key. Larger windows follow a valid key.
const FIRST_WINDOW_BYTES: u32 = 65_535;
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const WINDOW_BYTES: u32 = 4 << 20;
/// Bound on the bytes of answers that a client has not taken.
const UNSENT_BYTES_MAX: usize = 256 << 10;
/// Count of reset streams that are remembered, because frames for them may still arrive.
const REMEMBERED_STREAMS: usize = 1_024;
/// Bound on the streams that a client resets before they are examined (CVE-2023-44487). More resets
/// end the connection.
const UNSEEN_RESETS_MAX: usize = 20;

pub(crate) const PREFACE_PATIENCE: Duration = Duration::from_secs(10);
const PING_PAUSE: Duration = Duration::from_mins(1);
const PING_PATIENCE: Duration = Duration::from_secs(20);
const AGE: Duration = Duration::from_hours(1);
/// Time for which calls may go on after their connection has become old, or the service stops.
const GRACE: Duration = Duration::from_secs(30);
/// The same time for a client whose calls were all refused: it gets its last answer.
const LAST_ANSWER_GRACE: Duration = Duration::from_secs(1);

/// Serves a connection until it ends.
pub async fn serve<S>(stream: S, of: CallOrigin, mut stopping: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let stream = MeteredStream::new(stream, &of.seat);
    let handshake = timeout(PREFACE_PATIENCE, builder().handshake::<_, Bytes>(stream));
    let Ok(Ok(mut connection)) = handshake.await else { return };
    let mut is_silent = pin!(keep_alive(connection.ping_pong()));
    let mut is_old = pin!(sleep(age()));
    let mut grace = pin!(sleep(Duration::MAX));
    let (mut is_leaving, mut is_narrow) = (false, false);
    loop {
        if is_narrow {
            // The call fails until the client has acknowledged the first settings.
            is_narrow = connection.set_initial_window_size(STREAM_WINDOW_BYTES).is_err();
        }
        let grace_of_end = tokio::select! {
            biased;
            () = of.seat.flooding() => return,
            () = &mut is_silent => return,
            () = &mut grace, if is_leaving => return,
            () = of.seat.ending(), if !is_leaving => LAST_ANSWER_GRACE,
            _ = stopping.wait_for(|stopping| *stopping), if !is_leaving => GRACE,
            () = &mut is_old, if !is_leaving => GRACE,
            () = of.seat.in_use() => {
                connection.set_target_window_size(WINDOW_BYTES);
                is_narrow = true;
                continue;
            }
            accepted = connection.accept() => {
                let (request, mut answer) = match accepted {
                    Some(Ok(call)) => call,
                    Some(Err(error)) if error.reason() == Some(Reason::ENHANCE_YOUR_CALM) => {
                        return of.seat.note_flood();
                    }
                    _ => return,
                };
                if is_reset(&mut answer) {
                    of.seat.note_reset();
                    continue;
                }
                tokio::spawn(serve_call(of.clone(), request, answer));
                continue;
            }
        };
        connection.graceful_shutdown();
        grace.set(sleep(grace_of_end));
        is_leaving = true;
    }
}

/// Serves a connection on the loop of the caller until a key was good, then on the loop `messages`.
/// Clients without a good key thus take no time from messages, whatever they send.
pub(crate) async fn admit(
    serving: impl Future<Output = ()> + Send + 'static,
    seat: &ConnectionSeat,
    messages: &Handle,
) {
    let mut serving = Box::pin(serving);
    let is_over = poll_fn(|context| match serving.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(true),
        Poll::Pending if seat.is_used() => Poll::Ready(false),
        Poll::Pending => Poll::Pending,
    });
    if !is_over.await {
        messages.spawn(serving);
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX)
        .max_frame_size(FRAME_BYTES_MAX)
        .initial_window_size(FIRST_WINDOW_BYTES)
        .initial_connection_window_size(FIRST_WINDOW_BYTES)
        .max_send_buffer_size(UNSENT_BYTES_MAX)
        .max_concurrent_reset_streams(REMEMBERED_STREAMS)
        .max_pending_accept_reset_streams(UNSEEN_RESETS_MAX);
    builder
}

/// Returns true if the client has reset the call already. Such a call costs no more work and is not
/// counted.
fn is_reset(answer: &mut AnswerStream) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    answer.poll_reset(&mut context).is_ready()
}

/// Ends when the client no longer answers a PING.
async fn keep_alive(ping_pong: Option<PingPong>) {
    let Some(mut ping_pong) = ping_pong else { return pending().await };
    loop {
        sleep(PING_PAUSE).await;
        let pong = timeout(PING_PATIENCE, ping_pong.ping(Ping::opaque())).await;
        if !matches!(pong, Ok(Ok(_))) {
            return;
        }
    }
}

/// Returns the age at which a connection ends. It varies by a tenth, so that connections do not all
/// end at once. Example: 54 to 66 minutes.
fn age() -> Duration {
    let chance = RandomState::new().hash_one(()) % 200;
    AGE * u32::try_from(900 + chance).unwrap_or(1_000) / 1_000
}
