//! Connections over memory, with a client of `h2` as the other end. Each test has its own planes
//! and keys.

mod ages;
mod behind;
mod hostile;
mod loops;
mod messages;
mod streams;
mod writes;

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use fleetcast_core::model::error::Error;
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::Plane;
use fleetcast_core::storage::records::{
    MemoryRecords, RecordSnapshot, RecordStore, RecordTransaction, StateMark,
};
use fleetcast_core::storage::store::{DirectoryPlanes, Planes};
use fleetcast_front::SettingsVersion;
use fleetcast_service::accounting::{
    Accounting, Counters, Histogram, Indexes, RequestIndexes, RequestLabels, WriteIndexes,
};
use fleetcast_service::accounts::{ApiKey, Authenticator, Record, SecretHasher, Tenant};
use fleetcast_service::planes::OpenPlanes;
use fleetcast_service::renewed::RenewedValue;
use fleetcast_service::serving::BatchBounds;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use tokio::io::{DuplexStream, duplex};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};

use crate::call::CallOrigin;
use crate::connection;
use crate::connections::Connections;
use crate::event::{EndedCall, Event};
use crate::server::{Server, ServerParts, WriteRules};
use crate::status::{GrpcStatus, Statuses};

const MASTER_KEY: [u8; 32] = [7; 32];
const SECRET: &str = "abcdefghijklmnopabcdefghijklmnop";
const WRITE: &str = "https://x/fleet.telemetry.v1.TelemetryIngest/Write";
const MESSAGE_BYTES_MAX: usize = 1 << 20;
const CPU_INDEX: usize = 20;
const HELD_BYTES_MAX: u64 = 2 << 20;

/// A gate that is open, or stops lookups of keys.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, is_closed: bool) {
        *self.is_closed.lock().unwrap() = is_closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let guard = self.is_closed.lock().unwrap();
        drop(self.opened.wait_while(guard, |is_closed| *is_closed).unwrap());
    }
}

/// Records behind a gate.
struct GatedRecords {
    records: MemoryRecords,
    gate: Arc<Gate>,
}

impl RecordStore for GatedRecords {
    fn place(&self) -> String {
        self.records.place()
    }

    fn begin(&self, writes: bool) -> Result<Box<dyn RecordSnapshot>, Error> {
        self.gate.pass();
        self.records.begin(writes)
    }

    fn mark(&self) -> Result<StateMark, Error> {
        self.records.mark()
    }

    fn renew(&self) -> Result<bool, Error> {
        self.records.renew()
    }
}

struct NoIndexes;

impl Indexes for NoIndexes {
    fn of_requests(&self, _: &RequestLabels) -> Option<RequestIndexes> {
        None
    }

    fn of_cpu(&self, _: &str) -> Option<usize> {
        Some(CPU_INDEX)
    }

    fn of_writes(&self, _: &str) -> Option<WriteIndexes> {
        let seconds = Histogram { bounds: Arc::from([]), buckets: Box::from([]), sum: 9 };
        Some(WriteIndexes {
            accepted: 1,
            rejected: 2,
            clamped: 3,
            no_entity: 4,
            other_measurement: 5,
            commit_seconds: seconds,
        })
    }
}

/// A service of two tenants. A thread notes the calls that have ended.
struct House {
    folder: tempfile::TempDir,
    runtime: Runtime,
    server: Arc<Server>,
    /// The memory of the counters.
    counters: OwnedFd,
    connections: Arc<Connections>,
    stopping: watch::Sender<bool>,
    gate: Arc<Gate>,
    ended: Arc<Mutex<Vec<EndedCall>>>,
    is_over: Arc<AtomicBool>,
    noting: Option<JoinHandle<()>>,
}

fn key(name: char) -> String {
    let text = format!("ftk_sandbox_{}_{SECRET}", String::from(name).repeat(16));
    format!("{text}{:08x}", crc32fast::hash(text.as_bytes()))
}

