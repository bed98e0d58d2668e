use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::Acknowledgement;
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

    fn replace_key(&self, plane: &str, wrapped_key: &[u8]) -> Result<()> {
        self.directory.replace_key(plane, wrapped_key)
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

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_plane_is_opened_once_while_it_grows() {
    let house = House::new(1, 8);
    let plane = house.open("a0");
    let file = File::options().write(true).open(house.folder("a0").join("plane.mdb")).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length + 4096).unwrap();
    assert!(Arc::ptr_eq(&plane, &house.open("a0")));
    assert_eq!(house.openings(), 1);
    // The file was seen at its greater length: a shorter file was cut.
    file.set_len(length).unwrap();
    assert!(!Arc::ptr_eq(&plane, &house.open("a0")));
    assert!(is_closed(&plane));
}

#[test]
fn missing_files_release_the_plane_until_they_are_back() {
    let house = House::new(1, 8);
    let plane = house.open("a0");
    write(&plane, Acknowledgement::Durable);
    fs::rename(house.folder("a0"), house.folder("away")).unwrap();
    for _ in 0..2 {
        assert!(matches!(house.fault("a0"), Error::Missing(_)));
        assert!(is_closed(&plane));
        assert!(house.open.all().is_empty());
    }
    fs::rename(house.folder("away"), house.folder("a0")).unwrap();
    assert_eq!(house.rows("a0"), 1);
}

#[test]
fn what_was_never_there_leaves_nothing_behind() {
    for house in [House::new(0, 8), House::of_a_database(0)] {
        assert!(matches!(house.fault("a0"), Error::Missing(_)));
        assert!(house.open.all().is_empty());
    }
}

#[test]
fn a_copy_put_in_its_place_is_opened_instead() {
    let house = House::new(1, 8);
    let plane = house.open("a0");
    write(&plane, Acknowledgement::Durable);
    copy(&house.folder("a0"), &house.folder("copy"));
    write(&plane, Acknowledgement::Durable);
    fs::remove_dir_all(house.folder("a0")).unwrap();
    fs::rename(house.folder("copy"), house.folder("a0")).unwrap();
    assert_eq!(house.rows("a0"), 1);
    assert!(is_closed(&plane));
    let plane = house.open("a0");
    let (path, new) = (house.folder("a0").join("plane.mdb"), house.folder("a0").join("new"));
    fs::copy(&path, &new).unwrap();
    fs::rename(new, path).unwrap();
    assert_eq!(house.rows("a0"), 1);
    assert!(is_closed(&plane), "one file is enough");
}

#[test]
fn another_key_is_another_plane() {
    let house = House::new(2, 8);
    let plane = house.open("a0");
    fs::copy(house.folder("a1").join("key"), house.folder("a0").join("key")).unwrap();
    assert!(matches!(house.fault("a0"), Error::Corrupt { .. } | Error::Foreign { .. }));
    assert!(is_closed(&plane));
}

#[test]
fn a_damaged_plane_is_opened_again_only_when_its_files_change() {
    let house = House::new(1, 8);
    write(&house.open("a0"), Acknowledgement::Durable);
    house.open.release("a0", None).unwrap();
    let path = house.folder("a0").join("plane.mdb");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, vec![0; whole.len()]).unwrap();
    let first = house.fault("a0").to_string();
    assert_eq!([(); 2].map(|()| house.fault("a0").to_string()), [first.clone(), first]);
    assert_eq!(house.openings(), 2, "it was tried once");
    fs::write(house.folder("a0").join("log").join("other"), "x").unwrap();
    house.fault("a0");
    assert_eq!(house.openings(), 3, "the log has changed");
    fs::remove_file(house.folder("a0").join("log").join("other")).unwrap();
    fs::write(&path, whole).unwrap();
    assert_eq!(house.rows("a0"), 1);
}

#[test]
fn a_damaged_plane_in_a_database_is_left_alone_for_a_while() {
    let house = House::of_a_database(1);
    let path = house.folder("a0").join("plane.mdb");
    fs::write(&path, vec![0; fs::read(&path).unwrap().len()]).unwrap();
    for _ in 0..3 {
        assert!(matches!(house.fault("a0"), Error::Corrupt { .. } | Error::Foreign { .. }));
        house.open.release("a0", None).unwrap();
    }
    assert_eq!(house.openings(), 1);
    house.open.slot("a0").unwrap().turn().damage.as_mut().unwrap().seen =
        slot::PlaneState::At(Instant::now().checked_sub(Duration::from_secs(10)).unwrap());
    house.fault("a0");
    assert_eq!(house.openings(), 2);
}

#[test]
fn files_of_a_database_are_not_looked_at() {
    let house = House::of_a_database(1);
    let plane = house.open("a0");
    fs::remove_dir_all(house.folder("a0")).unwrap();
    assert!(Arc::ptr_eq(&plane, &house.open("a0")));
}

#[test]
fn those_used_last_stay_open() {
    let house = House::new(5, 3);
    for number in 0..5 {
        house.open(&format!("a{number}"));
    }
    assert_eq!(house.opened(), ["a2", "a3", "a4"]);
    house.open("a2");
    house.open("a0");
    assert_eq!(house.opened(), ["a0", "a2", "a4"]);
}

