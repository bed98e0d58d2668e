//! A database of a test's own: a schema with a random name.

use std::sync::Arc;

use fleetcast_cluster::{Cluster, Durability, Settings};
use fleetcast_core::storage::seal::random_plane_id;

/// URL of the database, less its options; `None`, and it says so, where nobody started one.
fn url() -> Option<String> {
    let Ok(url) = std::env::var("DATABASE") else {
        eprintln!("skipped: no DATABASE; run it by `make cluster`");
        return None;
    };
    Some(url.split('?').next().unwrap_or_default().to_owned())
}

/// An installation without tables, of which each call makes another handle.
pub(crate) struct Database {
    url: String,
}

impl Database {
    pub(crate) fn new() -> Option<Self> {
        let url = url()?;
        let schema = format!("t{}", hex(&random_plane_id().expect("random bytes")));
        Some(Self { url: format!("{url}?options=-csearch_path%3D{schema}") })
    }

    /// A handle as another process has it.
    pub(crate) fn open(&self) -> Arc<Cluster> {
        Arc::new(Cluster::new(self.settings()).expect("an address"))
    }

    /// As [`Self::open`], with tables.
    pub(crate) fn installed(&self) -> Arc<Cluster> {
        let cluster = self.open();
        cluster.install("test", b"check").expect("a database");
        cluster
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings { database: self.url.clone(), connections: 4, durability: Durability::Quorum }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("memory");
        text
    })
}
