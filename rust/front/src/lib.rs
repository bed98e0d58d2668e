//! The HTTP front: connections as state machines on one event loop, and threads that take turns at
//! whole requests.
//!
//! A [`Front`] owns the sockets of one worker process. Its loop reads heads and bodies, bounded in
//! bytes and time, and queues each [`Request`] when its head is whole. Threads take turns at the
//! requests ([`fair`]) and send the answers. The front does not know what a request means.

pub mod calendar;

pub mod fair;
pub mod head;

mod answer_head;
mod limits;
mod poll;
mod settings;
mod socket;

mod shared;

mod holding;

mod chunks;

mod message;

mod connection;

mod registry;
mod requests;

mod request;

mod event_loop;

mod front;

#[cfg(test)]
mod tests;

pub use answer_head::{BodyLength, LineBreak, answer_head};
pub use connection::{Answer, AnswerRest, OutgoingBody, Piece};
pub use front::{FastPath, Front, ServeOutcome, WorkerCounts};
pub use limits::ConnectionLimits;
pub use message::{AnyDecision, BoxError, ParsedRequest};
pub use request::{Request, ServeTurn};
pub use settings::SettingsVersion;
pub use socket::Peer;
