//! A request in the hands of a thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::answer_head::{BodyLength, LineBreak, answer_head};
use crate::connection::{Answer, Body, Connection, Long, LongBody, Rest, Step};
use crate::fair::Owner;
use crate::head::RequestHead;
use crate::message::{Asked, Decision, Failure, Message};
use crate::requests::{Lane, RequestQueue, Waiting};
use crate::shared::Wish;
use crate::socket::Peer;

/// One request. It belongs to whoever is to do the next thing about it; dropped without an answer,
/// it closes its connection.
pub struct Request {
    queue: Arc<RequestQueue>,
    /// `None` once it is answered.
    waiting: Option<Waiting>,
    turn: Turn,
    keep: Option<bool>,
}

/// A thread's share in serving one request. Dropped, it lets another request start.
pub struct Turn {
    queue: Arc<RequestQueue>,
    lane: Option<Lane>,
}

impl Turn {
    /// Waits for the next request, which takes this turn's place. `None` ends the thread.
    pub(crate) fn next(queue: &Arc<RequestQueue>, last: Option<Self>) -> Option<Request> {
        let last = last.and_then(|mut turn| turn.lane.take());
        let (lane, waiting) = queue.next(last.as_ref())?;
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

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(lane) = self.lane.take() {
            self.queue.done(&lane);
        }
    }
}

impl Request {
    /// The question of the client.
    #[must_use]
    pub fn asked(&self) -> &Asked {
        &self.message().asked
    }

    /// The head, unless it is malformed.
    #[must_use]
    pub fn head(&self) -> Option<&RequestHead> {
        self.message().head()
    }

