//! Bodies in chunks (RFC 9112, 7.1), put together as they arrive.
//!
//! Every line ends with CR LF, as in heads. Extensions and trailers are skipped and bounded in
//! bytes.

/// Bound on the bytes of all extensions and trailers of a body, so that a client cannot send them
/// without end.
const ASIDE_BYTES_MAX: usize = 8 << 10;
/// Bound on the digits of a chunk's size. Twelve digits hold more than any bound on bodies.
const DIGITS_MAX: u8 = 12;

/// Reason for which a body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkFault {
    Malformed,
    TooLong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    /// Inside the size of a chunk, after this many digits.
    Size(u8),
    Extension,
    /// After the CR that ends the line of the size.
    SizeEnd,
    Data,
    /// Before these bytes of the CR LF that follows the data of a chunk.
    DataEnd(&'static [u8]),
    /// At the beginning of a line of the trailer.
    TrailerStart,
    TrailerLine,
    /// After the CR of a line of the trailer.
    TrailerEnd,
    /// After the CR of the empty line that ends the body.
    LastEnd,
    Done,
}

/// Progress in a body in chunks.
#[derive(Debug)]
pub(crate) struct ChunkedBody {
    state: ChunkState,
    /// Bytes of the current chunk that have not arrived.
    left: u64,
    bytes_max: u64,
    aside_bytes: usize,
}

impl ChunkedBody {
    /// Starts a body that may have at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { state: ChunkState::Size(0), left: 0, bytes_max, aside_bytes: 0 }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == ChunkState::Done
    }

    /// Appends the data in `input` to `body`. Returns the count of the bytes of `input` that belong
    /// to the body's encoding.
    pub(crate) fn take(&mut self, input: &[u8], body: &mut Vec<u8>) -> Result<usize, ChunkFault> {
        let mut at = 0;
        while let Some(&byte) = input.get(at).filter(|_| !self.is_done()) {
            if self.state == ChunkState::Data {
                let come = input.get(at..).unwrap_or_default();
                let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(come.len());
                body.extend_from_slice(come.get(..count).unwrap_or_default());
                at += count;
                self.left -= count as u64;
                if self.left == 0 {
                    self.state = ChunkState::DataEnd(b"\r\n");
                }
            } else {
                at += 1;
                self.state = self.after(byte, body.len() as u64)?;
            }
        }
        Ok(at)
    }

    /// Returns the state after a byte that is not data, when the body has `body_bytes` so far.
    fn after(&mut self, byte: u8, body_bytes: u64) -> Result<ChunkState, ChunkFault> {
        Ok(match (self.state, byte) {
            (ChunkState::Size(digits), _) if byte.is_ascii_hexdigit() && digits < DIGITS_MAX => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                self.left = self.left << 4 | u64::from(digit);
                ChunkState::Size(digits + 1)
            }
            (ChunkState::Size(1..) | ChunkState::Extension, b'\r') => ChunkState::SizeEnd,
            (ChunkState::Size(1..), b';' | b' ' | b'\t') => ChunkState::Extension,
            (ChunkState::SizeEnd, b'\n') if self.left == 0 => ChunkState::TrailerStart,
            (ChunkState::SizeEnd, b'\n') if body_bytes + self.left > self.bytes_max => {
                return Err(ChunkFault::TooLong);
            }
            (ChunkState::SizeEnd, b'\n') => ChunkState::Data,
            (ChunkState::DataEnd([expected, rest @ ..]), _) if byte == *expected => {
                if rest.is_empty() { ChunkState::Size(0) } else { ChunkState::DataEnd(rest) }
            }
            (ChunkState::TrailerStart, b'\r') => ChunkState::LastEnd,
            (ChunkState::TrailerLine, b'\r') => ChunkState::TrailerEnd,
            (ChunkState::TrailerEnd, b'\n') => ChunkState::TrailerStart,
            (ChunkState::LastEnd, b'\n') => ChunkState::Done,
            (ChunkState::Extension, _) if byte != b'\n' => self.aside(ChunkState::Extension)?,
            (ChunkState::TrailerStart | ChunkState::TrailerLine, _) if byte != b'\n' => {
                self.aside(ChunkState::TrailerLine)?
            }
            _ => return Err(ChunkFault::Malformed),
        })
    }

    fn aside(&mut self, state: ChunkState) -> Result<ChunkState, ChunkFault> {
        self.aside_bytes += 1;
        if self.aside_bytes > ASIDE_BYTES_MAX { Err(ChunkFault::Malformed) } else { Ok(state) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the body, the input after the body, and true if the body is whole.
    fn read(pieces: &[&[u8]]) -> Result<(Vec<u8>, Vec<u8>, bool), ChunkFault> {
        let (mut chunks, mut body, mut after) = (ChunkedBody::new(100), Vec::new(), Vec::new());
        for piece in pieces {
            let used = chunks.take(piece, &mut body)?;
            after.extend_from_slice(&piece[used..]);
        }
        Ok((body, after, chunks.is_done()))
    }

    #[test]
    fn extensions_and_trailers_are_passed_over() {
        let input = b"5;a=\"b\"\r\nhello\r\n00A \r\n, world...\r\n0\r\nX: y\r\n\r\nGET";
        let whole = (b"hello, world...".to_vec(), b"GET".to_vec(), true);
        assert_eq!(read(&[input]), Ok(whole));
    }

    #[test]
    fn what_is_no_chunk_is_malformed() {
        let inputs: [&[u8]; 11] = [
            b"\r\n",
            b";\r\n",
            b"x\r\n",
            b"5\n",
            b"5\rx",
            b"1\r\nab",
            b"1\r\na\rb",
            b"-1\r\n",
            b"0\r\n\n",
            b"0\r\na\n",
            b"0000000000001\r\n",
        ];
        for input in inputs {
            assert_eq!(read(&[input]), Err(ChunkFault::Malformed), "{}", input.escape_ascii());
        }
        let long = [b"1;".to_vec(), vec![b'x'; ASIDE_BYTES_MAX + 1]].concat();
        assert_eq!(read(&[&long]), Err(ChunkFault::Malformed));
    }

    #[test]
    fn a_body_is_refused_before_it_is_too_long() {
        assert_eq!(read(&[b"65\r\n"]), Err(ChunkFault::TooLong));
        assert_eq!(read(&[b"64\r\n", &[b'x'; 100], b"\r\n1\r\n"]), Err(ChunkFault::TooLong));
        assert_eq!(read(&[b"ffffffffffff\r\n"]), Err(ChunkFault::TooLong));
        let longest = [&b"64\r\n"[..], &[b'x'; 100], b"\r\n0\r\n\r\n"];
        assert_eq!(read(&longest).map(|read| read.0.len()), Ok(100));
    }

    proptest! {
        #[test]
        fn a_body_is_the_same_however_it_is_cut(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..5),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut input = Vec::new();
            for chunk in &chunks {
                input.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                input.extend_from_slice(chunk);
                input.extend_from_slice(b"\r\n");
            }
            input.extend_from_slice(b"0\r\n\r\n");
            let (first, second) = input.split_at(cut.index(input.len()));
            prop_assert_eq!(read(&[first, second]), Ok((chunks.concat(), Vec::new(), true)));
        }
    }
}
