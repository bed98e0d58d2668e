//! The gRPC front as Python sees it.

mod events;

mod front;

pub(crate) use events::{EndedCall, GrpcNotice};
pub(crate) use front::GrpcFront;
