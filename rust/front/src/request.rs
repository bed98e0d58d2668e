//! A request that a thread serves.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::answer_head::{BodyLength, LineBreak, answer_head};
use crate::connection::{
    Answer, AnswerRest, Connection, LongBody, LongRequest, Need, OutgoingBody,
};
use crate::fair::{Owner, thread_time};
use crate::head::RequestHead;
use crate::message::{AnyDecision, BoxError, IncomingRequest, ParsedRequest};
use crate::requests::{RequestLane, RequestQueue, WaitingRequest};
use crate::shared::ConnectionWish;
use crate::socket::Peer;

/// One request. Its owner does the next step of serving it. A request that is dropped without an
/// answer closes its connection.
pub struct Request {
    queue: Arc<RequestQueue>,
    /// `None` once the request is answered.
    waiting: Option<WaitingRequest>,
    turn: ServeTurn,
    keep: Option<bool>,
}

/// A thread's share in serving one request. When it is dropped, another request may start.
pub struct ServeTurn {
    queue: Arc<RequestQueue>,
    lane: Option<RequestLane>,
}

impl ServeTurn {
    /// Waits for the next request, which takes over this turn. Returns `None` if the thread must
    /// end. `used` learns the CPU time that the last turn took, for its owner.
    pub(crate) fn next(
        queue: &Arc<RequestQueue>,
        last: Option<Self>,
        used: impl FnOnce(&Owner, Duration),
    ) -> Option<Request> {
        let last = last.and_then(|mut turn| turn.lane.take());
        let last = last.as_ref().map(|lane| (lane, thread_time::used()));
        if let Some((lane, time)) = last {
            used(&lane.owner, time);
        }
        let (lane, waiting) = queue.next(last)?;
        let turn = Self { queue: Arc::clone(queue), lane: Some(lane) };
        let queue = Arc::clone(queue);
        let waiting = Some(waiting);
        let mut request = Request { queue, waiting, turn, keep: None };
        request.receive_if_come();
        Some(request)
    }

    fn take(&mut self) -> Self {
        Self { queue: Arc::clone(&self.queue), lane: self.lane.take() }
    }
}

impl Drop for ServeTurn {
    fn drop(&mut self) {
        if let Some(lane) = self.lane.take() {
            self.queue.done(&lane);
        }
    }
}

impl Request {
    /// The client's request, as the parser read it.
    #[must_use]
    pub fn asked(&self) -> &ParsedRequest {
        &self.message().asked
    }

    /// The head; `None` if it is malformed.
    #[must_use]
    pub fn head(&self) -> Option<&RequestHead> {
        self.message().head()
    }

