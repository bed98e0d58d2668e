//! Calls that need no key, handed on to the server behind a Unix socket: health and reflection.

use std::future::{pending, poll_fn};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderName, Request, Response, Version, header};

use crate::call::{AnswerStream, Call, send_trailers_only};
use crate::server::KEYLESS_CALLS_MAX;
use crate::shares::SharePart;
use crate::status::{CallRefusal, GrpcStatus, trailers};

/// Fields of a head that the server behind receives.
const FIELDS: [HeaderName; 5] = [
    header::CONTENT_TYPE,
    header::TE,
    HeaderName::from_static("grpc-timeout"),
    HeaderName::from_static("grpc-encoding"),
    HeaderName::from_static("grpc-accept-encoding"),
];

/// The end of a call that was handed on.
enum CallEnd {
    /// The trailers, which the client has not received yet, and the stream to send them.
    Trailers(HeaderMap, Option<SendStream<Bytes>>),
    Cancelled,
}

/// Serves a call by handing it on.
pub(crate) async fn serve(mut call: Call, request: Request<RecvStream>, mut answer: AnswerStream) {
    let server = call.of.server.clone();
    let Some(_part) = SharePart::take(&server.keyless, &call.of.address, 1, KEYLESS_CALLS_MAX)
    else {
        return call.refuse(&mut answer, CallRefusal::new("too_many_calls")).await;
    };
    let (head, body) = request.into_parts();
    let begun = match onward(head.uri.path(), &head.headers) {
        Ok(head) => server.backend.begin(head).await,
        Err(error) => Err(io::Error::other(error)),
    };
    let (response, upload) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let fault = format!("calls cannot be handed on: {error}");
            let refusal = CallRefusal::fault("telemetry_unavailable", fault);
            return call.refuse(&mut answer, refusal).await;
        }
    };
    let (bytes_in, bytes_out) = (AtomicU64::new(0), AtomicU64::new(0));
    let end = tokio::select! {
        end = download(response, &mut answer, &bytes_out) => end,
        // The end of the client's input is not the end of the call.
        () = async { send(body, upload, &bytes_in).await; pending().await } => CallEnd::Cancelled,
    };
    call.bytes_in = bytes_in.into_inner();
    match end {
        CallEnd::Cancelled => call.end_cancelled().await,
        CallEnd::Trailers(mut trailers, stream) => {
            server.parts.statuses.complete(&mut trailers);
            call.end_handed_on(&trailers, bytes_out.into_inner()).await;
            match stream {
                Some(mut stream) => drop(stream.send_trailers(trailers)),
                None => send_trailers_only(&mut answer, trailers),
            }
        }
    }
}

/// Returns the head of a call for the server behind.
fn onward(path: &str, fields: &HeaderMap) -> http::Result<Request<()>> {
    let mut head = Request::post(format!("http://localhost{path}")).version(Version::HTTP_2);
    for name in FIELDS {
        if let Some(value) = fields.get(&name) {
            head = head.header(name, value);
        }
    }
    head.body(())
}

/// Forwards the client's input.
async fn send(mut body: RecvStream, mut upload: SendStream<Bytes>, bytes: &AtomicU64) {
    while let Some(Ok(data)) = body.data().await {
        let length = data.len();
        bytes.fetch_add(length as u64, Ordering::Relaxed);
        if send_data(&mut upload, data).await.is_none() {
            return;
        }
        drop(body.flow_control().release_capacity(length));
    }
    drop(upload.send_data(Bytes::new(), true));
}

/// Forwards the answer of the server behind, up to its trailers.
async fn download(
    response: ResponseFuture,
    answer: &mut AnswerStream,
    bytes: &AtomicU64,
) -> CallEnd {
    let gone = poll_fn(|context| answer.poll_reset(context));
    let response = tokio::select! {
        response = response => response,
        _ = gone => return CallEnd::Cancelled,
    };
    let unavailable = || trailers(GrpcStatus::UNAVAILABLE, "telemetry_unavailable", None);
    let Ok(response) = response else { return CallEnd::Trailers(unavailable(), None) };
    let (head, mut body) = response.into_parts();
    if body.is_end_stream() {
        return CallEnd::Trailers(status_of(&head.headers), None);
    }
    let mut response = Response::new(());
    *response.headers_mut() = head.headers;
    let Ok(mut stream) = answer.send_response(response, false) else { return CallEnd::Cancelled };
    loop {
        let data = tokio::select! {
            data = body.data() => data,
            _ = poll_fn(|context| stream.poll_reset(context)) => return CallEnd::Cancelled,
        };
        match data {
            None => break,
            Some(Err(_)) => return CallEnd::Trailers(unavailable(), Some(stream)),
            Some(Ok(data)) => {
                let length = data.len();
                bytes.fetch_add(length as u64, Ordering::Relaxed);
                if send_data(&mut stream, data).await.is_none() {
                    return CallEnd::Cancelled;
                }
                drop(body.flow_control().release_capacity(length));
            }
        }
    }
    let trailers = body.trailers().await.ok().flatten().unwrap_or_else(unavailable);
    CallEnd::Trailers(trailers, Some(stream))
}

/// Returns the fields of a status among the fields of a head.
fn status_of(head: &HeaderMap) -> HeaderMap {
    let is_status = |name: &HeaderName| name.as_str().starts_with("grpc-");
    let found = head.iter().filter(|(name, _)| is_status(name));
    found.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Sends data as fast as the other side takes it. Returns `None` if the other side is gone.
async fn send_data(stream: &mut SendStream<Bytes>, mut data: Bytes) -> Option<()> {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let room = poll_fn(|context| stream.poll_capacity(context)).await?.ok()?;
        stream.send_data(data.split_to(room.min(data.len())), false).ok()?;
    }
    Some(())
}
