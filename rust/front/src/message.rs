//! One request as it has arrived: its head, and the part of its body that is there.

use std::any::Any;
use std::error::Error;
use std::io;
use std::sync::Arc;

use crate::chunks::{ChunkFault, ChunkedBody};
use crate::fair::Owner;
use crate::head::{BodyFraming, HeadFault, RequestHead};
use crate::holding::SharePermit;
use crate::limits::ConnectionLimits;
use crate::shared::{Amount, WorkerState};
use crate::socket::Socket;

/// Bound on the bytes of chunks that one call receives.
const CHUNKS_BYTES: usize = 16 << 10;

/// Error that a server of requests met.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The decision about a request. The front does not know its type.
pub type AnyDecision = Box<dyn Any + Send>;

/// A client's request, as the parser read it.
#[derive(Debug)]
pub enum ParsedRequest {
    /// A request whose head is whole and well-formed.
    Whole {
        /// The head.
        head: RequestHead,
        /// Treatment of the body after the head.
        framing: BodyFraming,
    },
    /// A head that the parser refused. Its answer ends the connection.
    Malformed(HeadFault),
}

/// A request between its connection and its thread.
pub(crate) struct IncomingRequest {
    pub(crate) asked: ParsedRequest,
    pub(crate) body: Vec<u8>,
    /// Progress in a body that comes in chunks.
    chunks: Option<ChunkedBody>,
    /// Bytes of the body that have not arrived.
    missing_bytes: usize,
    /// True while the body has not arrived and has not been asked for.
    pub(crate) body_due: bool,
    /// True once the body has been asked for: this is the rest of a request that was counted
    /// already.
    pub(crate) admitted: bool,
    /// True if the request exceeds its owner's share.
    pub(crate) over_share: bool,
    /// The account or address that the request counts for.
    pub(crate) owner: Owner,
    pub(crate) body_held: Option<SharePermit>,
    pub(crate) decision: Option<AnyDecision>,
    pub(crate) failure: Option<BoxError>,
    /// The limits that were in force when the head began.
    pub(crate) limits: Arc<ConnectionLimits>,
}

impl IncomingRequest {
    pub(crate) fn new(
        asked: ParsedRequest,
        body: Vec<u8>,
        address: &Owner,
        limits: &Arc<ConnectionLimits>,
    ) -> Self {
        if let ParsedRequest::Whole { framing: BodyFraming { is_chunked: true, .. }, .. } = &asked {
            return Self::in_chunks(asked, &body, address, limits);
        }
        let missing_bytes = body_bytes(&asked) - body.len();
        Self::begun(asked, body, missing_bytes, address, limits)
    }

    /// Makes a message of which `body` has arrived and `missing_bytes` have not.
    fn begun(
        asked: ParsedRequest,
        body: Vec<u8>,
        missing_bytes: usize,
        address: &Owner,
        limits: &Arc<ConnectionLimits>,
    ) -> Self {
        Self {
            asked,
            body,
            chunks: None,
            missing_bytes,
            body_due: missing_bytes > 0,
            admitted: false,
            over_share: false,
            owner: address.clone(),
            body_held: None,
            decision: None,
            failure: None,
            limits: Arc::clone(limits),
        }
    }

    /// Makes a request whose body comes in chunks. `come` holds the chunks that have arrived.
    fn in_chunks(
        asked: ParsedRequest,
        come: &[u8],
        address: &Owner,
        limits: &Arc<ConnectionLimits>,
    ) -> Self {
        let mut message = Self::begun(asked, Vec::new(), 1, address, limits);
        message.chunks = Some(ChunkedBody::new(limits.body_bytes_max));
        message.take_chunks(come);
        message.body_due = message.missing_bytes > 0;
        message
    }