#[test]
fn a_plane_in_use_is_not_closed_for_room() {
    let house = House::new(6, 1);
    let held = house.open("a0");
    let called = house.open("a1").for_a_call().unwrap();
    write(&house.open("a2"), Acknowledgement::Buffered { bytes_max: 1 << 20 });
    for number in 3..6 {
        house.open(&format!("a{number}"));
    }
    assert_eq!(house.opened(), ["a0", "a1", "a2", "a5"]);
    house.close_unused();
    assert_eq!(house.opened(), ["a0", "a1", "a2", "a5"], "too many, but not these");
    drop((held, called));
    let ((account_id, waiting, bytes),) = one(house.open.waiting());
    assert_eq!((account_id.as_str(), bytes > 0), ("a2", true));
    house.open.flush(&account_id, &waiting).unwrap();
    drop(waiting);
    assert!(house.open.waiting().is_empty());
    house.close_unused();
    assert_eq!(house.opened(), ["a5"], "nobody uses them any more");
    assert_eq!(house.rows("a2"), 1);
}

fn one<T>(all: Vec<T>) -> (T,) {
    assert_eq!(all.len(), 1);
    (all.into_iter().next().unwrap(),)
}

#[test]
fn idle_planes_are_closed() {
    let house = House::new(3, 8);
    let held = house.open("a0");
    for account_id in ["a1", "a2"] {
        house.open(account_id);
    }
    house.close_unused();
    assert_eq!(house.opened(), ["a0", "a1", "a2"]);
    house.age("a0");
    house.age("a1");
    house.close_unused();
    assert_eq!(house.opened(), ["a0", "a2"]);
    house.age("a0");
    house.open("a0");
    drop(held);
    house.close_unused();
    assert_eq!(house.opened(), ["a0", "a2"], "it was used again");
}

#[test]
fn a_deleted_plane_is_closed_under_whoever_holds_it() {
    let house = House::new(2, 8);
    let (deleted, _) = (house.open("a0"), house.open("a1"));
    house.counted.destroy("a0").unwrap();
    house.close_unused();
    assert!(is_closed(&deleted));
    assert_eq!(house.opened(), ["a1"]);
    assert!(matches!(house.fault("a0"), Error::Missing(_)));
}

#[test]
fn a_plane_deleted_from_a_database_is_closed_once_that_is_known() {
    let house = House::of_a_database(2);
    let (deleted, _) = (house.open("a0"), house.open("a1"));
    house.close_unused();
    assert_eq!(house.opened(), ["a0", "a1"]);
    house.open.close_unused(|| Some(HashSet::from(["a1".to_owned()])));
    assert!(is_closed(&deleted));
    assert_eq!(house.opened(), ["a1"]);
}

#[test]
fn a_plane_of_an_account_that_was_made_just_now_is_not_taken_for_a_deleted_one() {
    let house = House::of_a_database(2);
    house.open("a0");
    house.open.close_unused(|| {
        let known = HashSet::from(["a0".to_owned()]);
        house.open("a1"); // after the accounts were read
        Some(known)
    });
    assert_eq!(house.opened(), ["a0", "a1"]);
}

#[test]
fn only_the_plane_that_failed_is_released() {
    let house = House::new(1, 8);
    let failed = house.open("a0");
    house.open.release("a0", Some(&failed)).unwrap();
    assert!(is_closed(&failed));
    assert!(house.open.all().is_empty());
    let opened = house.open("a0");
    house.open.release("a0", Some(&failed)).unwrap();
    assert!(Arc::ptr_eq(&opened, &house.open("a0")));
    house.open.release("unknown", None).unwrap();
}

#[test]
fn what_waits_is_stored_before_a_plane_is_closed() {
    let house = House::new(2, 8);
    for account_id in ["a0", "a1"] {
        write(&house.open(account_id), Acknowledgement::Buffered { bytes_max: 1 << 20 });
    }
    house.open.release("a0", None).unwrap();
    assert!(house.open.close().is_empty());
    assert!(house.open.all().is_empty());
    assert_eq!((house.rows("a0"), house.rows("a1")), (1, 1));
}

#[test]
fn a_flush_of_a_plane_that_was_closed_releases_no_other() {
    let house = House::new(1, 8);
    let closed = house.open("a0");
    house.open.release("a0", None).unwrap();
    let opened = house.open("a0");
    assert!(matches!(house.open.flush("a0", &closed), Err(Error::Closed)));
    assert!(!is_closed(&opened));
    opened.close();
    assert!(matches!(house.open.flush("a0", &opened), Err(Error::Closed)));
    assert!(house.open.all().is_empty(), "one that fails is opened anew");
}

#[test]
fn a_slow_opening_stops_nobody_else() {
    let house = House::new(2, 1);
    Plane::create(&*house.counted, "slow", &KEY).unwrap();
    thread::scope(|scope| {
        let slow = scope.spawn(|| house.open("slow"));
        until(&house.counted.slow_has_begun);
        let late = scope.spawn(|| house.open("slow"));
        house.open("a0");
        house.open("a1");
        house.age("slow");
        house.close_unused();
        assert_eq!(house.opened(), ["a1"]);
        assert!(house.open.waiting().is_empty());
        house.counted.slow_may_end.store(true, Ordering::SeqCst);
        assert!(Arc::ptr_eq(&slow.join().unwrap(), &late.join().unwrap()));
    });
    assert_eq!(house.openings(), 3, "one for both who asked for it");
}

#[test]
fn threads_that_need_more_planes_than_may_be_open_disturb_nobody() {
    const ACCOUNTS: usize = 8;
    let house = House::new(ACCOUNTS, 3);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..25 * ACCOUNTS {
                    write(&house.open(&format!("a{}", round % ACCOUNTS)), Acknowledgement::Durable);
                }
            });
        }
        scope.spawn(|| (0..100).for_each(|_| house.close_unused()));
    });
    for number in 0..ACCOUNTS {
        assert_eq!(house.rows(&format!("a{number}")), 75);
    }
}