/// Keys `a` and `b` of tenants with the same names, each with its own account.
fn records() -> MemoryRecords {
    let store = MemoryRecords::default();
    let mut view = RecordTransaction::new(store.begin(true).unwrap());
    let hash = SecretHasher::new(b"").hash(SECRET);
    for name in ['a', 'b'] {
        let key_id = String::from(name).repeat(16);
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
        view.put(Tenant::SPACE, String::from(name).as_bytes(), tenant.as_bytes());
    }
    view.commit().unwrap();
    store
}

fn memory() -> OwnedFd {
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096).unwrap();
    file.into()
}

fn statuses() -> Statuses {
    let known = [
        ("auth_failed", "UNAUTHENTICATED", None),
        ("invalid_input", "INVALID_ARGUMENT", None),
        ("batch_too_large", "RESOURCE_EXHAUSTED", None),
        ("ingest_buffer_full", "RESOURCE_EXHAUSTED", Some(1)),
        ("entitlement_unavailable", "UNAVAILABLE", Some(5)),
        ("telemetry_unavailable", "UNAVAILABLE", Some(5)),
        ("unsupported_encoding", "UNIMPLEMENTED", None),
        ("internal", "INTERNAL", None),
    ];
    let known = known
        .map(|(code, name, retry)| (code.to_owned(), (GrpcStatus::of_name(name).unwrap(), retry)));
    Statuses::new(known.into())
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let planes: Arc<dyn Planes> = Arc::new(DirectoryPlanes::new(folder.path()));
        for account in ["a1", "b1"] {
            Plane::create(&*planes, account, &MASTER_KEY).unwrap();
        }
        let open = OpenPlanes::in_folder(planes, folder.path(), &MASTER_KEY, 9, Duration::MAX);
        let gate = Arc::new(Gate::default());
        let records = GatedRecords { records: records(), gate: Arc::clone(&gate) };
        let memory_of_counters = memory();
        let counters = Counters::map(memory_of_counters.as_fd(), 4096).unwrap();
        let rules = || {
            let batch = WriteLimits::default();
            let bounds = BatchBounds { batch, buffer_bytes_max: None };
            Some(Arc::new(WriteRules { bounds, held_bytes_max: HELD_BYTES_MAX }))
        };
        let parts = ServerParts {
            authenticator: Arc::new(Authenticator::new(Arc::new(records), b"", "sandbox")),
            planes: Arc::new(open),
            accounting: Arc::new(Accounting::new(counters, Box::new(NoIndexes), None, "grpc")),
            in_flight: 0,
            statuses: statuses(),
            rules: RenewedValue::new(Box::new(rules)),
            settings: SettingsVersion::map(&memory()).unwrap(),
            handed_on: HashMap::from([("/behind".to_owned(), "behind".into())]),
            message_bytes_max: MESSAGE_BYTES_MAX,
            processes: 1,
        };
        let server = Server::new(parts, folder.path().join("behind"));
        let (ended, is_over) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let noting = note(&server, &ended, &is_over);
        Self {
            folder,
            runtime: Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap(),
            server,
            counters: memory_of_counters,
            connections: Connections::new(64),
            stopping: watch::channel(false).0,
            gate,
            ended,
            is_over,
            noting: Some(noting),
        }
    }

    /// Returns the other end of a connection, and the task that serves it.
    fn connection(&self) -> (DuplexStream, impl Future<Output = ()> + use<>) {
        let (ours, theirs) = duplex(1 << 20);
        let connected = self.connections.enter("192.0.2.1".parse().unwrap()).unwrap();
        let of = CallOrigin::new(&self.server, "192.0.2.1:5".parse().unwrap(), &connected);
        let (seat, messages) = (Arc::clone(&connected.seat), self.runtime.handle().clone());
        let stopping = self.stopping.subscribe();
        let serving = async move {
            connection::serve(ours, of, stopping).await;
            drop(connected);
        };
        (theirs, async move { connection::admit(serving, &seat, &messages).await })
    }

    /// Returns the other end of a connection that is served.
    fn connect(&self) -> DuplexStream {
        let (theirs, task) = self.connection();
        self.runtime.spawn(task);
        theirs
    }

    /// Returns a client with its own connection.
    async fn client(&self) -> Client {
        Client::over(self.connect()).await
    }

    /// Routes, statuses and codes of the calls that have ended, except writes that were stored.
    fn ended(&self) -> Vec<(String, &'static str, Option<String>)> {
        let ended = self.ended.lock().unwrap();
        ended.iter().map(|e| (e.route.to_string(), e.status, e.error.clone())).collect()
    }
}

