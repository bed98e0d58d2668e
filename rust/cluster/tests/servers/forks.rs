//! Histories that forked: a database that has something else where a handle was shown something.

use fleetcast_cluster::ClusterPlanes;
use fleetcast_core::model::error::Error;
use fleetcast_core::storage::store::{NewBlock, NewNames, Planes, Store};

use crate::database::{Database, random_name};

fn sealed(number: u8) -> Vec<u8> {
    [&[1, 1, number], [0; 20].as_slice()].concat()
}

fn block(number: u8) -> Vec<NewBlock> {
    vec![NewBlock { sealed: sealed(number), ..NewBlock::default() }]
}

/// A handle that was shown a block, a page of names and a manifest, and its plane.
fn shown() -> Option<(Database, Box<dyn Store>, String)> {
    let database = Database::new()?;
    let planes = ClusterPlanes::new(database.installed());
    let name = random_name();
    planes.create(&name, b"wrapped", &mut |_| Ok(())).unwrap();
    let store = planes.open(&name).unwrap();
    let names = NewNames { series: 1, fields: Vec::new(), sealed_names: sealed(9) };
    store.append_names(0, &names).unwrap().unwrap();
    store.append(block(1)).unwrap();
    assert!(store.replace_manifest(0, &sealed(8), 0).unwrap());
    assert_eq!(store.view(0, 0).unwrap().entries.len(), 1);
    Some((database, store, name))
}

/// Such a handle after `change` of the database, and one that was opened then.
fn after(change: &str) -> Option<(Box<dyn Store>, Box<dyn Store>)> {
    let (database, store, name) = shown()?;
    database.run(change);
    let anew = ClusterPlanes::new(database.open()).open(&name).unwrap();
    Some((store, anew))
}

#[test]
fn a_reader_that_was_shown_what_is_undone_ends() {
    let changes = [
        "UPDATE log SET id = gen_random_uuid()",
        "DELETE FROM log; UPDATE head SET last = 0",
        "UPDATE names SET id = gen_random_uuid()",
        "UPDATE plane SET generation = 0, manifest = NULL",
        "UPDATE plane SET manifest = manifest || manifest, generation = 1; UPDATE plane SET manifest = decode('0104', 'hex') || manifest",
    ];
    for change in changes {
        let Some((store, anew)) = after(change) else { return };
        let view = store.view(1, 1);
        assert!(matches!(view, Err(Error::Poisoned)), "{change}: {view:?}");
        assert!(matches!(store.append(block(2)), Err(Error::Poisoned)));
        anew.append(block(3)).unwrap();
        assert!(!anew.view(0, 0).unwrap().entries.is_empty());
    }
}

/// As above, for one whose last read found nothing new: it looks at the numbers alone, beside which
/// the ids stand that one commit gives both.
#[test]
fn a_reader_who_had_seen_everything_ends_as_well() {
    let changes = [
        "UPDATE log SET id = gen_random_uuid(); UPDATE head SET last_id = (SELECT id FROM log)",
        "DELETE FROM log; UPDATE head SET last = 0, last_id = NULL",
        "UPDATE names SET id = gen_random_uuid(); UPDATE plane SET page_id = (SELECT id FROM names)",
        "DELETE FROM names; UPDATE plane SET pages = 0, page_id = NULL",
        "UPDATE plane SET generation = 0, manifest = NULL, manifest_id = NULL",
        "UPDATE plane SET manifest = decode('0104', 'hex') || manifest, manifest_id = gen_random_uuid()",
    ];
    for change in changes {
        let Some((database, store, _)) = shown() else { return };
        assert!(store.view(1, 1).unwrap().entries.is_empty());
        database.run(change);
        let view = store.view(1, 1);
        assert!(matches!(view, Err(Error::Poisoned)), "{change}: {view:?}");
    }
}

#[test]
fn a_writer_whose_names_are_others_by_now_stores_nothing() {
    let Some((store, anew)) = after("UPDATE names SET id = gen_random_uuid()") else { return };
    assert!(matches!(store.append(block(2)), Err(Error::Poisoned)));
    assert_eq!(anew.head().unwrap(), 1);
}
