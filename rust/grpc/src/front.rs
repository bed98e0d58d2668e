//! The public interface of the front of one process.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, mpsc as blocking};
use std::task::Poll;
use std::time::Duration;

use rustls::server::Acceptor;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Handle, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::call::CallOrigin;
use crate::certificate::{Certificate, CertificateFiles};
use crate::connection::{self, PREFACE_PATIENCE};
use crate::connections::{ConnectionGuard, Connections};
use crate::event::Event;
use crate::server::{Server, ServerParts};

/// The pause after a connection could not be accepted because descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Sockets and files of a front.
pub struct FrontOptions {
    /// A listening socket, which other processes may share.
    pub listener: OwnedFd,
    /// The certificate.
    pub certificate: CertificateFiles,
    /// The Unix socket of the server behind.
    pub backend: PathBuf,
    /// Bound on the descriptors of the process.
    pub descriptors_max: usize,
}

/// A front that serves until it is stopped.
pub struct RunningFront {
    admission: Runtime,
    messages: Runtime,
    server: Arc<Server>,
    stopping: watch::Sender<bool>,
    /// Yields `None` when all connections have ended.
    ended: Mutex<mpsc::Receiver<()>>,
}

/// The parts that the tasks of a front share.
#[derive(Clone)]
struct Tasks {
    server: Arc<Server>,
    certificate: Arc<Certificate>,
    connections: Arc<Connections>,
    /// The loop of connections with a good key.
    messages: Handle,
    stopping: watch::Receiver<bool>,
    _alive: mpsc::Sender<()>,
}

impl RunningFront {
    /// Starts to serve.
    ///
    /// # Errors
    /// Returns the error of the system call, or an error that names the file if the certificate
    /// cannot be used.
    pub fn start(options: FrontOptions, parts: ServerParts) -> io::Result<Self> {
        let certificate = Arc::new(Certificate::open(options.certificate)?);
        let (admission, messages) = (event_loop("grpc-admission")?, event_loop("grpc-messages")?);
        let server = Server::new(parts, options.backend);
        let (stopping, is_stopping) = watch::channel(false);
        let (alive, ended) = mpsc::channel(1);
        let tasks = Tasks {
            server: Arc::clone(&server),
            certificate,
            connections: Connections::new(options.descriptors_max),
            messages: messages.handle().clone(),
            stopping: is_stopping,
            _alive: alive,
        };
        let listener = std::net::TcpListener::from(options.listener);
        listener.set_nonblocking(true)?;
        let listener = {
            let _entered = admission.enter();
            TcpListener::from_std(listener)?
        };
        admission.spawn(tasks.accept(listener));
        Ok(Self { admission, messages, server, stopping, ended: Mutex::new(ended) })
    }

    /// Waits for the next events. Returns no events if none arrive within `patience`. Calls that
    /// have ended are answered when this function is called again.
    pub fn next_events(&self, patience: Duration) -> Vec<Event> {
        self.messages.block_on(self.server.next_events(patience))
    }

    /// Returns true if each loop runs a task within `patience`.
    #[must_use]
    pub fn is_alive(&self, patience: Duration) -> bool {
        [&self.admission, &self.messages].into_iter().all(|runtime| {
            let (sender, receiver) = blocking::channel();
            runtime.spawn(async move { sender.send(()) });
            receiver.recv_timeout(patience).is_ok()
        })
    }

    /// Stops accepting connections and calls, and waits up to `patience` for calls that have begun.
    /// Then waits for batches that are being written. Events go on in the meantime.
    pub fn stop(&self, patience: Duration) {
        self.stopping.send_replace(true);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.messages.block_on(async { timeout(patience, ended.recv()).await }));
        self.server.key_workers.close();
        self.server.write_workers.close();
    }
}

impl Tasks {
    async fn accept(mut self, listener: TcpListener) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = self.stopping.wait_for(|stopping| *stopping) => return,
            };
            match accepted {
                Ok((socket, peer)) => drop(tokio::spawn(self.clone().serve(socket, peer))),
                Err(_) => sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn serve(self, socket: TcpStream, peer: SocketAddr) {
        let Some(connected) = self.connections.enter(peer.ip()) else { return };
        drop(socket.set_nodelay(true));
        let secured = tokio::select! {
            secured = timeout(PREFACE_PATIENCE, self.secured(socket, &connected)) => secured,
            () = connected.seat.ending() => return,
        };
        let Ok(Ok(stream)) = secured else { return };
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return;
        }
        let of = CallOrigin::new(&self.server, peer, &connected);
        let seat = Arc::clone(&connected.seat);
        let serving = async move {
            connection::serve(stream, of, self.stopping).await;
            connected.pause_after_flood().await;
        };
        connection::admit(serving, &seat, &self.messages).await;
    }

    /// Lets the loop of messages tell when the socket is readable. Its TLS stream keeps the socket.
    fn registered(&self, socket: TcpStream) -> io::Result<TcpStream> {
        let socket = socket.into_std()?;
        let _entered = self.messages.enter();
        TcpStream::from_std(socket)
    }

    /// Shakes hands. The costly part waits for the turn of its address, and then for the turn among
    /// all addresses. Clients that only shake hands thus leave time for messages.
    async fn secured(
        &self,
        socket: TcpStream,
        connected: &ConnectionGuard,
    ) -> io::Result<TlsStream<TcpStream>> {
        socket.readable().await?;
        let socket = self.registered(socket)?;
        let start = LazyConfigAcceptor::new(Acceptor::default(), socket).await?;
        let (config, notice) = self.certificate.current();
        if let Some(notice) = notice {
            self.server.events.tell(notice);
        }
        let mut secured = pin!(start.into_stream(config));
        let first = {
            let _address = connected.handshakes.acquire().await.map_err(io::Error::other)?;
            let _turn = self.connections.handshakes.acquire().await.map_err(io::Error::other)?;
            poll_fn(|context| Poll::Ready(secured.as_mut().poll(context))).await
        };
        match first {
            Poll::Ready(stream) => stream,
            Poll::Pending => secured.await,
        }
    }
}

/// Makes a loop of one thread. More threads would pass pieces of a message between their caches.
fn event_loop(name: &str) -> io::Result<Runtime> {
    runtime::Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build()
}
