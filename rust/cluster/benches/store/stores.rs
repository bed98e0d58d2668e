//! Planes of both stores, written and read as the engine does it.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fleetcast_cluster::{Cluster, ClusterPlanes};
use fleetcast_core::storage::store::{DirectoryPlanes, NewNames, Planes, Store};

use crate::block;
use crate::schema::{Schema, random_name};

/// A plane in PostgreSQL, with names, as every plane that has rows.
pub(crate) struct SharedPlane(String);

impl SharedPlane {
    pub(crate) fn new(schema: &Schema) -> Self {
        let name = random_name();
        make(&ClusterPlanes::new(schema.process(1)), &name);
        Self(name)
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    pub(crate) fn open(&self, process: &Arc<Cluster>) -> Box<dyn Store> {
        opened(&ClusterPlanes::new(Arc::clone(process)), &self.0)
    }
}

/// A plane in files.
pub(crate) struct EmbeddedPlane(tempfile::TempDir);

impl EmbeddedPlane {
    pub(crate) fn new() -> Self {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        let folder = tempfile::tempdir_in(target).unwrap();
        make(&DirectoryPlanes::new(folder.path()), "plane");
        Self(folder)
    }

    pub(crate) fn open(&self) -> Box<dyn Store> {
        opened(&DirectoryPlanes::new(self.0.path()), "plane")
    }
}

fn make(planes: &dyn Planes, name: &str) {
    let names = NewNames { series: 1, fields: Vec::new(), sealed_names: block::sealed() };
    let fill = &mut |store: &dyn Store| store.append_names(0, &names).map(drop);
    planes.create(name, b"wrapped", fill).unwrap();
}

/// A handle that knows the names, which each append compares.
fn opened(planes: &dyn Planes, name: &str) -> Box<dyn Store> {
    let store = planes.open(name).unwrap();
    assert_eq!(store.names_after(0).unwrap().len(), 1);
    store
}

/// Blocks that so many writers appended within `time`, each with one handle of these.
pub(crate) fn append(stores: &[Box<dyn Store>], writers: usize, time: Duration) -> u64 {
    let end = Instant::now() + time;
    let write = |store: &dyn Store| {
        let mut done = 0;
        while Instant::now() < end {
            store.append(vec![block::new()]).unwrap();
            done += 1;
        }
        done
    };
    thread::scope(|scope| {
        let writers = stores.iter().cycle().take(writers);
        let writers: Vec<_> = writers.map(|store| scope.spawn(|| write(&**store))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    })
}

/// Views within `time` of one who has read all there is, one after the other.
pub(crate) fn view(store: &dyn Store, time: Duration) -> u64 {
    let mut last = 0;
    while let Some(entry) = store.view(last, 0).unwrap().entries.last() {
        last = entry.sequence;
    }
    let end = Instant::now() + time;
    let mut done = 0;
    while Instant::now() < end {
        assert!(store.view(last, 0).unwrap().entries.is_empty());
        done += 1;
    }
    done
}
