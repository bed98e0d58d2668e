//! The parts of the gRPC surface that go on without the GIL.

mod jobs;

pub(crate) use jobs::Jobs;
