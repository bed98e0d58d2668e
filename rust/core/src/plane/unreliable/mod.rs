//! Tests planes of several processes on an engine that fails, forgets and loses leases.

mod store;
mod world;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread;

use proptest::prelude::*;

use self::world::{Fate, Network};
use super::{Acknowledgement, CompactionTrigger, KeyFile, Plane, WriteError};
use crate::model::error::{Error, Result};
use crate::model::limits::WriteLimits;
use crate::model::time::SECOND_NS;
use crate::query::scan::{ScanRequest, json_lines};
use crate::query::{AnswerBounds, SeriesQuery};
use crate::storage::seal::MasterKeys;
use crate::storage::store::Store;
use crate::wire::Format;

const MASTER_KEY: [u8; 32] = [7; 32];
const NOW_NS: i64 = 1_790_000_000 * SECOND_NS;
const PROCESSES: usize = 3;

#[derive(Clone, Debug)]
enum FleetStep {
    /// A process writes a batch.
    Write(usize),
    Read(usize),
    Compact(usize),
    /// A process gives the plane a new data key.
    Rekey(usize),
    /// The lease of compaction expires.
    LoseLease,
    /// The engine fails over, and forgets changes that it acknowledged to no process.
    Fork,
    /// A process ends and another process takes its place.
    Restart(usize),
}

fn step() -> impl Strategy<Value = FleetStep> {
    prop_oneof![
        8 => (0..PROCESSES).prop_map(FleetStep::Write),
        6 => (0..PROCESSES).prop_map(FleetStep::Read),
        3 => (0..PROCESSES).prop_map(FleetStep::Compact),
        1 => (0..PROCESSES).prop_map(FleetStep::Rekey),
        1 => Just(FleetStep::LoseLease),
        2 => Just(FleetStep::Fork),
        1 => (0..PROCESSES).prop_map(FleetStep::Restart),
    ]
}

/// Numbers of batches, by the answer that their writers got.
#[derive(Default)]
struct AnsweredBatches {
    stored: BTreeSet<u32>,
    /// Stored or not. A read may have shown them.
    unknown: BTreeSet<u32>,
}

fn opened(network: &Network) -> Result<Plane> {
    let plane = Plane::open(network, "plane", &MASTER_KEY, "acme")?;
    let keys = MasterKeys::from(&MASTER_KEY);
    plane.follow_key_file(KeyFile::new(Arc::new(network.clone()), "plane", keys));
    Ok(plane)
}

/// Processes that share a plane.
struct Fleet {
    network: Network,
    planes: Vec<Plane>,
    told: AnsweredBatches,
    next: u32,
}

impl Fleet {
    fn new(seed: u64, one_in: u64) -> Self {
        let network = Network::default();
        Plane::create(&network, "plane", &MASTER_KEY).unwrap();
        let open = |_| opened(&network).unwrap();
        let planes = (0..PROCESSES).map(open).collect();
        network.0.seed(seed, one_in);
        Self { network, planes, told: AnsweredBatches::default(), next: 0 }
    }

    /// Opens the plane of a process again, with as many attempts as this takes.
    fn restart(&mut self, process: usize) {
        self.planes[process].close();
        self.planes[process] =
            (0..100).find_map(|_| opened(&self.network).ok()).expect("most calls are answered");
    }

    /// Checks that a process may expect an error, and reopens its plane if necessary.
    fn note(&mut self, process: usize, error: &Error) {
        match error {
            Error::Unavailable { .. } | Error::Unknown { .. } => {}
            Error::Poisoned => self.restart(process),
            other => panic!("{other:?}"),
        }
    }

    fn write(&mut self, process: usize) {
        let number = self.next;
        self.next += 1;
        match write(&self.planes[process], number) {
            Ok(()) => {
                self.told.stored.insert(number);
            }
            Err(error) => {
                if matches!(error, Error::Unknown { .. }) {
                    self.told.unknown.insert(number);
                }
                self.note(process, &error);
            }
        }
    }