    /// The other end of its connection.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.waiting().connection.peer
    }

    /// The body, or as much of it as has come. Empty where nobody is to read it.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.message().body
    }

    /// Takes the body out, without a copy.
    #[must_use]
    pub fn take_body(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.message_mut().body)
    }

    /// The body has not been received, and nobody has said that it is wanted.
    #[must_use]
    pub fn is_body_due(&self) -> bool {
        self.message().body_due
    }

    /// Somebody has said that; this is the rest of a request that was counted already.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.message().admitted
    }

    /// Has it taken for a request that was counted already.
    pub fn set_admitted(&mut self) {
        self.message_mut().admitted = true;
    }

    /// Notes the decision about it, for whoever serves it.
    pub fn decide(&mut self, decision: Decision) {
        self.message_mut().decision = Some(decision);
    }

    /// Takes the decision about it out.
    #[must_use]
    pub fn take_decision(&mut self) -> Option<Decision> {
        self.message_mut().decision.take()
    }

    /// Notes what came of serving the request, which may have had effects all the same.
    pub fn fail(&mut self, failure: Failure) {
        self.message_mut().failure = Some(failure);
    }

    /// Something has come of serving it that is for the application to tell.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.message().failure.is_some()
    }

    /// Puts the request back, for another thread to hand it on.
    pub fn put_back(mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.queue.put_back(waiting);
        }
    }

    /// Takes out what came of serving it.
    #[must_use]
    pub fn take_failure(&mut self) -> Option<Failure> {
        self.message_mut().failure.take()
    }

    /// Version of the settings in force; 0 where nobody shares any.
    #[must_use]
    pub fn settings_version(&self) -> u64 {
        self.queue.shared().settings_version()
    }

    /// The request is one too many of its owner.
    #[must_use]
    pub fn is_over_share(&self) -> bool {
        self.message().over_share
    }

    /// The body is longer than was allowed when the head came, so nobody reads it.
    #[must_use]
    pub fn is_oversized(&self) -> bool {
        matches!(self.asked(), Asked::Whole { framing, .. } if framing.is_oversized)
    }

    /// Tells whether the connection goes on after the answer, which is to say the same. A second
    /// call gives the same.
    pub fn keeps(&mut self) -> bool {
        let is_stopping = self.queue.shared().stopping.load(Ordering::Relaxed);
        let keep = self.keep.unwrap_or_else(|| !is_stopping && self.message().is_reusable());
        self.keep = Some(keep);
        keep
    }

    /// Has the connection end with the answer.
    pub fn end_connection(&mut self) {
        self.keep = Some(false);
    }

    /// Counts the request for the account that its key is of; false where that is too much, and the
    /// request is to be refused.
    pub fn claim(&mut self, account: &Owner) -> bool {
        match (&mut self.waiting, &mut self.turn.lane) {
            (Some(waiting), Some(lane)) => self.queue.claim(waiting, lane, account),
            _ => true,
        }
    }

    /// Ends the thread's part before the answer: it may take its next turn, while whoever has this
    /// request answers it later.
    #[must_use = "the next request of the thread is asked for with it"]
    pub fn end_turn(&mut self) -> Turn {
        self.turn.take()
    }

    /// Has the loop receive the body that is due; the request comes again when it is there. Where
    /// that is beyond the owner's share, it comes back at once, to be refused.
    ///
    /// # Errors
    /// The request, admitted and over its share.
    pub fn await_body(mut self) -> Result<Turn, Box<Self>> {
        let shared = Arc::clone(self.queue.shared());
        let message = self.message_mut();
        message.admitted = true;
        if !message.count_body(&shared) {
            return Err(Box::new(self));
        }
        message.body_due = false;
        if let Some(waiting) = self.waiting.take() {
            let Waiting { connection, message, .. } = waiting;
            let step = connection.await_body(&shared, message, Instant::now());
            self.proceed(&connection, &step);
        }
        Ok(self.end_turn())
    }

    /// Puts an answer together. There is no body after HEAD, and none with 204 and 304. A body that is
    /// made as it is taken comes in chunks, or up to the end of the connection for HTTP/1.0.
    ///
    /// # Errors
    /// [`LineBreak`], if the status or a field would break the head.
    pub fn compose<'f>(
        &mut self,
        status: &[u8],
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>,
        body: Body,
    ) -> Result<Answer, LineBreak> {
        let knows_chunks = self.head().is_some_and(|head| head.minor_version() > 0);
        let is_bodiless = self.head().is_some_and(|head| head.method() == "HEAD")
            || [&b"204"[..], b"304"].iter().any(|code| status.starts_with(code));
        let length = match &body {
            Body::Pieces(_) if is_bodiless => BodyLength::Unsaid,
            Body::Pieces(pieces) => {
                BodyLength::Bytes(pieces.iter().map(|piece| (**piece).as_ref().len()).sum())
            }
            Body::Rest(_) if knows_chunks => BodyLength::Chunked,
            Body::Rest(_) => {
                self.end_connection(); // its end is that of the body
                BodyLength::Unsaid
            }
        };
        let head = answer_head(status, self.keeps(), fields, length)?;
        let mut answer = Answer { head, ..Answer::default() };
        match body {
            Body::Rest(rest) => answer.rest = Some(rest),
            Body::Pieces(_) if is_bodiless => {}
            Body::Pieces(pieces) => pieces.into_iter().for_each(|piece| answer.push(piece)),
        }
        Ok(answer)
    }

    /// Sends an answer, as much as the client takes now; the loop sends what is left. The rest of a
    /// long one is made by any thread once the client has taken what was there before. The connection
    /// goes on after it if [`Self::keeps`] has said so.
    #[must_use = "the next request of the thread is asked for with it"]
    pub fn answer(mut self, mut answer: Answer) -> Turn {
        let keep = self.keeps();
        if let Some(rest) = answer.rest.take() {
            return self.begin(answer.head, rest, keep);
        }
        if let Some(mut waiting) = self.waiting.take() {
            self.queue.note_size(&mut waiting, answer.len() as u64);
            let Waiting { connection, message, under_way, unsent_held, .. } = waiting;
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
    fn begin(mut self, head: Vec<u8>, rest: Box<dyn Rest>, keep: bool) -> Turn {
        if let Some(waiting) = &mut self.waiting {
            let is_chunked = waiting.message.head().is_some_and(|head| head.minor_version() > 0);
            let body = LongBody::new(rest, is_chunked, keep, Instant::now());
            self.queue.note_size(waiting, body.held_bytes());
            waiting.long = Some(Box::new(body));
        }
        self.send_part(head)
    }

    /// The answer has begun, and is to be gone on with.
    pub(crate) fn has_begun(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.long.is_some())
    }

    /// Makes the next part of a long answer and sends it, behind `head`. A panic drops the request,
    /// and so ends the connection.
    pub(crate) fn send_part(mut self, head: Vec<u8>) -> Turn {
        let body = self.waiting.as_mut().and_then(|waiting| waiting.long.as_mut());
        let part = body.and_then(|body| body.next(head));
        let Some(Waiting { connection, message, under_way, unsent_held, long, .. }) =
            self.waiting.take()
        else {
            return self.end_turn();
        };
        let (shared, now) = (self.queue.shared(), Instant::now());
        let step = match (part, long) {
            (Some(part), Some(body)) => {
                let long = Box::new(Long { message, under_way, unsent_held, body: *body });
                connection.answer_in_part(shared, part, long, now)
            }
            (_, Some(body)) => {
                let (keep, owner) = (body.keep, message.owner.clone());
                let end = body.end(); // nothing is left of it before its client knows that it is over
                drop((message, under_way));
                connection.answer(shared, end, keep, (&owner, unsent_held), now)
            }
            (_, None) => Step::Close,
        };
        match step {
            // Others have their turns in between.
            Step::GoOn(long) => self.queue.put_long(connection, *long),
            step => self.proceed(&connection, &step),
        }
        self.end_turn()
    }

    /// Receives a body that is due, if the whole of it has come.
    fn receive_if_come(&mut self) {
        if let Some(Waiting { connection, message, .. }) = &mut self.waiting
            && message.body_due
        {
            // A peer that is gone shows when it is answered.
            let _ = connection.take_body(message);
            message.body_due = message.missing_bytes() > 0;
        }
    }

    fn proceed(&self, connection: &Connection, step: &Step) {
        let wish = match step {
            Step::Close => Wish::Close,
            Step::Resume => Wish::Resume,
            // It is armed, and no thread is given requests by a connection.
            Step::Read | Step::Write | Step::Serve(_) | Step::GoOn(_) => return,
        };
        self.queue.shared().wish(connection.token, wish);
    }

    fn waiting(&self) -> &Waiting {
        self.waiting.as_ref().expect("an answer takes the request")
    }

    fn message(&self) -> &Message {
        &self.waiting().message
    }

    fn message_mut(&mut self) -> &mut Message {
        &mut self.waiting.as_mut().expect("an answer takes the request").message
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.proceed(&waiting.connection, &Step::Close);
        }
    }
}
