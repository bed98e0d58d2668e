//! The messages of a call: a head of five bytes, then the message, plain or packed.
//!
//! Example: `00 00 00 00 03` precedes a plain message of 3 bytes.

use std::io::Read;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use flate2::read::{GzDecoder, ZlibDecoder};
use h2::RecvStream;
use http::{HeaderMap, HeaderValue};

use crate::shares::SharePart;
use crate::status::CallRefusal;

/// Length of the head: one byte is 1 if the message is packed, and four bytes are the length.
pub(crate) const HEAD_BYTES: usize = 5;
/// Bytes that are unpacked at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A compression of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Compression {
    Gzip,
    Deflate,
}

impl Compression {
    /// Returns the compression that `grpc-encoding` names, if the field is present.
    pub(crate) fn of_head(head: &HeaderMap) -> Result<Option<Self>, CallRefusal> {
        match head.get("grpc-encoding").map_or(&b"identity"[..], HeaderValue::as_bytes) {
            b"identity" => Ok(None),
            b"gzip" => Ok(Some(Self::Gzip)),
            b"deflate" => Ok(Some(Self::Deflate)),
            _ => Err(CallRefusal::new("unsupported_encoding")),
        }
    }
}

/// A message as it was received.
#[derive(Debug)]
pub(crate) struct CallMessage {
    pub(crate) bytes: Bytes,
    pub(crate) packing: Option<Compression>,
}

/// The body of a call that has one message.
pub(crate) struct CallBody<'c> {
    pub(crate) stream: &'c mut RecvStream,
    pub(crate) packing: Option<Compression>,
    pub(crate) bytes_max: usize,
}

impl CallBody<'_> {
    /// Receives the single message. `take` counts the message's bytes before they are received.
    ///
    /// Refuses a call without a message, with two messages, or with a part of a message.
    pub(crate) async fn message(
        mut self,
        take: impl FnOnce(u64) -> Option<SharePart>,
    ) -> Result<(CallMessage, SharePart), CallRefusal> {
        let mut first = self.data().await?.ok_or_else(CallRefusal::faulty)?;
        while first.len() < HEAD_BYTES {
            let next = self.data().await?.ok_or_else(CallRefusal::faulty)?;
            let mut joined = BytesMut::from(first);
            joined.put(next);
            first = joined.freeze();
        }
        let is_packed = match first.get_u8() {
            0 => false,
            1 => true,
            _ => return Err(CallRefusal::faulty()),
        };
        let length = first.get_u32() as usize;
        if length > self.bytes_max {
            return Err(CallRefusal::new("batch_too_large"));
        }
        let part = take(length as u64).ok_or_else(CallRefusal::over_share)?;
        let bytes = self.rest(first, length).await?;
        let packing =
            if is_packed { Some(self.packing.ok_or_else(CallRefusal::faulty)?) } else { None };
        Ok((CallMessage { bytes, packing }, part))
    }

    /// Returns the bytes of a message of which `first` has arrived, and checks that the body ends
    /// there.
    async fn rest(&mut self, first: Bytes, length: usize) -> Result<Bytes, CallRefusal> {
        if first.len() > length {
            return Err(CallRefusal::faulty());
        }
        let whole = if first.len() == length {
            first // in one frame, and not copied
        } else {
            let mut whole = BytesMut::with_capacity(length);
            whole.put(first);
            while whole.len() < length {
                let next = self.data().await?.ok_or_else(CallRefusal::faulty)?;
                if whole.len() + next.len() > length {
                    return Err(CallRefusal::faulty());
                }
                whole.put(next);
            }
            whole.freeze()
        };
        while let Some(more) = self.data().await? {
            if !more.is_empty() {
                return Err(CallRefusal::faulty());
            }
        }
        Ok(whole)
    }

    /// Returns the next bytes. The client may then send as many more.
    async fn data(&mut self) -> Result<Option<Bytes>, CallRefusal> {
        let Some(data) = self.stream.data().await else { return Ok(None) };
        let data = data.map_err(|_| CallRefusal::cancelled())?;
        let _ = self.stream.flow_control().release_capacity(data.len());
        Ok(Some(data))
    }
}

impl CallMessage {
    /// Returns the message unpacked, at most `bytes_max`. The bytes count for the share of `part`,
    /// whose bound is `share_max`.
    pub(crate) fn unpacked(
        self,
        part: &mut SharePart,
        bytes_max: usize,
        share_max: u64,
    ) -> Result<Bytes, CallRefusal> {
        match self.packing {
            None => Ok(self.bytes),
            Some(Compression::Gzip) => {
                unpack(GzDecoder::new(&*self.bytes), part, (bytes_max, share_max))
            }
            Some(Compression::Deflate) => {
                unpack(ZlibDecoder::new(&*self.bytes), part, (bytes_max, share_max))
            }
        }
    }
}

fn unpack(
    mut packed: impl Read,
    part: &mut SharePart,
    (bytes_max, share_max): (usize, u64),
) -> Result<Bytes, CallRefusal> {
    let mut unpacked = Vec::new();
    loop {
        if !part.grow(PIECE_BYTES as u64, share_max) {
            return Err(CallRefusal::over_share());
        }
        let piece = (&mut packed).take(PIECE_BYTES as u64).read_to_end(&mut unpacked);
        let count = piece.map_err(|_| CallRefusal::faulty())?;
        if unpacked.len() > bytes_max {
            return Err(CallRefusal::new("batch_too_large"));
        }
        if count == 0 {
            return Ok(unpacked.into());
        }
    }
}

/// Encodes a message with its head.
pub(crate) fn framed(message: &impl prost::Message) -> Bytes {
    let length = message.encoded_len();
    let mut framed = BytesMut::with_capacity(HEAD_BYTES + length);
    framed.put_u8(0);
    framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    framed.put(&*message.encode_to_vec());
    framed.freeze()
}
