//! The parts of the gRPC surface that go on without the GIL.

mod key_verdicts;
mod protobuf_writes;

pub(crate) use key_verdicts::{KeyBasis, KeyVerdict, KeyVerdicts};
pub(crate) use protobuf_writes::ProtobufWrites;
