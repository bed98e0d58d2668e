//! Tables of a measurement, which go with it.

use std::sync::Arc;
use std::time::Duration;

use fleetcast_cluster::{Cluster, Durability, Settings};
use fleetcast_core::storage::seal::random_plane_id;
use tokio::runtime::Builder;
use tokio::time::sleep;
use tokio_postgres::{Client, NoTls};

/// Connections of a process that reads share.
const SHARED: usize = 2;

const IS_YOUNG: &str = "SELECT pg_conf_load_time() > clock_timestamp() - interval '61 seconds'";

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

    /// Waits until the primary has read its settings a minute ago. Before that, two more questions
    /// follow each commit.
    pub(crate) fn settle(&self) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = self.connect().await;
            while client.query_one(IS_YOUNG, &[]).await.unwrap().get(0) {
                sleep(Duration::from_secs(1)).await;
            }
        });
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

    fn run(&self, sql: &str) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { self.connect().await.batch_execute(sql).await.unwrap() });
    }

    /// A connection of the bare driver.
    pub(crate) async fn connect(&self) -> Client {
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

/// A name that nothing else has.
pub(crate) fn random_name() -> String {
    let id = u128::from_be_bytes(random_plane_id().unwrap());
    format!("{id:032x}")
}
