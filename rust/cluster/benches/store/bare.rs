//! The driver alone: one INSERT a block into a table with one index, each a commit, and `SELECT 1`.
//! One thread does all of it, so nothing is handed to another, unless the driver is given its own.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, Statement};

use crate::block;
use crate::schema::Schema;

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