fn note(
    server: &Arc<Server>,
    ended: &Arc<Mutex<Vec<EndedCall>>>,
    is_over: &Arc<AtomicBool>,
) -> JoinHandle<()> {
    let (server, ended, is_over) = (Arc::clone(server), Arc::clone(ended), Arc::clone(is_over));
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        while !is_over.load(Ordering::Relaxed) {
            let events = runtime.block_on(server.next_events(Duration::from_millis(10)));
            for event in events {
                if let Event::Ended(call) = event {
                    ended.lock().unwrap().push(*call);
                }
            }
        }
    })
}

impl Drop for House {
    fn drop(&mut self) {
        self.gate.set(false);
        self.is_over.store(true, Ordering::Relaxed);
        self.noting.take().map(JoinHandle::join);
        assert!(self.folder.path().exists());
    }
}

/// A client of one connection.
#[derive(Clone)]
struct Client(SendRequest<Bytes>);

/// Status, details and message of an answer.
type Answer = (GrpcStatus, String, Vec<u8>);

impl Client {
    async fn over(connection: DuplexStream) -> Self {
        let (sender, driver) = h2::client::handshake(connection).await.unwrap();
        tokio::spawn(driver);
        Self(sender)
    }

    /// Begins a call. Returns its answer, and the stream of its body.
    async fn begin(
        &self,
        key: &str,
        fields: &[(&'static str, &str)],
    ) -> (h2::client::ResponseFuture, h2::SendStream<Bytes>) {
        let mut request = Request::post(WRITE)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("x-api-key", key);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let mut ready = self.0.clone().ready().await.unwrap();
        ready.send_request(request.body(()).unwrap(), false).unwrap()
    }

    async fn write(&self, key: &str, message: &[u8]) -> Answer {
        let (response, mut body) = self.begin(key, &[]).await;
        // A call that is refused before its message accepts no data.
        drop(body.send_data(framed(0, message), true));
        answer(response).await
    }
}

async fn answer(response: h2::client::ResponseFuture) -> Answer {
    let (head, mut body) = response.await.unwrap().into_parts();
    let mut message = Vec::new();
    while let Some(data) = body.data().await {
        message.extend_from_slice(&data.unwrap());
    }
    let trailers = body.trailers().await.unwrap().unwrap_or(head.headers);
    let details = crate::status::details(&trailers).unwrap_or_default();
    (GrpcStatus::of_trailers(&trailers), details, message)
}

fn framed(flag: u8, message: &[u8]) -> Bytes {
    let mut framed = BytesMut::new();
    framed.put_u8(flag);
    framed.put_u32(message.len().try_into().unwrap());
    framed.put(message);
    framed.freeze()
}

/// A batch of one record with an entity, at an hour of 2026.
fn batch(value: f64) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| {
        let mut field = vec![number << 3 | 2, bytes.len().try_into().unwrap()];
        field.extend_from_slice(bytes);
        field
    };
    let pair = |name: &str, value: &[u8]| [field(1, name.as_bytes()), field(2, value)].concat();
    let number = [&[1 << 3 | 1][..], &value.to_le_bytes()].concat();
    let time = [&[1 << 3][..], &varint(1_767_225_600)].concat();
    let record = [
        field(1, b"link"),
        field(2, &time),
        field(3, &pair("entity_id", b"e")),
        field(4, &pair("snr_db", &number)),
    ];
    field(1, &record.concat())
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
    bytes
}

/// The trailer that tells when to try again.
fn retry_of(trailers: &HeaderMap) -> Option<&str> {
    trailers.get("grpc-status-details-bin")?.to_str().ok()
}
