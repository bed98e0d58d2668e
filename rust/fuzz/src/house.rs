//! A gRPC server whose connections, keys and planes are in memory. Behind it is a server that sends
//! each message back.

use std::cell::Cell;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::Plane;
use fleetcast_core::storage::records::{MemoryRecords, RecordStore, RecordTransaction};
use fleetcast_core::storage::store::{MemoryStore, PeekedCounts, Planes, Store};
use fleetcast_front::SettingsVersion;
use fleetcast_grpc::{CallOrigin, Connections, Server, ServerParts, Statuses, WriteRules, serve};
use fleetcast_service::accounting::{
    Accounting, Counters, Indexes, RequestIndexes, RequestLabels, WriteIndexes,
};
use fleetcast_service::accounts::{ApiKey, Authenticator, Record, SecretHasher, Tenant};
use fleetcast_service::planes::OpenPlanes;
use fleetcast_service::renewed::RenewedValue;
use fleetcast_service::serving::BatchBounds;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use rustix::stdio::dup2_stderr;
use tempfile::TempDir;
use tokio::io::{DuplexStream, duplex};
use tokio::net::UnixListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

pub(crate) const WRITE: &str = "/fleet.telemetry.v1.TelemetryIngest/Write";
pub(crate) const SENT_BACK: &str = "/sent/back";
/// Small, so that inputs reach this limit.
pub(crate) const MESSAGE_BYTES_MAX: usize = 2_048;
/// More than all streams of a connection hold: a refusal for a full share would wait for a second.
const HELD_BYTES_MAX: u64 = 1 << 30;
const SECRET: &str = "abcdefghijklmnopabcdefghijklmnop";
const MASTER_KEY: [u8; 32] = [7; 32];
const ACCOUNTS: [&str; 2] = ["a1", "b1"];
const PEER: &str = "192.0.2.1:5";
const PIPE_BYTES: usize = 64 << 10;
const PAGE_BYTES: usize = 4_096;
/// Longest run: a run that takes longer is taken to hang.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// The server.
pub(crate) struct House {
    runtime: Runtime,
    server: Arc<Server>,
    planes: Arc<OpenPlanes>,
    connections: Arc<Connections>,
    stopping: watch::Sender<bool>,
    /// Folder of the socket.
    _folder: TempDir,
    /// Uses of the server while no call is under way.
    uses: usize,
}

thread_local! {
    static HOUSE: Cell<Option<House>> = const { Cell::new(None) };
}

/// Runs `work` on a server and awaits the end of all calls. The server is kept for the next run,
/// unless a call failed. Its planes are empty in each run.
pub(crate) fn run<F: Future<Output = ()>>(work: impl FnOnce(Arc<House>) -> F) {
    let _muted = Muted::new();
    let house = Arc::new(HOUSE.take().unwrap_or_else(House::new));
    house.run(work(Arc::clone(&house)));
    HOUSE.set(Arc::into_inner(house));
}

/// Discards the text that is written to stderr: the server logs each write.
struct Muted(OwnedFd);

impl Muted {
    fn new() -> Self {
        let stderr = io::stderr().as_fd().try_clone_to_owned().expect("a descriptor");
        let (_, nowhere) = io::pipe().expect("two descriptors");
        dup2_stderr(nowhere).expect("it is open");
        Self(stderr)
    }
}

impl Drop for Muted {
    fn drop(&mut self) {
        dup2_stderr(&self.0).expect("it is open");
    }
}

impl House {
    /// Makes a server without connections, with a tenant for each of [`key`] `a` and `b`.
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a poller");
        let stored: Arc<dyn Planes> = Arc::new(MemoryPlanes::default());
        for account in ACCOUNTS {
            Plane::create(&*stored, account, &MASTER_KEY).expect("memory");
        }
        let planes = Arc::new(OpenPlanes::in_database(stored, &MASTER_KEY, 9, Duration::MAX));
        let counters = Counters::map(memory().as_fd(), PAGE_BYTES).expect("memory");
        let parts = ServerParts {
            authenticator: Arc::new(Authenticator::new(Arc::new(records()), b"", "sandbox")),
            planes: Arc::clone(&planes),
            accounting: Arc::new(Accounting::new(counters, Box::new(Uncounted), None, "grpc")),
            in_flight: 0,
            statuses: Statuses::new(HashMap::new()),
            rules: RenewedValue::new(Box::new(|| Some(Arc::new(rules())))),
            settings: SettingsVersion::map(&memory()).expect("memory"),
            handed_on: HashMap::from([(SENT_BACK.to_owned(), "sent/back".into())]),
            message_bytes_max: MESSAGE_BYTES_MAX,
            processes: 1,
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("behind");
        let listener = {
            let _entered = runtime.enter();
            UnixListener::bind(&path).expect("a socket in a new folder")
        };
        runtime.spawn(send_back(listener));
        let server = Server::new(parts, path);
        runtime.spawn(note_all(Arc::clone(&server)));
        let (connections, stopping) = (Connections::new(64), watch::channel(false).0);
        let uses = Arc::strong_count(&server);
        Self { runtime, server, planes, connections, stopping, _folder: folder, uses }
    }

    fn run(&self, work: impl Future<Output = ()>) {
        self.runtime.block_on(async {
            timeout(PATIENCE, work).await.expect("a connection that neither goes on nor ends");
            timeout(PATIENCE, self.idle()).await.expect("a call that outlives its connection");
        });
        for account in ACCOUNTS {
            self.planes.release(account, None).expect("memory");
        }
    }

