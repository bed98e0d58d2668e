//! A database of a test's own: a schema with a random name.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use fleetcast_cluster::{Cluster, Durability, Settings};
use fleetcast_core::storage::seal::random_plane_id;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, SimpleQueryMessage};

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
    objects: String,
    /// Folder of the objects.
    directory: tempfile::TempDir,
}

/// A session that ends when this value is dropped, and its answers.
pub(crate) struct HeldSession {
    answers: Vec<SimpleQueryMessage>,
    _client: Client,
    _runtime: Runtime,
}

impl Database {
    pub(crate) fn new() -> Option<Self> {
        let url = url()?;
        let schema = format!("t{}", hex(&random_plane_id().expect("random bytes")));
        let directory = tempfile::tempdir().expect("a directory");
        let objects = format!("file://{}/objects", directory.path().display());
        Some(Self { objects, directory, url: format!("{url}?options=-csearch_path%3D{schema}") })
    }

    /// A handle as another process has it.
    pub(crate) fn open(&self) -> Arc<Cluster> {
        Arc::new(Cluster::new(self.settings()).expect("an address"))
    }

    /// As [`Self::open`], with a proxy in place of the hosts.
    pub(crate) fn open_behind(&self, proxy: SocketAddr) -> Arc<Cluster> {
        let mut settings = self.settings();
        let (user, rest) = settings.database.split_once('@').expect("a user");
        let (_, path) = rest.split_once('/').expect("a database");
        settings.database = format!("{user}@{proxy}/{path}");
        Arc::new(Cluster::new(settings).expect("an address"))
    }

    /// Address of the first host, which is the primary as long as no test replaces it.
    pub(crate) fn primary(&self) -> String {
        let hosts = self.url.split('@').nth(1).expect("hosts");
        hosts.split([',', '/']).next().expect("a host").to_owned()
    }

    /// As [`Self::open`], with tables.
    pub(crate) fn installed(&self) -> Arc<Cluster> {
        let cluster = self.open();
        cluster.install("test", b"check").expect("a database");
        cluster
    }

    /// Runs statements beside the program. Returns the first value of the first row, if there is
    /// one.
    pub(crate) fn run(&self, sql: &str) -> Option<String> {
        self.hold(sql).answers.iter().find_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
    }

    /// Runs statements in a session that stays open with the result.
    pub(crate) fn hold(&self, sql: &str) -> HeldSession {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (client, answers) = runtime.block_on(async {
            let url = format!("{}&target_session_attrs=read-write", self.url);
            let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
            let (client, link) = connected.expect("a primary");
            tokio::spawn(link);
            let answers = client.simple_query(sql).await.expect("a statement");
            (client, answers)
        });
        HeldSession { answers, _client: client, _runtime: runtime }
    }

    /// Folder of the objects.
    pub(crate) fn objects(&self) -> PathBuf {
        self.directory.path().join("objects")
    }

    /// Settings with the S3 server in place of the folder; `None`, and it says so, without one.
    pub(crate) fn with_s3(&self) -> Option<Settings> {
        let Ok(url) = std::env::var("OBJECTS") else {
            eprintln!("skipped: no OBJECTS; run it by `make cluster`");
            return None;
        };
        let (bucket, options) = url.split_once('?').expect("an endpoint");
        let objects = Some(format!("{bucket}/{}?{options}", random_name()));
        Some(Settings { objects, ..self.settings() })
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            database: self.url.clone(),
            connections: 4,
            durability: Durability::Quorum,
            objects: Some(self.objects.clone()),
            cache: None,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("memory");
        text
    })
}

/// Name of a plane.
pub(crate) fn random_name() -> String {
    hex(&random_plane_id().expect("random bytes"))
}
