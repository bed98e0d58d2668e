//! Reads that miss nothing, also where the reader found nothing new before.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use fleetcast_cluster::ClusterPlanes;
use fleetcast_core::storage::store::{NewBlock, NewNames, Planes, Store};
use proptest::prelude::*;

use crate::database::{Database, random_name};

fn sealed(kind: u8, number: u64) -> Vec<u8> {
    [&[1, kind], number.to_le_bytes().as_slice(), &[7; 20]].concat()
}

fn append(store: &dyn Store, number: u64) {
    let sealed = sealed(1, number);
    store.append(vec![NewBlock { sealed, ..NewBlock::default() }]).unwrap();
}

/// A reader as the engine has one.
struct Reader {
    store: Box<dyn Store>,
    last: u64,
    generation: u64,
    retention_seconds: u64,
    pages: u64,
}

impl Reader {
    fn new(planes: &ClusterPlanes, name: &str) -> Self {
        let store = planes.open(name).unwrap();
        Self { store, last: 0, generation: 0, retention_seconds: 0, pages: 0 }
    }

    fn read(&mut self) {
        let view = self.store.view(self.last, self.generation).unwrap();
        let positions: Vec<u64> = view.entries.iter().map(|entry| entry.sequence).collect();
        let first = self.last.max(view.compacted) + 1;
        assert_eq!(positions, (first..=view.last).collect::<Vec<_>>());
        if view.pages > self.pages {
            let pages = self.store.names_after(self.pages).unwrap();
            self.pages = pages.last().unwrap().sequence;
        }
        assert_eq!(view.manifest.is_some(), view.generation != self.generation);
        (self.last, self.generation) = (view.last.max(self.last), view.generation);
        self.retention_seconds = view.retention_seconds;
    }
}

/// Changes by another process.
#[derive(Clone, Copy, Debug)]
enum Change {
    Block,
    Names,
    Manifest,
    Retention,
    Nothing,
}

fn is_seen_by_the_next_read(database: &Database, changes: &[Change]) {
    let planes = [database.open(), database.open()].map(ClusterPlanes::new);
    let name = random_name();
    planes[0].create(&name, b"wrapped", &mut |_| Ok(())).unwrap();
    let store = planes[0].open(&name).unwrap();
    let mut reader = Reader::new(&planes[1], &name);
    let (mut last, mut pages, mut generation, mut retention) = (0, 0, 0, 0);
    for (number, change) in changes.iter().enumerate() {
        let number = number as u64;
        match change {
            Change::Block => {
                append(&*store, number);
                last += 1;
            }
            Change::Names => {
                let sealed_names = sealed(2, number);
                let names = NewNames { series: 1, fields: Vec::new(), sealed_names };
                assert!(store.append_names(pages, &names).unwrap().is_some());
                pages += 1;
            }
            Change::Manifest => {
                assert!(store.replace_manifest(generation, &sealed(4, number), last).unwrap());
                generation += 1;
            }
            Change::Retention => {
                store.set_retention(number).unwrap();
                retention = number;
            }
            Change::Nothing => {}
        }
        reader.read();
        let seen = (reader.last, reader.generation, reader.retention_seconds);
        assert_eq!(seen, (last, generation, retention));
        assert!(pages == reader.pages || !matches!(change, Change::Block));
    }
}

#[test]
fn each_change_of_one_process_is_in_the_next_read_of_another() {
    let Some(database) = Database::new() else { return };
    database.installed();
    let change = prop_oneof![
        Just(Change::Block),
        Just(Change::Names),
        Just(Change::Manifest),
        Just(Change::Retention),
        Just(Change::Nothing),
        Just(Change::Nothing),
    ];
    let config = ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let outcome = runner.run(&prop::collection::vec(change, 1..30), |changes| {
        is_seen_by_the_next_read(&database, &changes);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn what_was_acknowledged_before_a_read_began_is_in_it() {
    let Some(database) = Database::new() else { return };
    let planes = [database.installed(), database.open()].map(ClusterPlanes::new);
    let name = random_name();
    planes[0].create(&name, b"wrapped", &mut |_| Ok(())).unwrap();
    let (acknowledged, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    let store = planes[0].open(&name).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=300 {
                append(&*store, number);
                acknowledged.store(number, Ordering::SeqCst);
                // Readers of nothing new come between.
                if number % 7 == 0 {
                    thread::yield_now();
                }
            }
            is_done.store(true, Ordering::SeqCst);
        });
        for _ in 0..2 {
            let mut reader = Reader::new(&planes[1], &name);
            let (acknowledged, is_done) = (&acknowledged, &is_done);
            scope.spawn(move || {
                while !is_done.load(Ordering::SeqCst) {
                    let before = acknowledged.load(Ordering::SeqCst);
                    reader.read();
                    assert!(reader.last >= before, "{} of {before}", reader.last);
                }
            });
        }
    });
}
