//! Calls by their paths.

use std::sync::Arc;

use h2::RecvStream;
use http::{Method, Request, Response, StatusCode, header};

use crate::call::{AnswerStream, Call, CallOrigin, MEDIA_TYPE, WRITE_ROUTE, send_trailers_only};
use crate::handed_on;
use crate::status::{GrpcStatus, trailers};
use crate::write::{self, WRITE_PATHS};

/// Serves one call to its end.
pub(crate) async fn serve(of: CallOrigin, request: Request<RecvStream>, mut answer: AnswerStream) {
    let path = request.uri().path();
    let server = Arc::clone(&of.server);
    let handed_on = server.parts.handed_on.get(path);
    if !is_call(&request) {
        let response = Response::builder().status(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        if let Ok(response) = response.body(()) {
            drop(answer.send_response(response, true));
        }
    } else if WRITE_PATHS.contains(&path) {
        let mut call = Call::begin(of, WRITE_ROUTE.into());
        let (head, body) = request.into_parts();
        match write::write(&mut call, &head.headers, body).await {
            Ok(response) => call.end_stored(&mut answer, response),
            Err(refusal) => call.refuse(&mut answer, refusal.of_write()).await,
        }
    } else if let Some(route) = handed_on {
        let call = Call::begin(of, Arc::clone(route));
        handed_on::serve(call, request, answer).await;
    } else {
        let trailers = trailers(GrpcStatus::UNIMPLEMENTED, "Method not found!", None);
        send_trailers_only(&mut answer, trailers);
    }
}

fn is_call(request: &Request<RecvStream>) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let rest = kind.and_then(|kind| kind.as_bytes().strip_prefix(MEDIA_TYPE.as_bytes()));
    request.method() == Method::POST
        && rest.is_some_and(|rest| matches!(rest, [] | [b'+' | b';', ..]))
}
