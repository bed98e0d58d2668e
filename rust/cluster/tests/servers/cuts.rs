//! Connections that end at any byte of a commit.

use fleetcast_cluster::ClusterPlanes;
use fleetcast_core::storage::store::testing::{all_names, whole_log};
use fleetcast_core::storage::store::{Counts, NewBlock, NewNames, Planes, Store};

use crate::database::{Database, random_name};
use crate::proxy::{Proxy, Way};

fn sealed(number: u64) -> Vec<u8> {
    [&[1, 1], number.to_le_bytes().as_slice(), &[7; 30]].concat()
}

fn block(number: u64) -> NewBlock {
    let counts = Counts { rows: 3, values: 5, rejected: 1, batches: 1, log_bytes: 0 };
    NewBlock { sealed: sealed(number), counts, cursor: None }
}

/// Calls `commit` with numbers from 1 on, each with the connection cut one byte later than before,
/// in both ways, until it ends before the cut. The number of calls.
fn cut_everywhere(proxy: &Proxy, store: &dyn Store, mut commit: impl FnMut(u64)) -> u64 {
    let mut number = 0;
    for way in [Way::ToServer, Way::FromServer] {
        for left in 0.. {
            number += 1;
            // On a connection that stands: one that cannot be made is told as that.
            while store.set_retention(0).is_err() {}
            proxy.cut_after(way, left);
            commit(number);
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
    let count =
        cut_everywhere(&proxy, &*store, |number| store.append(vec![block(number)]).unwrap());
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
    let count = cut_everywhere(&proxy, &*store, append);
    let pages: Vec<_> = all_names(&*store).into_iter().map(|page| page.sealed_names).collect();
    assert_eq!(pages, (0..=count).map(sealed).collect::<Vec<_>>());
}
