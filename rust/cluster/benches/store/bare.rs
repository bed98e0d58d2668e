//! The driver alone: one INSERT a block into a table with one index, each a commit, and `SELECT 1`.
//! One thread does all of it, so nothing is handed to another, unless the driver is given its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fleetcast_cluster::{Cluster, Durability, Settings};
use fleetcast_core::storage::seal::random_plane_id;
use futures_util::future::join_all;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, Statement};

use crate::block;

/// Connections of a process that reads share.
const SHARED: usize = 2;

/// Tables of an installation and of the driver, which go with this.
pub(crate) struct Schema {
    url: String,
    name: String,
    objects: tempfile::TempDir,
}

impl Schema {
    pub(crate) fn new(url: &str) -> Self {
        let name = format!("bench{}", random_name());
        let url = url.split('?').next().unwrap_or_default();
        let url = format!("{url}?options=-csearch_path%3D{name}");
        let schema = Self { url, name, objects: tempfile::tempdir().unwrap() };
        schema.process(1).install("bench", b"check").unwrap();
        schema.run(
            "CREATE TABLE bare (id bytea PRIMARY KEY, sealed bytea NOT NULL);
             ALTER TABLE bare ALTER sealed SET STORAGE EXTERNAL",
        );
        schema
    }

    /// The installation as a process has it that can make so many changes at once.
    pub(crate) fn process(&self, changes: usize) -> Arc<Cluster> {
        let settings = Settings {
            database: self.url.clone(),
            connections: SHARED + changes,
            durability: Durability::Quorum,
            objects: Some(format!("file://{}", self.objects.path().display())),
            cache: None,
        };
        Arc::new(Cluster::new(settings).unwrap())
    }

    #[expect(clippy::cast_precision_loss, reason = "a run has fewer batches than that")]
    pub(crate) fn ratio(count: i64, of: i64) -> f64 {
        count as f64 / of as f64
    }

    fn run(&self, sql: &str) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { self.connect().await.batch_execute(sql).await.unwrap() });
    }

    async fn connect(&self) -> Client {
        let url = format!("{}&target_session_attrs=read-write", self.url);
        let (client, link) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(link);
        client
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        self.run(&format!("DROP SCHEMA {} CASCADE", self.name));
    }
}

/// As many connections as there are statements in flight.
pub(crate) struct Bare {
    runtime: Runtime,
    connections: Vec<(Client, Statement, Statement)>,
}

impl Bare {
    pub(crate) fn new(schema: &Schema, in_flight: usize) -> Self {
        Self::on(Builder::new_current_thread().enable_all().build().unwrap(), schema, in_flight)
    }

    /// One connection that another thread than the caller's drives, as in a program with threads.
    pub(crate) fn with_thread(schema: &Schema) -> Self {
        let mut runtime = Builder::new_multi_thread();
        Self::on(runtime.worker_threads(1).enable_all().build().unwrap(), schema, 1)
    }

    fn on(runtime: Runtime, schema: &Schema, in_flight: usize) -> Self {
        let connections = runtime.block_on(join_all((0..in_flight).map(|_| async {
            let client = schema.connect().await;
            let insert = client.prepare("INSERT INTO bare VALUES ($1, $2)").await.unwrap();
            let one = client.prepare("SELECT 1").await.unwrap();
            (client, insert, one)
        })));
        Self { runtime, connections }
    }

    /// Blocks that were inserted within `time`.
    pub(crate) fn append(&self, time: Duration) -> u64 {
        let end = Instant::now() + time;
        let inserting = self.connections.iter().map(|(client, insert, _)| async move {
            let mut done = 0;
            while Instant::now() < end {
                let sealed = block::sealed();
                client.execute(insert, &[&&sealed[2..18], &sealed]).await.unwrap();
                done += 1;
            }
            done
        });
        self.runtime.block_on(join_all(inserting)).iter().sum()
    }

    /// Answers to `SELECT 1` within `time`, one after the other.
    pub(crate) fn select_one(&self, time: Duration) -> u64 {
        let (client, _, one) = &self.connections[0];
        let end = Instant::now() + time;
        let mut done = 0;
        self.runtime.block_on(async {
            while Instant::now() < end {
                client.query(one, &[]).await.unwrap();
                done += 1;
            }
        });
        done
    }

    /// Entries in the log of a plane, and transactions that wrote them.
    pub(crate) fn batches_and_commits(&self, plane: &str) -> (i64, i64) {
        let sql = format!(
            "SELECT count(*), count(DISTINCT xmin::text) FROM log WHERE plane = '{plane}'::uuid"
        );
        let row = self.runtime.block_on(self.connections[0].0.query_one(&sql, &[])).unwrap();
        (row.get(0), row.get(1))
    }
}

/// A name that nothing else has.
pub(crate) fn random_name() -> String {
    let id = u128::from_be_bytes(random_plane_id().unwrap());
    format!("{id:032x}")
}
