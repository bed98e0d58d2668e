//! Ends connections that send frames without calls: floods of PING, SETTINGS, empty DATA.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connections::ConnectionSeat;

const PREFACE_BYTES: usize = 24;
const HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
/// Frames that a connection may send in addition to its calls. A PING each ten seconds is 360 an
/// hour.
const SPARE_FRAMES: u64 = 1_000;
/// Other frames for each frame of a call: updates of windows, resets, acknowledgements. Example:
/// after 5 frames of calls, a connection may have sent 1,080 other frames.
const FACTOR: u64 = 16;

/// Counts of the frames of one connection (RFC 9113, 4.1).
#[derive(Debug)]
struct Frames {
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    /// Bytes until the next head begins.
    skip_bytes: usize,
    /// Frames that belong to calls.
    calls: u64,
    others: u64,
}

impl Frames {
    fn new() -> Self {
        let head = [0; HEAD_BYTES];
        Self { head, head_bytes: 0, skip_bytes: PREFACE_BYTES, calls: 0, others: 0 }
    }

    fn count(&mut self, mut bytes: &[u8]) {
        loop {
            let skipped = self.skip_bytes.min(bytes.len());
            self.skip_bytes -= skipped;
            bytes = &bytes[skipped..];
            let taken = bytes.len().min(HEAD_BYTES - self.head_bytes);
            if taken == 0 {
                return;
            }
            self.head[self.head_bytes..][..taken].copy_from_slice(&bytes[..taken]);
            self.head_bytes += taken;
            bytes = &bytes[taken..];
            if self.head_bytes < HEAD_BYTES {
                return;
            }
            self.head_bytes = 0;
            let [high, middle, low, kind, ..] = self.head;
            self.skip_bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
            match kind {
                HEADERS => self.calls += 1,
                DATA if self.skip_bytes > 0 => self.calls += 1,
                _ => self.others += 1,
            }
        }
    }

    fn are_a_flood(&self) -> bool {
        self.others > self.calls.saturating_mul(FACTOR).saturating_add(SPARE_FRAMES)
    }
}

/// A stream of HTTP/2. It fails once its peer has sent too many frames that belong to no call.
#[derive(Debug)]
pub(crate) struct MeteredStream<S> {
    stream: S,
    frames: Frames,
    seat: Arc<ConnectionSeat>,
}

impl<S> MeteredStream<S> {
    pub(crate) fn new(stream: S, seat: &Arc<ConnectionSeat>) -> Self {
        Self { stream, frames: Frames::new(), seat: Arc::clone(seat) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(context, buffer);
        this.frames.count(&buffer.filled()[before..]);
        if this.frames.are_a_flood() {
            this.seat.note_flood();
            return Poll::Ready(Err(io::Error::other("a flood of frames")));
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, length: usize) -> Vec<u8> {
        let size = u32::try_from(length).unwrap().to_be_bytes();
        let head = [size[1], size[2], size[3], kind, 0, 0, 0, 0, 1];
        [&head[..], &vec![7; length]].concat()
    }

    #[test]
    fn frames_are_counted_however_they_are_cut() {
        let bytes =
            [vec![0; PREFACE_BYTES], frame(4, 18), frame(1, 40), frame(0, 300), frame(0, 0)];
        let bytes = [bytes.concat(), frame(6, 8)].concat();
        for piece in 1..bytes.len() {
            let mut frames = Frames::new();
            bytes.chunks(piece).for_each(|piece| frames.count(piece));
            assert_eq!((frames.calls, frames.others), (2, 3), "in pieces of {piece}");
        }
    }

    #[test]
    fn calls_make_room_for_other_frames() {
        let mut frames = Frames::new();
        frames.count(&[0; PREFACE_BYTES]);
        let ping = frame(6, 8);
        (0..SPARE_FRAMES).for_each(|_| frames.count(&ping));
        assert!(!frames.are_a_flood());
        frames.count(&ping);
        assert!(frames.are_a_flood());
        frames.count(&frame(1, 40));
        assert!(!frames.are_a_flood());
    }
}
