//! Connections that end at any byte of a commit or a read.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use fleetcast_cluster::ClusterPlanes;
use fleetcast_core::model::error::Error;
use fleetcast_core::storage::store::testing::{all_names, whole_log};
use fleetcast_core::storage::store::{NewBlock, NewNames, Planes, Store, StoreCounts};

use crate::database::{Database, random_name};
use crate::proxy::{Proxy, Way};

fn sealed(number: u64) -> Vec<u8> {
    [&[1, 1], number.to_le_bytes().as_slice(), &[7; 30]].concat()
}

fn block(number: u64) -> NewBlock {
    let counts = StoreCounts { rows: 3, values: 5, rejected: 1, batches: 1, log_bytes: 0 };
    NewBlock { sealed: sealed(number), counts, cursor: None }
}

/// Calls `call` with numbers from 1 on, each with the connection cut one byte later than before, in
/// both ways, until it ends before the cut. The number of calls. On a connection that stands: `stands`
/// tells if there is one, as one that cannot be made is told as that.
fn cut_everywhere(proxy: &Proxy, stands: impl Fn() -> bool, mut call: impl FnMut(u64)) -> u64 {
    let mut number = 0;
    for way in [Way::ToServer, Way::FromServer] {
        for left in 0.. {
            number += 1;
            while !stands() {}
            proxy.cut_after(way, left);
            call(number);
            if proxy.disarm() {
                break;
            }
        }
    }
    number
}

fn opened(database: &Database, proxy: &Proxy) -> Box<dyn Store> {
    let name = random_name();
    let planes = ClusterPlanes::new(database.installed());
    planes.create(&name, b"wrapped", &mut |_| Ok(())).unwrap();
    ClusterPlanes::new(database.open_behind(proxy.address)).open(&name).unwrap()
}

#[test]
fn a_batch_is_stored_once_wherever_its_connection_ends() {
    let Some(database) = Database::new() else { return };
    let proxy = Proxy::new(&database.primary());
    let store = opened(&database, &proxy);
    store.append(vec![block(0)]).unwrap();
    let append = |number| store.append(vec![block(number)]).unwrap();
    let count = cut_everywhere(&proxy, || store.set_retention(0).is_ok(), append);
    assert!(count > 100, "a commit has more bytes");
    let stored: Vec<_> = whole_log(&*store).into_iter().map(|entry| entry.sealed).collect();
    assert_eq!(stored, (0..=count).map(sealed).collect::<Vec<_>>());
    let counts = store.counts().unwrap();
    assert_eq!((counts.rows, counts.batches), (3 * (count + 1), count + 1));
}

#[test]
fn a_page_of_names_is_stored_once_wherever_its_connection_ends() {
    let Some(database) = Database::new() else { return };
    let proxy = Proxy::new(&database.primary());
    let store = opened(&database, &proxy);
    let append = |number: u64| {
        let names = NewNames { series: 1, fields: Vec::new(), sealed_names: sealed(number) };
        let first = store.append_names(number, &names).unwrap().unwrap();
        assert_eq!(u64::from(first.series), number);
    };
    append(0);
    let count = cut_everywhere(&proxy, || store.set_retention(0).is_ok(), append);
    let pages: Vec<_> = all_names(&*store).into_iter().map(|page| page.sealed_names).collect();
    assert_eq!(pages, (0..=count).map(sealed).collect::<Vec<_>>());
}

#[test]
fn a_read_is_answered_wherever_its_connection_ends() {
    let Some(database) = Database::new() else { return };
    let proxy = Proxy::new(&database.primary());
    let cluster = database.open_behind(proxy.address);
    let stands = || cluster.database_now_us().is_ok();
    let read = |_| assert!(cluster.database_now_us().unwrap() > 0);
    assert!(cut_everywhere(&proxy, stands, read) > 50, "a read has more bytes");
}

#[test]
fn a_reader_that_gets_no_connection_of_its_own_shares_the_one_that_stands() {
    let Some(database) = Database::new() else { return };
    let proxy = Proxy::new(&database.primary());
    let cluster = database.open_behind(proxy.address);
    cluster.database_now_us().unwrap();
    proxy.cut_after(Way::FromServer, 0);
    cluster.database_now_us().unwrap();
    assert!(!proxy.disarm(), "the lone reader's was cut, and the shared one made");
    proxy.fill();
    for _ in 0..3 {
        cluster.database_now_us().unwrap();
    }
}

#[test]
fn a_reader_that_gets_no_connection_leaves_those_of_writers() {
    let Some(database) = Database::new() else { return };
    let proxy = Proxy::new(&database.primary());
    let store = opened(&database, &proxy);
    store.append(vec![block(0)]).unwrap();
    proxy.fill();
    proxy.cut_after(Way::FromServer, 0);
    for _ in 0..3 {
        assert!(matches!(store.counts(), Err(Error::Unavailable { .. })));
    }
    assert!(!proxy.disarm(), "the only one of readers was cut");
    store.append(vec![block(1)]).unwrap();
}

/// Connects of the other one, each of a second and a half.
const ROUNDS: usize = 20;

#[test]
fn while_one_tries_a_database_that_hangs_nobody_else_waits() {
    let Some(database) = Database::new() else { return };
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let cluster = database.open_behind(silent.local_addr().unwrap());
    let is_refused = || matches!(cluster.database_now_us(), Err(Error::Unavailable { .. }));
    assert!(is_refused());
    let _first = silent.accept().unwrap();
    let (ended, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        // At first it is refused at once, as all are for a moment; then it connects.
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                assert!(is_refused());
                ended.fetch_add(1, Ordering::AcqRel);
            }
        });
        // A machine that is slow here may refuse it only after the other one has ended.
        let is_refused_meanwhile = (0..ROUNDS).any(|_| {
            let _next = silent.accept().unwrap();
            let before = ended.load(Ordering::Acquire);
            is_refused() && ended.load(Ordering::Acquire) == before
        });
        is_over.store(true, Ordering::Release);
        assert!(is_refused_meanwhile, "it waits for the other one");
    });
}
