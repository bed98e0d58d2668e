//! The store of the cluster beside the one in memory, step by step.

use std::sync::Arc;

use fleetcast_cluster::{Cluster, ClusterPlanes};
use fleetcast_core::storage::store::testing::{self, Subject};
use fleetcast_core::storage::store::{Planes, Store};
use proptest::prelude::*;

use crate::database::{Database, random_name};

struct Clustered {
    planes: ClusterPlanes,
    name: String,
    store: Box<dyn Store>,
}

impl Clustered {
    fn new(cluster: &Arc<Cluster>) -> Self {
        let planes = ClusterPlanes::new(Arc::clone(cluster));
        let name = random_name();
        planes.create(&name, b"wrapped", &mut |_| Ok(())).unwrap();
        let store = planes.open(&name).unwrap();
        Self { planes, name, store }
    }
}

impl Subject for Clustered {
    const SHOWS_LEFT: bool = false;
    const READS_REMOVED: bool = true;

    fn store(&self) -> &dyn Store {
        &*self.store
    }

    fn reopen(&mut self) {
        self.store.close();
        self.store = self.planes.open(&self.name).unwrap();
    }
}

#[test]
fn cluster_and_twin_answer_alike() {
    let Some(database) = Database::new() else { return };
    let cluster = database.installed();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let outcome = runner.run(&testing::steps(), |steps| {
        testing::answer_alike(&mut Clustered::new(&cluster), steps)
    });
    outcome.unwrap();
}
