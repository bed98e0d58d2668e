//! Unary calls of gRPC, one at a time over a warm channel: HTTP/2 (RFC 9113) over TLS.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use fluke_hpack::Decoder;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::drive::Connection;
use crate::hpack::{Blocks, grpc_status};
use crate::recorded::Recorded;

const METHOD: &str = "/fleet.telemetry.v1.TelemetryIngest/Write";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// No table for the answers' fields, nothing pushed.
const SETTINGS: [u8; 12] = [0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0];
const FRAME_HEAD_BYTES: usize = 9;
const WINDOW: i64 = 65_535;
/// Added to the window of the connection: answers are some bytes each.
const MORE_WINDOW: u32 = 0x7FFF_0000;
const FRAME_BYTES: usize = 16_384;
/// Added to the code of a stream that the peer has reset, to tell it from a status.
const RESET: u16 = 1_000;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS_FRAME: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;
const INITIAL_WINDOW: u16 = 4;
const MAX_FRAME: u16 = 5;
const CANCEL: u32 = 8;

/// A server, and the fields of calls to it.
pub(crate) struct Target {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    key: String,
}

impl Target {
    /// A server whose certificate is of the authority in that PEM file.
    ///
    /// # Errors
    ///
    /// A file without a certificate.
    pub(crate) fn new(address: SocketAddr, authority: &Path, key: &str) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&fs::read(authority)?) {
            roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
        }
        let mut tls = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { address, tls: Arc::new(tls), key: key.to_owned() })
    }
}

/// A warm channel, and messages for it.
pub(crate) struct Channel {
    socket: mio::net::TcpStream,
    tls: ClientConnection,
    blocks: Blocks,
    messages: Recorded,
    incoming: Vec<u8>,
    /// The stream of the call under way, and how much of its message was sent.
    stream: u32,
    body: Vec<u8>,
    sent: usize,
    connection_window: i64,
    stream_window: i64,
    initial_window: i64,
    frame_bytes: usize,
    decoder: Decoder<'static>,
    status: Option<u16>,
}

impl Channel {
    /// # Errors
    ///
    /// An address where nobody listens, or another than the one who should.
    pub(crate) fn open(target: &Target, messages: Recorded) -> io::Result<Self> {
        let mut socket = TcpStream::connect(target.address)?;
        socket.set_nodelay(true)?;
        let name = ServerName::IpAddress(target.address.ip().into());
        let mut tls = ClientConnection::new(target.tls.clone(), name).map_err(io::Error::other)?;
        tls.set_buffer_limit(None);
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        socket.set_nonblocking(true)?;
        let mut channel = Self {
            socket: mio::net::TcpStream::from_std(socket),
            tls,
            blocks: Blocks::of_call(METHOD, &target.address.to_string(), &target.key),
            messages,
            incoming: Vec::new(),
            stream: 0,
            body: Vec::new(),
            sent: 0,
            connection_window: WINDOW,
            stream_window: WINDOW,
            initial_window: WINDOW,
            frame_bytes: FRAME_BYTES,
            decoder: Decoder::new(),
            status: None,
        };
        channel.tls.writer().write_all(PREFACE)?;
        channel.put(SETTINGS_FRAME, 0, 0, &SETTINGS)?;
        channel.put(WINDOW_UPDATE, 0, 0, &MORE_WINDOW.to_be_bytes())?;
        Ok(channel)
    }

    fn put(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        put(&mut self.tls, kind, flags, stream, payload)
    }