    async fn idle(&self) {
        while Arc::strong_count(&self.server) > self.uses {
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Returns the other end of a new connection. Call it within [`run`].
    pub(crate) fn connect(&self) -> DuplexStream {
        let (ours, theirs) = duplex(PIPE_BYTES);
        let peer: SocketAddr = PEER.parse().expect("an address");
        let connected = self.connections.enter(peer.ip()).expect("room for it");
        let of = CallOrigin::new(&self.server, peer, &connected);
        let stopping = self.stopping.subscribe();
        tokio::spawn(async move {
            serve(ours, of, stopping).await;
            drop(connected);
        });
        theirs
    }
}

/// Returns the key of the tenant `name`.
pub(crate) fn key(name: char) -> String {
    let text = format!("ftk_sandbox_{}_{SECRET}", String::from(name).repeat(16));
    format!("{text}{:08x}", crc32fast::hash(text.as_bytes()))
}

fn rules() -> WriteRules {
    let bounds = BatchBounds { batch: WriteLimits::default(), buffer_bytes_max: None };
    WriteRules { bounds, held_bytes_max: HELD_BYTES_MAX }
}

fn memory() -> OwnedFd {
    let file = tempfile::tempfile().expect("a file");
    file.set_len(PAGE_BYTES as u64).expect("room for it");
    file.into()
}

fn records() -> MemoryRecords {
    let store = MemoryRecords::default();
    let mut view = RecordTransaction::new(store.begin(true).expect("memory"));
    let hash = SecretHasher::new(b"").hash(SECRET);
    for name in ["a", "b"] {
        let key_id = name.repeat(16);
        let key = format!(
            r#"{{"key_id":"{key_id}","tenant":"{name}","name":"","scopes":["telemetry:write"],
            "environment":"sandbox","created_at":1,"expires_at":null,"revoked_at":null,
            "hash":"{hash}"}}"#
        );
        view.put(ApiKey::SPACE, key_id.as_bytes(), key.as_bytes());
        let tenant = format!(
            r#"{{"name":"{name}","account_id":"{name}1","plan":"pro","live_ingest":true,
            "retention_seconds":null,"disabled":false,"created_at":1}}"#
        );
        view.put(Tenant::SPACE, name.as_bytes(), tenant.as_bytes());
    }
    view.commit().expect("memory");
    store
}

struct Uncounted;

impl Indexes for Uncounted {
    fn of_requests(&self, _: &RequestLabels) -> Option<RequestIndexes> {
        None
    }

    fn of_cpu(&self, _: &str) -> Option<usize> {
        None
    }

    fn of_writes(&self, _: &str) -> Option<WriteIndexes> {
        None
    }
}

/// Planes by their wrapped keys. Each plane is empty when it is opened.
#[derive(Default)]
struct MemoryPlanes(Mutex<HashMap<String, Vec<u8>>>);

impl MemoryPlanes {
    fn keys(&self) -> MutexGuard<'_, HashMap<String, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Planes for MemoryPlanes {
    fn create(
        &self,
        plane: &str,
        wrapped_key: &[u8],
        _: &mut dyn FnMut(&dyn Store) -> Result<()>,
    ) -> Result<()> {
        self.keys().insert(plane.to_owned(), wrapped_key.to_vec());
        Ok(())
    }

    fn wrapped_key(&self, plane: &str) -> Result<Vec<u8>> {
        self.keys().get(plane).cloned().ok_or_else(|| Error::Missing(plane.to_owned()))
    }

    fn open(&self, _: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(MemoryStore::default()))
    }

    fn replace_key(&self, plane: &str, before: &[u8], wrapped_key: &[u8]) -> Result<bool> {
        let is_same = self.wrapped_key(plane)? == before;
        if is_same {
            self.keys().insert(plane.to_owned(), wrapped_key.to_vec());
        }
        Ok(is_same)
    }

    fn destroy(&self, plane: &str) -> Result<()> {
        self.keys().remove(plane);
        Ok(())
    }

    fn counts(&self, plane: &str) -> Result<PeekedCounts> {
        Err(Error::Missing(plane.to_owned()))
    }
}

/// Takes the events of ended calls: their answers wait for it.
async fn note_all(server: Arc<Server>) {
    loop {
        drop(server.next_events(PATIENCE).await);
    }
}

/// The server behind the front: it sends each message back.
async fn send_back(listener: UnixListener) {
    while let Ok((socket, _)) = listener.accept().await {
        tokio::spawn(async move {
            // A single connection serves all runs: no number of small frames or resets ends it.
            let mut builder = h2::server::Builder::new();
            builder.max_pending_accept_reset_streams(usize::MAX).data_frame_budget(usize::MAX);
            let Ok(mut connection) = builder.handshake(socket).await else { return };
            while let Some(Ok((request, answer))) = connection.accept().await {
                tokio::spawn(send_back_one(request, answer));
            }
        });
    }
}

async fn send_back_one(
    request: Request<RecvStream>,
    mut answer: SendResponse<Bytes>,
) -> Option<()> {
    let head = Response::builder().header("content-type", "application/grpc").body(()).ok()?;
    let mut stream = answer.send_response(head, false).ok()?;
    let mut body = request.into_body();
    while let Some(data) = body.data().await {
        let data = data.ok()?;
        body.flow_control().release_capacity(data.len()).ok()?;
        // `h2` accepts 100 empty frames on a connection.
        if !data.is_empty() {
            stream.send_data(data, false).ok()?;
        }
    }
    let trailers = HeaderMap::from_iter([("grpc-status".parse().ok()?, "0".parse().ok()?)]);
    stream.send_trailers(trailers).ok()
}
