mod closing;
mod opening;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::Acknowledgement;
use fleetcast_core::storage::seal::MasterKey;
use fleetcast_core::storage::store::{DirectoryPlanes, PeekedCounts, Store};
use fleetcast_core::wire::Format;
use tempfile::TempDir;

use super::*;

const KEY: [u8; 32] = [7; 32];
const IDLE: Duration = Duration::from_hours(1);
const BODY: &[u8] = br#"[{"measurement":"link","time":"2026-01-01","fields":{"a":1.0}}]"#;

/// Planes of a directory. Openings are counted; opening `slow` lasts until the test releases it.
struct Counted {
    directory: DirectoryPlanes,
    openings: AtomicUsize,
    slow_has_begun: AtomicBool,
    slow_may_end: AtomicBool,
}

impl Planes for Counted {
    fn create(
        &self,
        plane: &str,
        wrapped_key: &[u8],
        fill: &mut dyn FnMut(&dyn Store) -> Result<()>,
    ) -> Result<()> {
        self.directory.create(plane, wrapped_key, fill)
    }

    fn wrapped_key(&self, plane: &str) -> Result<Vec<u8>> {
        self.directory.wrapped_key(plane)
    }

    fn open(&self, plane: &str) -> Result<Box<dyn Store>> {
        self.openings.fetch_add(1, Ordering::SeqCst);
        if plane == "slow" {
            self.slow_has_begun.store(true, Ordering::SeqCst);
            until(&self.slow_may_end);
        }
        self.directory.open(plane)
    }

    fn replace_key(&self, plane: &str, before: &[u8], wrapped_key: &[u8]) -> Result<bool> {
        self.directory.replace_key(plane, before, wrapped_key)
    }

    fn destroy(&self, plane: &str) -> Result<()> {
        self.directory.destroy(plane)
    }

    fn counts(&self, plane: &str) -> Result<PeekedCounts> {
        self.directory.counts(plane)
    }
}

/// Waits for the condition, at most ten seconds: a failing test must end.
fn until(condition: &AtomicBool) {
    let begin = Instant::now();
    while !condition.load(Ordering::SeqCst) && begin.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(1));
    }
}

struct House {
    directory: TempDir,
    counted: Arc<Counted>,
    open: OpenPlanes,
}

impl House {
    /// Planes `a0`, `a1` and so on.
    fn new(accounts: usize, open_max: usize) -> Self {
        Self::made(accounts, |counted, folder| {
            OpenPlanes::in_folder(counted, folder, &KEY, open_max, IDLE)
        })
    }

    /// The same, treated as planes in a database.
    fn of_a_database(accounts: usize) -> Self {
        Self::made(accounts, |counted, _| OpenPlanes::in_database(counted, &KEY, 8, IDLE))
    }

    fn made(accounts: usize, open: impl FnOnce(Arc<Counted>, &Path) -> OpenPlanes) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let counted = Arc::new(Counted {
            directory: DirectoryPlanes::new(directory.path()),
            openings: AtomicUsize::new(0),
            slow_has_begun: AtomicBool::new(false),
            slow_may_end: AtomicBool::new(false),
        });
        for number in 0..accounts {
            Plane::create(&*counted, &format!("a{number}"), &KEY).unwrap();
        }
        let open = open(counted.clone(), directory.path());
        Self { directory, counted, open }
    }

    fn folder(&self, account_id: &str) -> PathBuf {
        self.directory.path().join(account_id)
    }

    fn open(&self, account_id: &str) -> Arc<OpenPlane> {
        self.open.open(account_id, "acme").unwrap()
    }

    fn fault(&self, account_id: &str) -> Error {
        self.open.open(account_id, "acme").err().expect("it cannot be opened")
    }

    fn rows(&self, account_id: &str) -> u64 {
        self.open(account_id).for_a_call().unwrap().stats().unwrap().counts.rows
    }

    fn openings(&self) -> usize {
        self.counted.openings.load(Ordering::SeqCst)
    }

    /// Accounts whose planes are open.
    fn opened(&self) -> Vec<String> {
        let is_open = |(_, slot): &(_, Arc<PlaneSlot>)| slot.opened().is_some();
        let mut found: Vec<_> = self.open.all().into_iter().filter(is_open).collect();
        found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        found.into_iter().map(|(account_id, _)| account_id.to_string()).collect()
    }

    /// Sets the last use of `account_id` back by the time that makes it idle.
    fn age(&self, account_id: &str) {
        self.open.slot(account_id).unwrap().state().used_at -= IDLE;
    }

    fn close_unused(&self) {
        assert!(self.open.close_unused(|| None).is_empty(), "no flush failed");
    }
}

fn write(plane: &OpenPlane, acknowledge: Acknowledgement) {
    let plane = plane.for_a_call().unwrap();
    plane.write(Format::Json, BODY, &WriteLimits::default(), 1, acknowledge).unwrap();
}

fn is_closed(plane: &OpenPlane) -> bool {
    matches!(plane.for_a_call(), Err(Error::Closed))
}
