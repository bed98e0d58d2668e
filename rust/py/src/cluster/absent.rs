//! The cluster of a build without one: it has the same names, and cannot be made.

#![expect(clippy::needless_pass_by_value, reason = "as in the backend")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::records::MemoryRecords;
use fleetcast_core::storage::store::Directory;

pub(super) enum Durability {
    Quorum,
    Managed,
}

#[derive(PartialEq, Eq)]
pub(super) enum Installed {
    New,
}

#[expect(dead_code, reason = "nothing is done with them")]
pub(super) struct Settings {
    pub(super) database: String,
    pub(super) connections: usize,
    pub(super) durability: Durability,
    pub(super) objects: Option<String>,
    pub(super) cache: Option<(PathBuf, u64)>,
}

pub(super) struct Node {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) silent_seconds: f64,
}

pub(super) struct Permissions {
    pub(super) makes_tables: bool,
    pub(super) owns_tables: bool,
    pub(super) sees_replication: bool,
}

pub(super) struct Facts {
    pub(super) version: String,
    pub(super) standbys_wanted: String,
    pub(super) standbys: i64,
    pub(super) bytes: i64,
    pub(super) now_us: i64,
}

/// There is none.
pub(super) enum Cluster {}

impl Cluster {
    pub(super) fn new(_: Settings) -> Result<Self> {
        let message = "this build of fleetcast has no PostgreSQL backend: it was made without the feature `cluster`";
        Err(Error::Invalid { message: message.to_owned() })
    }

    pub(super) fn install(&self, _: &str, _: &[u8]) -> Result<Installed> {
        match *self {}
    }

    pub(super) fn sweep(&self, _: Duration) -> Result<Swept> {
        match *self {}
    }

    pub(super) fn check(&self, _: &str, _: &[u8]) -> Result<()> {
        match *self {}
    }

    pub(super) fn database_now_us(&self) -> Result<i64> {
        match *self {}
    }

    pub(super) fn beat(&self, _: &str, _: &str, _: &str, _: &str) -> Result<bool> {
        match *self {}
    }

    pub(super) fn look(&self, _: &str) -> Result<(i64, Option<String>)> {
        match *self {}
    }

    pub(super) fn permissions(&self) -> Result<Permissions> {
        match *self {}
    }

    pub(super) fn probe_objects(&self) -> Result<bool> {
        match *self {}
    }

    pub(super) fn nodes(&self) -> Result<Vec<Node>> {
        match *self {}
    }

    pub(super) fn facts(&self) -> Result<Option<Facts>> {
        match *self {}
    }
}

pub(super) struct Swept {
    pub(super) hours: u32,
    pub(super) objects: u32,
}

pub(super) enum ClusterPlanes {}

impl ClusterPlanes {
    #[expect(clippy::new_ret_no_self, reason = "there can be none")]
    pub(super) fn new(cluster: Arc<Cluster>) -> Directory {
        match *cluster {}
    }
}

pub(super) enum Records {}

impl Records {
    #[expect(clippy::new_ret_no_self, reason = "there can be none")]
    pub(super) fn new(cluster: Arc<Cluster>, _: &str) -> MemoryRecords {
        match *cluster {}
    }
}

pub(super) enum Replica {}

impl Replica {
    #[expect(clippy::new_ret_no_self, reason = "there can be none")]
    pub(super) fn new(cluster: Arc<Cluster>, _: &str, _: bool) -> MemoryRecords {
        match *cluster {}
    }
}
