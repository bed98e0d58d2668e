//! The parts of the gRPC surface that go on without the GIL.

mod key_verdicts;

mod jobs;

pub(crate) use jobs::Jobs;
pub(crate) use key_verdicts::{KeyBasis, KeyVerdict, KeyVerdicts};
