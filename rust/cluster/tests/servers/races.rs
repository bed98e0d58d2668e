//! Several processes at the same names and manifests at once.

use std::collections::BTreeSet;
use std::thread;

use fleetcast_cluster::ClusterPlanes;
use fleetcast_core::storage::store::testing::all_names;
use fleetcast_core::storage::store::{NewNames, Planes, Store};

use crate::database::{Database, random_name};

const RACERS: u8 = 4;
const PAGES_EACH: u8 = 50;

fn sealed(racer: u8, number: u8) -> Vec<u8> {
    [&[1, 2, racer, number], [0; 16].as_slice()].concat()
}

fn append_names(store: &dyn Store, racer: u8) {
    let mut last = 0;
    for number in 0..PAGES_EACH {
        let names = NewNames { series: 2, fields: Vec::new(), sealed_names: sealed(racer, number) };
        while store.append_names(last, &names).unwrap().is_none() {
            last = store.names_after(last).unwrap().last().map_or(last, |page| page.sequence);
        }
        last += 1;
    }
}

#[test]
fn racers_append_each_page_of_names_once_and_no_id_twice() {
    let Some(database) = Database::new() else { return };
    let planes = ClusterPlanes::new(database.installed());
    let name = random_name();
    planes.create(&name, b"wrapped", &mut |_| Ok(())).unwrap();
    thread::scope(|scope| {
        for racer in 0..RACERS {
            let planes = ClusterPlanes::new(database.open());
            let name = &name;
            scope.spawn(move || append_names(&*planes.open(name).unwrap(), racer));
        }
    });
    let pages = all_names(&*planes.open(&name).unwrap());
    let all = usize::from(RACERS) * usize::from(PAGES_EACH);
    assert_eq!(pages.len(), all);
    let contents: BTreeSet<_> = pages.iter().map(|page| &page.sealed_names).collect();
    let ids: BTreeSet<_> = pages.iter().flat_map(|page| &page.series).collect();
    assert_eq!((contents.len(), ids.len()), (all, 2 * all));
}

#[test]
fn one_of_several_replaces_a_manifest() {
    let Some(database) = Database::new() else { return };
    let planes = ClusterPlanes::new(database.installed());
    let name = random_name();
    planes.create(&name, b"wrapped", &mut |_| Ok(())).unwrap();
    let won: usize = thread::scope(|scope| {
        let racers = (0..RACERS).map(|racer| {
            let planes = ClusterPlanes::new(database.open());
            let name = &name;
            scope.spawn(move || {
                let store = planes.open(name).unwrap();
                let replace = |generation: u64| {
                    let manifest = sealed(racer, u8::try_from(generation).unwrap());
                    store.replace_manifest(generation, &manifest, 0).unwrap()
                };
                (0..20).filter(|generation| replace(*generation)).count()
            })
        });
        let racers: Vec<_> = racers.collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).sum()
    });
    let generation = planes.open(&name).unwrap().view(0, 0).unwrap().generation;
    assert_eq!(u64::try_from(won).unwrap(), generation);
    assert!(generation > 0);
}
