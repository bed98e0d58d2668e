//! The store on disk: against the store in memory, at its limits, among threads and processes.

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use heed::RwTxn;

use self::child::Child;
use super::opening::plane_path;
use super::{LmdbStore, records};
use crate::model::batch::FieldType;
use crate::model::error::{Error, Result};
use crate::storage::store::{LogEntry, NewBlock, NewNames, Store, StoreCounts};

mod child;

mod damage;
mod killed;
mod opening;
mod peek;
mod pending;
mod readers;
mod space;
mod twin;
mod writers;

fn block(sealed: Vec<u8>) -> NewBlock {
    let counts = StoreCounts { rows: 3, values: 5, rejected: 1, batches: 1, log_bytes: 0 };
    NewBlock { sealed, counts, cursor: None }
}

/// Makes a page with this number of series, and with fields of these types.
fn names(series: u32, fields: &[FieldType]) -> NewNames {
    NewNames { series, fields: fields.to_vec(), sealed_names: vec![7; 5 + fields.len()] }
}

fn whole_log(store: &dyn Store) -> Vec<LogEntry> {
    let mut log: Vec<LogEntry> = Vec::new();
    loop {
        let next = store.log_after(log.last().map_or(0, |entry| entry.sequence)).unwrap();
        if next.is_empty() {
            return log;
        }
        log.extend(next);
    }
}

fn pages_used(store: &LmdbStore) -> usize {
    store.env.info().last_page_number
}

/// Makes a page of one series whose sealed names have this many bytes.
fn large_names(bytes: usize) -> NewNames {
    NewNames { series: 1, fields: Vec::new(), sealed_names: vec![7; bytes] }
}

/// Makes a block of one MiB that names its writer and its number.
fn large_block(writer: u8, number: u8) -> NewBlock {
    let mut sealed = vec![writer ^ number; 1 << 20];
    sealed[..2].copy_from_slice(&[writer, number]);
    block(sealed)
}

/// Work of the child processes of the tests here. Only the tests start it.
#[test]
#[ignore = "a child process of other tests"]
fn child_process() {
    let Some((role, directory)) = Child::role() else { return };
    let alone = match &*role {
        "fill" => Some(space::fill_the_disk as fn(&Path)),
        "limit" => Some(space::reach_the_limit as fn(&Path)),
        _ => None,
    };
    if let Some(work) = alone {
        Child::serve(|_| {
            work(&directory);
            "done".to_owned()
        });
        return;
    }
    let store = LmdbStore::open(&directory).unwrap();
    Child::serve(|order| match order {
        "head" => store.head().unwrap().to_string(),
        "follow" => whole_log(&store).len().to_string(),
        "names" => {
            store.env.read("count", |txn| Ok(store.tables.names.len(txn)?)).unwrap().to_string()
        }
        "add names" => {
            let last = store.env.read("count", |txn| Ok(store.tables.names.len(txn)?)).unwrap();
            store.append_names(last, &large_names(1 << 20)).unwrap().unwrap();
            "done".to_owned()
        }
        "pour" => killed::pour(&store),
        "begin" => store.append_unsynced(vec![block(vec![1])]).unwrap().to_string(),
        "leave" => {
            store.leave(u64::MAX);
            "left".to_owned()
        }
        "append" => {
            (0..3).for_each(|number| store.append(vec![large_block(2, number)]).unwrap());
            "done".to_owned()
        }
        _ => {
            // Reports from inside the transaction, and stays there until the process is killed.
            let held: Result<()> = store.env.read("hold a reader", |txn| {
                store.tables.head(txn)?;
                Child::answer("held");
                loop {
                    thread::park();
                }
            });
            format!("{held:?}")
        }
    });
}