    /// Puts as much of the message on its way as the windows let through.
    fn put_body(&mut self) -> io::Result<()> {
        while self.sent < self.body.len() {
            let window = self.connection_window.min(self.stream_window);
            let left = self.body.len() - self.sent;
            let count = left.min(self.frame_bytes).min(usize::try_from(window).unwrap_or(0));
            if count == 0 {
                return Ok(());
            }
            let flags = if count == left { END_STREAM } else { 0 };
            let part = &self.body[self.sent..self.sent + count];
            put(&mut self.tls, DATA, flags, self.stream, part)?;
            self.sent += count;
            let count = i64::try_from(count).expect("within the window");
            self.connection_window -= count;
            self.stream_window -= count;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<()> {
        loop {
            match self.tls.read_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            let state = self.tls.process_new_packets().map_err(io::Error::other)?;
            let filled = self.incoming.len();
            self.incoming.resize(filled + state.plaintext_bytes_to_read(), 0);
            self.tls.reader().read_exact(&mut self.incoming[filled..])?;
        }
    }

    /// Takes the frames that are whole.
    fn take_frames(&mut self) -> io::Result<()> {
        let incoming = std::mem::take(&mut self.incoming);
        let mut rest = incoming.as_slice();
        while let Some((head, behind)) = rest.split_first_chunk::<FRAME_HEAD_BYTES>() {
            let [a, b, c, kind, flags, stream @ ..] = *head;
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            let Some((payload, behind)) = behind.split_at_checked(length) else { break };
            self.take(kind, flags, u32::from_be_bytes(stream) & 0x7FFF_FFFF, payload)?;
            rest = behind;
        }
        self.incoming = rest.to_vec();
        Ok(())
    }

    fn take(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        match kind {
            HEADERS if stream == self.stream && flags & END_STREAM != 0 => {
                let block = fields(flags, payload).ok_or(io::ErrorKind::InvalidData)?;
                self.status = grpc_status(&mut self.decoder, block)?;
                if self.status.is_none() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
            RST_STREAM if stream == self.stream => {
                let code = u16::try_from(word(payload)?).unwrap_or(0);
                self.status = self.status.or(Some(RESET + code));
            }
            SETTINGS_FRAME if flags & ACK == 0 => {
                self.take_settings(payload)?;
                self.put(SETTINGS_FRAME, ACK, 0, &[])?;
            }
            PING if flags & ACK == 0 => self.put(PING, ACK, 0, payload)?,
            WINDOW_UPDATE if stream == 0 => self.connection_window += i64::from(word(payload)?),
            WINDOW_UPDATE if stream == self.stream => {
                self.stream_window += i64::from(word(payload)?);
            }
            GOAWAY => return Err(io::ErrorKind::ConnectionAborted.into()),
            _ => {}
        }
        Ok(())
    }

    fn take_settings(&mut self, payload: &[u8]) -> io::Result<()> {
        for setting in payload.chunks_exact(6) {
            let value = word(&setting[2..])?;
            match u16::from_be_bytes([setting[0], setting[1]]) {
                INITIAL_WINDOW => {
                    self.stream_window += i64::from(value) - self.initial_window;
                    self.initial_window = i64::from(value);
                }
                MAX_FRAME => self.frame_bytes = value as usize,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Connection for Channel {
    fn socket(&mut self) -> &mut mio::net::TcpStream {
        &mut self.socket
    }

    fn begin(&mut self) -> io::Result<()> {
        let block = if self.stream == 0 { &self.blocks.first } else { &self.blocks.later };
        self.stream = if self.stream == 0 { 1 } else { self.stream + 2 };
        put(&mut self.tls, HEADERS, END_HEADERS, self.stream, block)?;
        self.messages.turn();
        let message = self.messages.current();
        self.body.clear();
        self.body.push(0); // not compressed
        let length = u32::try_from(message.len()).map_err(io::Error::other)?;
        self.body.extend_from_slice(&length.to_be_bytes());
        self.body.extend_from_slice(message);
        (self.sent, self.stream_window, self.status) = (0, self.initial_window, None);
        self.put_body()?;
        self.flush()
    }

    fn go_on(&mut self) -> io::Result<Option<u16>> {
        self.receive()?;
        self.take_frames()?;
        if self.status.is_some() && self.sent < self.body.len() {
            self.sent = self.body.len();
            self.put(RST_STREAM, 0, self.stream, &CANCEL.to_be_bytes())?;
        }
        self.put_body()?;
        self.flush()?;
        Ok(self.status.take())
    }
}

fn put(
    tls: &mut ClientConnection,
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?.to_be_bytes();
    let mut head = [0; FRAME_HEAD_BYTES];
    head[..3].copy_from_slice(&length[1..]);
    (head[3], head[4]) = (kind, flags);
    head[5..].copy_from_slice(&stream.to_be_bytes());
    tls.writer().write_all(&head)?;
    tls.writer().write_all(payload)
}

/// The fields of a frame of headers, which must have all of them.
fn fields(flags: u8, mut payload: &[u8]) -> Option<&[u8]> {
    if flags & END_HEADERS == 0 {
        return None;
    }
    if flags & PADDED != 0 {
        let (&padding, rest) = payload.split_first()?;
        payload = rest.get(..rest.len().checked_sub(padding.into())?)?;
    }
    if flags & PRIORITY == 0 { Some(payload) } else { payload.get(5..) }
}

fn word(payload: &[u8]) -> io::Result<u32> {
    let bytes = payload.first_chunk::<4>().ok_or(io::ErrorKind::InvalidData)?;
    Ok(u32::from_be_bytes(*bytes))
}
