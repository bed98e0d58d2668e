//! The parts that all calls of a process share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fleetcast_front::SettingsVersion;
use fleetcast_front::fair::{KeyOwners, Share};
use fleetcast_service::accounting::Accounting;
use fleetcast_service::accounts::Authenticator;
use fleetcast_service::planes::OpenPlanes;
use fleetcast_service::renewed::RenewedValue;
use fleetcast_service::serving::BatchBounds;

use crate::backend::Backend;
use crate::event::{Event, Events};
use crate::status::Statuses;
use crate::workers::Workers;

/// Bound on the concurrent calls of an account, or of an address while a key is looked up.
pub(crate) const CALLS_MAX: u64 = 4_096;
/// Bound on the concurrent calls of an address that need no key.
pub(crate) const KEYLESS_CALLS_MAX: u64 = 512;
/// Longest wait for the lookup of a key. A longer lookup means that the accounts are stuck.
pub(crate) const KEY_PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait for a message. A message of full size takes this long over 1 Mbit/s.
pub(crate) const MESSAGE_PATIENCE: Duration = Duration::from_mins(2);
/// The pause before a client learns that it exceeds its share. A client should wait this long
/// anyway.
pub(crate) const OVER_SHARE_PAUSE: Duration = Duration::from_secs(1);
/// Threads of one account for writes. This many batches can share a commit.
const WRITES_MAX: usize = 32;
/// Threads of one owner for lookups of keys.
const KEY_LOOKUPS_MAX: usize = 2;

/// Rules of the settings in force.
#[derive(Clone, Copy, Debug)]
pub struct WriteRules {
    /// Bounds of a batch.
    pub bounds: BatchBounds,
    /// Bound on the bytes of all messages under way; each account has a share of it.
    pub held_bytes_max: u64,
}

/// The parts that a front is made of.
pub struct ServerParts {
    /// Checks keys.
    pub authenticator: Arc<Authenticator>,
    /// Opens planes.
    pub planes: Arc<OpenPlanes>,
    /// Counts and logs writes.
    pub accounting: Arc<Accounting>,
    /// The index of the gauge of the calls under way.
    pub in_flight: usize,
    /// Statuses of refusals.
    pub statuses: Statuses,
    /// Makes the rules from the settings.
    pub rules: RenewedValue<WriteRules>,
    /// The version of the settings in force.
    pub settings: SettingsVersion,
    /// Paths of the calls that are handed on, with their names in logs and metrics.
    pub handed_on: HashMap<String, Arc<str>>,
    /// Bound on the bytes of a message, packed or unpacked.
    pub message_bytes_max: usize,
    /// Count of the processes that share the cores of this machine, this process included.
    pub processes: usize,
}

/// The state that calls share.
pub struct Server {
    pub(crate) parts: ServerParts,
    pub(crate) backend: Backend,
    pub(crate) events: Events,
    pub(crate) owners: KeyOwners,
    /// Calls by account, or by address while their keys are looked up.
    pub(crate) calls: Arc<Share>,
    /// Lookups of keys, until their threads have finished.
    pub(crate) lookups: Arc<Share>,
    /// Calls without a key, by address.
    pub(crate) keyless: Arc<Share>,
    /// Bytes of messages, by account.
    pub(crate) held_bytes: Arc<Share>,
    pub(crate) key_workers: Workers,
    pub(crate) write_workers: Workers,
}

impl Server {
    /// Makes the state of a front before the server at the Unix socket `backend`.
    #[must_use]
    pub fn new(parts: ServerParts, backend: PathBuf) -> Arc<Self> {
        let processes = parts.processes;
        let workers = |name, max| Workers::new(name, max, processes, &parts.accounting);
        let key_workers = workers("grpc-key", KEY_LOOKUPS_MAX);
        let write_workers = workers("grpc-write", WRITES_MAX);
        Arc::new(Self {
            parts,
            backend: Backend::new(backend),
            events: Events::new(),
            owners: KeyOwners::default(),
            calls: Arc::default(),
            lookups: Arc::default(),
            keyless: Arc::default(),
            held_bytes: Arc::default(),
            key_workers,
            write_workers,
        })
    }

    /// Returns the next events, as [`RunningFront::next_events`](crate::RunningFront::next_events)
    /// does. Call it from one task at a time.
    pub async fn next_events(&self, patience: Duration) -> Vec<Event> {
        self.events.next(patience).await
    }

    /// Returns the rules in force, or `None` if they cannot be made.
    pub(crate) fn rules(&self) -> Option<Arc<WriteRules>> {
        self.parts.rules.get(self.parts.settings.now())
    }
}