    /// Reads all rows and checks them. Every acknowledged row is there once, and other rows are
    /// there only if their writer was left in doubt.
    fn read(&mut self, process: usize) -> Option<BTreeSet<u32>> {
        let seen = match numbers(&self.planes[process]) {
            Ok(seen) => seen,
            Err(error) => {
                self.note(process, &error);
                return None;
            }
        };
        let set: BTreeSet<u32> = seen.iter().copied().collect();
        assert_eq!(set.len(), seen.len(), "a row is there twice: {seen:?}");
        let lost: Vec<_> = self.told.stored.difference(&set).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?} of {set:?}");
        let may_be =
            |number: &u32| self.told.stored.contains(number) || self.told.unknown.contains(number);
        assert!(set.iter().all(may_be), "nobody wrote this: {set:?}");
        Some(set)
    }

    fn take(&mut self, step: &FleetStep) {
        match *step {
            FleetStep::Write(process) => self.write(process),
            FleetStep::Read(process) => {
                self.read(process);
            }
            FleetStep::Compact(process) => {
                if let Err(error) = self.planes[process].compact(CompactionTrigger::Now, NOW_NS) {
                    self.note(process, &error);
                }
            }
            FleetStep::Rekey(process) => {
                if let Err(error) = self.planes[process].rekey() {
                    self.note(process, &error);
                }
            }
            FleetStep::LoseLease => self.network.0.lose_lease(),
            FleetStep::Fork => {
                self.network.0.fork();
            }
            FleetStep::Restart(process) => self.restart(process),
        }
    }
}

/// Returns a batch with one row. Some entities and fields are new, others known.
fn batch(number: u32) -> String {
    format!(
        r#"[{{"measurement":"link","time":"2026-09-01T00:{:02}:{:02}Z",
            "tags":{{"entity_id":"e{}"}},"fields":{{"number":{number},"f{}":1}}}}]"#,
        number / 60 % 60,
        number % 60,
        number % 7,
        number % 11,
    )
}

fn write(plane: &Plane, number: u32) -> Result<()> {
    write_as(plane, number, Acknowledgement::Durable)
}

