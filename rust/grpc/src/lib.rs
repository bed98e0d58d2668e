//! The gRPC front: HTTP/2 with TLS on the outside, writes to planes, and all other calls handed on.
//!
//! A [`RunningFront`] owns the listening socket of one process. It bounds connections, handshakes,
//! streams and bytes. It checks the key of a write before it receives the message, and stores the
//! message without the interpreter. Calls of other methods go over a Unix socket to the server
//! behind.
//!
//! Sources: RFC 9113 (HTTP/2), and `PROTOCOL-HTTP2.md` of grpc for the form of calls.

mod shares;

mod status;

mod message;

mod workers;

mod event;

mod certificate;

mod connections;

mod flood;

mod backend;

mod server;

mod call;

mod store;

mod write;

mod handed_on;

mod dispatch;

mod connection;

mod front;

#[cfg(test)]
mod tests;

pub use call::CallOrigin;
pub use certificate::CertificateFiles;
pub use connection::serve;
pub use connections::{ConnectionGuard, Connections};
pub use event::{EndedCall, Event, Notice};
pub use front::{FrontOptions, RunningFront};
pub use server::{Server, ServerParts, WriteRules};
pub use status::{GrpcStatus, Statuses};