    /// The client's end of the connection.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.waiting().connection.peer
    }

    /// The part of the body that has arrived. Empty if the request does not need the body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.message().body
    }

    /// Takes the body out, without a copy.
    #[must_use]
    pub fn take_body(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.message_mut().body)
    }

    /// Returns true while the body has not arrived and has not been asked for.
    #[must_use]
    pub fn is_body_due(&self) -> bool {
        self.message().body_due
    }

    /// Returns true if the body has been asked for: this is the rest of a request that was counted
    /// already.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.message().admitted
    }

    /// Marks the request as counted already.
    pub fn set_admitted(&mut self) {
        self.message_mut().admitted = true;
    }

    /// Stores the decision about the request, for the code that serves it.
    pub fn decide(&mut self, decision: AnyDecision) {
        self.message_mut().decision = Some(decision);
    }

    /// Takes the decision about the request out.
    #[must_use]
    pub fn take_decision(&mut self) -> Option<AnyDecision> {
        self.message_mut().decision.take()
    }

    /// Stores the error of an attempt to serve the request. The attempt may have had effects all
    /// the same.
    pub fn fail(&mut self, failure: BoxError) {
        self.message_mut().failure = Some(failure);
    }

    /// Returns true if an attempt to serve the request failed; the application must answer it.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.message().failure.is_some()
    }

    /// Puts the request back, so that another thread hands it to the application.
    pub fn put_back(mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.queue.put_back(waiting);
        }
    }

    /// Takes the error of the attempt out.
    #[must_use]
    pub fn take_failure(&mut self) -> Option<BoxError> {
        self.message_mut().failure.take()
    }

    /// Version of the settings in force; 0 if no settings are shared.
    #[must_use]
    pub fn settings_version(&self) -> u64 {
        self.queue.shared().settings_version()
    }

    /// Returns true if the request exceeds its owner's share.
    #[must_use]
    pub fn is_over_share(&self) -> bool {
        self.message().over_share
    }

    /// Returns true if the owner has used much CPU time and others are active, so that the request
    /// must be served on one core.
    #[must_use]
    pub fn is_heavy(&self) -> bool {
        self.waiting().is_heavy
    }

    /// Returns true if the body is longer than was allowed when the head arrived; it is not read.
    #[must_use]
    pub fn is_oversized(&self) -> bool {
        matches!(self.asked(), ParsedRequest::Whole { framing, .. } if framing.is_oversized)
    }

    /// Returns true if the connection goes on after the answer, which must say the same. A second
    /// call returns the same.
    pub fn keeps(&mut self) -> bool {
        let is_stopping = self.queue.shared().stopping.load(Ordering::Relaxed);
        let keep = self.keep.unwrap_or_else(|| !is_stopping && self.message().is_reusable());
        self.keep = Some(keep);
        keep
    }

    /// Makes the connection end with the answer.
    pub fn end_connection(&mut self) {
        self.keep = Some(false);
    }

    /// Counts the request for the account of its key. Returns false if that exceeds the account's
    /// share; the request is then to be refused.
    pub fn claim(&mut self, account: &Owner) -> bool {
        match (&mut self.waiting, &mut self.turn.lane) {
            (Some(waiting), Some(lane)) => self.queue.claim(waiting, lane, account),
            _ => true,
        }
    }

    /// Ends the thread's part before the answer. The thread may take its next turn, while the
    /// holder of this request answers later.
    #[must_use = "the next request of the thread is asked for with it"]
    pub fn end_turn(&mut self) -> ServeTurn {
        self.turn.take()
    }

    /// Lets the loop receive the body. The request comes again when the body has arrived.
    ///
    /// # Errors
    /// Returns the request at once, admitted and over its share, if the body exceeds the owner's
    /// share.
    pub fn await_body(mut self) -> Result<ServeTurn, Box<Self>> {
        let shared = Arc::clone(self.queue.shared());
        let message = self.message_mut();
        message.admitted = true;
        if !message.count_body(&shared) {
            return Err(Box::new(self));
        }
        message.body_due = false;
        if let Some(waiting) = self.waiting.take() {
            let WaitingRequest { connection, message, .. } = waiting;
            let step = connection.await_body(&shared, message, Instant::now());
            self.proceed(&connection, &step);
        }
        Ok(self.end_turn())
    }

    /// Composes an answer. An answer to HEAD, and an answer with 204 or 304, has no body. A body
    /// that is made while it is taken is sent in chunks. For HTTP/1.0 it ends with the connection.
    ///
    /// # Errors
    /// Returns [`LineBreak`] if the status or a field contains a line break.
    pub fn compose<'f>(
        &mut self,
        status: &[u8],
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        body: OutgoingBody,
    ) -> Result<Answer, LineBreak> {
        let knows_chunks = self.head().is_some_and(|head| head.minor_version() > 0);
        let is_bodiless = self.head().is_some_and(|head| head.method() == "HEAD")
            || [&b"204"[..], b"304"].iter().any(|code| status.starts_with(code));
        let length = match &body {
            OutgoingBody::Pieces(_) if is_bodiless => BodyLength::Unsaid,
            OutgoingBody::Pieces(pieces) => {
                BodyLength::Bytes(pieces.iter().map(|piece| (**piece).as_ref().len()).sum())
            }
            OutgoingBody::Rest(_) if knows_chunks => BodyLength::Chunked,
            OutgoingBody::Rest(_) => {
                self.end_connection(); // its end is the end of the body
                BodyLength::Unsaid
            }
        };
        let head = answer_head(status, self.keeps(), fields, length)?;
        let mut answer = Answer { head, ..Answer::default() };
        match body {
            OutgoingBody::Rest(rest) => answer.rest = Some(rest),
            OutgoingBody::Pieces(_) if is_bodiless => {}
            OutgoingBody::Pieces(pieces) => pieces.into_iter().for_each(|piece| answer.push(piece)),
        }
        Ok(answer)
    }

    /// Sends an answer: as much as the client takes now, and the loop sends the rest. After a part
    /// of a long answer is taken, any thread makes the next part. The connection goes on afterwards
    /// if [`Self::keeps`] has returned true.
    #[must_use = "the next request of the thread is asked for with it"]
    pub fn answer(mut self, mut answer: Answer) -> ServeTurn {
        let keep = self.keeps();
        if let Some(rest) = answer.rest.take() {
            return self.begin(answer.head, rest, keep);
        }
        if let Some(mut waiting) = self.waiting.take() {
            self.queue.note_size(&mut waiting, answer.len() as u64);
            let WaitingRequest { connection, message, under_way, unsent_held, .. } = waiting;
            let owner = message.owner.clone();
            drop(message);
            let held = (&owner, unsent_held);
            let step = connection.answer(self.queue.shared(), answer, keep, held, Instant::now());
            drop(under_way);
            self.proceed(&connection, &step);
        }
        self.end_turn()
    }

    /// Sends the head of a long answer, and the first part of its body.
    fn begin(mut self, head: Vec<u8>, rest: Box<dyn AnswerRest>, keep: bool) -> ServeTurn {
        if let Some(waiting) = &mut self.waiting {
            let is_chunked = waiting.message.head().is_some_and(|head| head.minor_version() > 0);
            let body = LongBody::new(rest, is_chunked, keep, Instant::now());
            self.queue.note_size(waiting, body.held_bytes());
            waiting.long = Some(Box::new(body));
        }
        self.send_part(head)
    }

    /// Returns true if the answer has begun and has further parts.
    pub(crate) fn has_begun(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.long.is_some())
    }

    /// Makes the next part of a long answer, and sends it after `head`. A panic drops the request,
    /// which ends the connection.
    pub(crate) fn send_part(mut self, head: Vec<u8>) -> ServeTurn {
        let body = self.waiting.as_mut().and_then(|waiting| waiting.long.as_mut());
        let part = body.and_then(|body| body.next(head));
        let Some(WaitingRequest { connection, message, under_way, unsent_held, long, .. }) =
            self.waiting.take()
        else {
            return self.end_turn();
        };
        let (shared, now) = (self.queue.shared(), Instant::now());
        let step = match (part, long) {
            (Some(part), Some(body)) => {
                let long = Box::new(LongRequest { message, under_way, unsent_held, body: *body });
                connection.answer_in_part(shared, part, long, now)
            }
            (_, Some(body)) => {
                let (keep, owner) = (body.keep, message.owner.clone());
                let end = body.end(); // dropped before its client knows that it is over
                drop((message, under_way));
                connection.answer(shared, end, keep, (&owner, unsent_held), now)
            }
            (_, None) => Need::Close,
        };
        match step {
            // Other requests have their turns in between.
            Need::GoOn(long) => self.queue.put_long(connection, *long),
            step => self.proceed(&connection, &step),
        }
        self.end_turn()
    }

    /// Receives the missing body if the whole body has arrived.
    fn receive_if_come(&mut self) {
        if let Some(WaitingRequest { connection, message, .. }) = &mut self.waiting
            && message.body_due
        {
            // If the peer is gone, sending the answer shows it.
            let _ = connection.take_body(message);
            message.body_due = message.missing_bytes() > 0;
        }
    }

    fn proceed(&self, connection: &Connection, step: &Need) {
        let wish = match step {
            Need::Close => ConnectionWish::Close,
            Need::Resume => ConnectionWish::Resume,
            // The connection is armed. Connections give no requests to a thread directly.
            Need::Read | Need::Write | Need::Serve(_) | Need::GoOn(_) => return,
        };
        self.queue.shared().wish(connection.token, wish);
    }

    fn waiting(&self) -> &WaitingRequest {
        self.waiting.as_ref().expect("an answer takes the request")
    }

    fn message(&self) -> &IncomingRequest {
        &self.waiting().message
    }

    fn message_mut(&mut self) -> &mut IncomingRequest {
        &mut self.waiting.as_mut().expect("an answer takes the request").message
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.proceed(&waiting.connection, &Need::Close);
        }
    }
}