fn write_as(plane: &Plane, number: u32, acknowledge: Acknowledgement) -> Result<()> {
    let (limits, body) = (WriteLimits::default(), batch(number));
    match plane.write(Format::Json, body.as_bytes(), &limits, NOW_NS, acknowledge) {
        Ok(_) => Ok(()),
        Err(WriteError::Refused(refusal)) => panic!("{refusal:?}"),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Returns the numbers of all rows.
fn numbers(plane: &Plane) -> Result<Vec<u32>> {
    let everything = ScanRequest { end_ns: i64::MAX, ..ScanRequest::default() };
    let mut rows = plane.scan(&everything, NOW_NS)?;
    let mut numbers = Vec::new();
    while let Some(batch) = rows.next_batch()? {
        let (lines, _) = json_lines(&batch, rows.schema(), 0);
        let lines = String::from_utf8(lines).unwrap();
        let after = lines.split("\"number\":").skip(1);
        numbers.extend(
            after.map(|rest| rest.split([',', '.', '}']).next().unwrap().parse::<u32>().unwrap()),
        );
    }
    Ok(numbers)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// An answer to a write holds for every later read of every process: an acknowledged row is
    /// there once, and a row refused as unavailable is not there.
    #[test]
    fn acknowledged_rows_are_read_once_whatever_fails(
        seed in any::<u64>(),
        one_in in prop_oneof![Just(0_u64), 4..40_u64],
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut fleet = Fleet::new(seed, one_in);
        for step in &steps {
            fleet.take(step);
        }
        // From here on no call fails: all processes agree, regardless of earlier failures.
        fleet.network.0.seed(seed, 0);
        let seen: Vec<_> = (0..PROCESSES)
            .map(|process| fleet.read(process).or_else(|| fleet.read(process)).unwrap())
            .collect();
        prop_assert!(seen.iter().all(|set| *set == seen[0]));
        fleet.network.0.lose_lease();
        for plane in &fleet.planes {
            prop_assert!(plane.takes_key_file());
        }
        prop_assert!(fleet.planes[0].compact(CompactionTrigger::Now, NOW_NS).unwrap().is_some());
        prop_assert_eq!(fleet.planes[0].old_key_bytes().unwrap(), None);
        for process in 0..PROCESSES {
            let set = fleet.read(process).unwrap();
            prop_assert_eq!(&set, &seen[0]);
        }
    }
}

/// Calls that arrive before a view begins share it. A read never uses a view that began before the
/// read: rows acknowledged in between would be missing.
#[test]
fn eight_readers_of_a_store_far_away_take_two_views() {
    let mut fleet = Fleet::new(1, 0);
    fleet.write(1);
    let world = Arc::clone(&fleet.network.0);
    let (taken_send, taken) = mpsc::channel();
    let (answer_send, answer) = mpsc::channel::<()>();
    *world.in_view.lock().unwrap() = Some(Box::new(move || {
        taken_send.send(()).unwrap();
        answer.recv().unwrap();
    }));
    world.views.store(0, Ordering::Relaxed);
    let planes = &fleet.planes;
    let count = || numbers(&planes[0]).unwrap().len();
    thread::scope(|scope| {
        let first = scope.spawn(count);
        taken.recv().unwrap();
        write(&planes[1], 100).unwrap();
        let others: Vec<_> = (1..8).map(|_| scope.spawn(count)).collect();
        while planes[0].follower.waiting() < others.len() {
            thread::yield_now();
        }
        answer_send.send(()).unwrap();
        assert!(first.join().unwrap() > 0);
        for other in others {
            assert_eq!(other.join().unwrap(), 2);
        }
    });
    assert_eq!(world.views.load(Ordering::Relaxed), 2);
}

/// A read with news takes one view, and asks for names only if there are new names.
#[test]
fn a_read_with_news_takes_one_round_trip() {
    let mut fleet = Fleet::new(1, 0);
    let world = Arc::clone(&fleet.network.0);
    let calls = || {
        let (views, pages) = (&world.views, &world.pages);
        (views.swap(0, Ordering::Relaxed), pages.swap(0, Ordering::Relaxed))
    };
    fleet.write(0);
    fleet.read(1);
    calls();
    write(&fleet.planes[0], 77).unwrap();
    calls();
    assert_eq!(numbers(&fleet.planes[1]).unwrap().len(), 2);
    assert_eq!(calls(), (1, 0), "of rows with known names");
    numbers(&fleet.planes[1]).unwrap();
    assert_eq!(calls(), (1, 0), "of nothing");
    fleet.write(0);
    calls();
    numbers(&fleet.planes[1]).unwrap();
    assert_eq!(calls(), (1, 2), "of rows with new names: some, and then no more of them");
    fleet.planes[1].answer_latest(None, SECOND_NS, None, NOW_NS).unwrap();
    assert_eq!(calls(), (1, 0), "an answer as of an instant that the log decides");
}

/// Only a read, or a write with a new name, asks for names of other processes: its id and bounds
/// depend on all names. A write of known names and a check whether compaction is due do not ask.
#[test]
fn a_process_that_writes_what_it_knows_follows_no_names() {
    let mut fleet = Fleet::new(1, 0);
    let world = Arc::clone(&fleet.network.0);
    let asked = || world.pages.swap(0, Ordering::Relaxed) > 0;
    fleet.write(0);
    write(&fleet.planes[1], 77).unwrap();
    assert!(asked(), "for the first row of its own");
    // Act as the maintenance process: it keeps no rows, so it follows no names.
    let rested = CompactionTrigger::LargeOrAged { age_ns: SECOND_NS };
    fleet.planes[1].compact(rested, NOW_NS).unwrap().unwrap();
    // Each write has another entity and another field.
    (0..5).for_each(|_| fleet.write(0));
    asked();
    write(&fleet.planes[1], 77).unwrap();
    fleet.planes[1].upcoming(SECOND_NS, NOW_NS).unwrap();
    assert!(!asked());
    write(&fleet.planes[1], 6).unwrap();
    assert!(asked(), "for a name that it brings");
    assert_eq!(numbers(&fleet.planes[2]).unwrap().len(), 9);
    assert!(asked(), "by a read");
}

/// A read announces to the store all segments that it will open, and no segment that is open
/// already.
#[test]
fn segments_that_a_series_needs_are_fetched_together() {
    let mut fleet = Fleet::new(1, 0);
    let world = Arc::clone(&fleet.network.0);
    fleet.write(0);
    fleet.planes[0].compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    let bounds = AnswerBounds { points_max: 10, values_max: 1_000 };
    for fetched in [1, 0] {
        let query = SeriesQuery {
            entity_ids: vec!["e0".to_owned()],
            start_ns: 0,
            end_ns: NOW_NS,
            measurement: "link".to_owned(),
            fields: Vec::new(),
            windows: None,
        };
        fleet.planes[1].series(query, bounds, NOW_NS).unwrap();
        assert_eq!(world.fetched.swap(0, Ordering::Relaxed), fetched);
    }
}

/// A compactor whose lease expired while it worked ends as overtaken. The next compactor does the
/// work.
#[test]
fn a_compactor_that_is_overtaken_leaves_its_work_to_another() {
    let mut fleet = Fleet::new(1, 0);
    (0..3).for_each(|_| fleet.write(1));
    let world = Arc::clone(&fleet.network.0);
    let lost = Arc::clone(&world);
    *world.in_segment.lock().unwrap() = Some(Box::new(move || lost.lose_lease()));
    assert_eq!(fleet.planes[0].compact(CompactionTrigger::Now, NOW_NS).unwrap(), None);
    let done = fleet.planes[2].compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    assert_eq!(done.blocks, 3);
    assert!((0..PROCESSES).all(|process| fleet.read(process).unwrap().len() == 3));
    assert_eq!(world.store().segments().unwrap().len(), 1, "that of the first one is gone");
}

/// Batches that wait in memory keep waiting while the store is away.
#[test]
fn batches_that_wait_outlast_a_store_that_is_away() {
    let fleet = Fleet::new(1, 0);
    let (plane, world) = (&fleet.planes[0], &fleet.network.0);
    write(plane, 0).unwrap();
    for number in [5, 10] {
        write_as(plane, number, Acknowledgement::Buffered { bytes_max: 1 << 20 }).unwrap();
    }
    *world.next.lock().unwrap() = Some(Fate::Unavailable);
    assert!(matches!(plane.flush(), Err(Error::Unavailable { .. })));
    assert_eq!(numbers(&fleet.planes[1]).unwrap(), [0]);
    plane.flush().unwrap();
    assert_eq!(numbers(&fleet.planes[1]).unwrap().len(), 3);
}

/// A process that knows only the old key writes with it until it learns of the new key, and no key
/// that it may write with is dropped.
#[test]
fn a_key_that_a_process_still_seals_with_is_not_dropped() {
    let mut fleet = Fleet::new(1, 0);
    (0..3).for_each(|_| fleet.write(1));
    let compact = |fleet: &Fleet, process: usize| {
        fleet.planes[process].compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
        fleet.planes[process].old_key_bytes().unwrap()
    };
    assert_eq!(fleet.planes[0].rekey().unwrap(), Some(()));
    assert!(fleet.planes[0].old_key_bytes().unwrap() > Some(0));
    fleet.write(1);
    assert_eq!(compact(&fleet, 0), Some(0), "only the names are left");
    fleet.write(1);
    assert_eq!(compact(&fleet, 0), Some(0));
    // A read meets the new key and takes it, and a process takes it when its key file was replaced.
    assert_eq!(fleet.read(1).unwrap().len(), 5);
    assert_eq!(compact(&fleet, 0), Some(0));
    assert!(fleet.planes[2].takes_key_file());
    assert_eq!(compact(&fleet, 0), None);
    (0..PROCESSES).for_each(|process| fleet.write(process));
    assert!((0..PROCESSES).all(|process| fleet.read(process).unwrap().len() == 8));
}

/// The view names a segment that can still be read, or has blocks of the log. Their key is gone.
#[test]
fn a_read_that_a_whole_turn_overtakes_reads_the_newest_segments() {
    for is_compacted in [true, false] {
        let mut fleet = Fleet::new(1, 0);
        (0..3).for_each(|_| fleet.write(0));
        let reader = opened(&fleet.network).unwrap();
        if is_compacted {
            fleet.planes[0].compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
            reader.follow().unwrap();
        }
        let (compactor, reader) = (opened(&fleet.network).unwrap(), Arc::new(reader));
        let follower = Arc::clone(&reader);
        fleet.planes.clear();
        *fleet.network.0.in_view.lock().unwrap() = Some(Box::new(move || {
            compactor.rekey().unwrap().unwrap();
            assert!(follower.takes_key_file());
            compactor.compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
            assert_eq!(compactor.old_key_bytes().unwrap(), None);
            assert!(follower.takes_key_file());
        }));
        assert_eq!(numbers(&reader).unwrap().len(), 3);
    }
}

/// Batches that were acknowledged before they are durable are sealed with the key of the flush.
#[test]
fn a_batch_that_waits_outlasts_the_key_of_its_time() {
    let mut fleet = Fleet::new(1, 0);
    fleet.write(0);
    write_as(&fleet.planes[1], 5, Acknowledgement::Buffered { bytes_max: 1 << 20 }).unwrap();
    fleet.planes[0].rekey().unwrap().unwrap();
    fleet.planes.iter().for_each(|plane| assert!(plane.takes_key_file()));
    fleet.planes[0].compact(CompactionTrigger::Now, NOW_NS).unwrap().unwrap();
    assert_eq!(fleet.planes[0].old_key_bytes().unwrap(), None);
    fleet.planes[1].flush().unwrap();
    fleet.planes[0] = opened(&fleet.network).unwrap();
    assert_eq!(numbers(&fleet.planes[0]).unwrap().len(), 2);
}