    /// Appends the chunks in `come` to the body. Input after the last chunk is dropped, and the
    /// connection ends with the answer.
    fn take_chunks(&mut self, come: &[u8]) {
        let Some(chunks) = &mut self.chunks else { return };
        let taken = chunks.take(come, &mut self.body);
        self.missing_bytes = usize::from(taken.is_ok() && !chunks.is_done());
        match (taken, &mut self.asked) {
            (Ok(used), _) if used == come.len() => {}
            (Ok(_), ParsedRequest::Whole { framing, .. }) => framing.is_reusable = false,
            (Err(ChunkFault::TooLong), ParsedRequest::Whole { framing, .. }) => {
                (framing.is_oversized, framing.is_reusable) = (true, false);
                self.body = Vec::new();
            }
            (_, asked) => *asked = ParsedRequest::Malformed(HeadFault::BadRequest),
        }
    }

    pub(crate) fn head(&self) -> Option<&RequestHead> {
        match &self.asked {
            ParsedRequest::Whole { head, .. } => Some(head),
            ParsedRequest::Malformed(_) => None,
        }
    }

    pub(crate) fn expects_continue(&self) -> bool {
        self.head().is_some_and(RequestHead::expects_continue)
    }

    /// Bytes that the body counts for: its length, or the memory that it uses if its length is
    /// unknown.
    fn counted_bytes(&self) -> u64 {
        match &self.chunks {
            Some(_) => self.body.capacity() as u64,
            None => body_bytes(&self.asked) as u64,
        }
    }

    /// Counts the body for its owner. Returns false if the body exceeds the owner's share; the
    /// request is then to be refused.
    pub(crate) fn count_body(&mut self, shared: &Arc<WorkerState>) -> bool {
        let (bytes, bound) = (self.counted_bytes(), self.limits.body_bytes_under_way_max);
        self.body_held = SharePermit::take(shared, Amount::Bodies, &self.owner, bytes, bound);
        self.over_share = self.body_held.is_none();
        !self.over_share
    }

    /// Counts the growth of a body in chunks. A body that exceeds its owner's share is dropped. The
    /// connection then ends with the answer, because the rest of the body is not read.
    fn count_growth(&mut self) {
        let (bytes, bound) = (self.counted_bytes(), self.limits.body_bytes_under_way_max);
        if self.body_held.as_mut().is_none_or(|held| held.grow_to(bytes, bound)) {
            return;
        }
        self.over_share = true;
        (self.body, self.body_held, self.missing_bytes) = (Vec::new(), None, 0);
        if let ParsedRequest::Whole { framing, .. } = &mut self.asked {
            framing.is_reusable = false;
        }
    }

    /// Bytes of the body that have not arrived; 1 if their count is unknown.
    pub(crate) fn missing_bytes(&self) -> usize {
        self.missing_bytes
    }

    /// Receives a part of the body. Returns the count of its bytes; 0 means the end of the input.
    ///
    /// # Errors
    /// Returns the error of the socket.
    pub(crate) fn receive(&mut self, socket: &Socket) -> io::Result<usize> {
        if self.chunks.is_some() {
            let mut come = [0; CHUNKS_BYTES];
            let count = socket.receive(&mut come)?;
            self.take_chunks(come.get(..count).unwrap_or_default());
            if count == 0 {
                self.asked = ParsedRequest::Malformed(HeadFault::BadRequest); // it ends early
            }
            self.count_growth();
            return Ok(count);
        }
        self.body.reserve_exact(self.missing_bytes);
        let count = socket.receive_into(&mut self.body, self.missing_bytes)?;
        self.missing_bytes -= count;
        Ok(count)
    }

    /// Returns true if another request may follow on the connection.
    pub(crate) fn is_reusable(&self) -> bool {
        let ParsedRequest::Whole { head, framing } = &self.asked else { return false };
        let is_clear = if self.body_due {
            self.chunks.is_none() && !head.expects_continue() // else the body may not come
        } else {
            self.missing_bytes == 0
        };
        framing.is_reusable && is_clear
    }
}

fn body_bytes(asked: &ParsedRequest) -> usize {
    match asked {
        ParsedRequest::Whole { framing, .. } if framing.is_buffered => {
            usize::try_from(framing.body_bytes).unwrap_or(usize::MAX)
        }
        _ => 0,
    }
}
