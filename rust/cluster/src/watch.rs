//! A watch for a standby that becomes the primary while the primary before it lives on.
//!
//! The sessions of a process cannot tell: their server answers as before, and a standby that still
//! follows it lets it acknowledge. So each process also asks the other hosts.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config};

use crate::address::DatabaseAddress;
use crate::connection::{CONNECT_TIMEOUT, HostFacts};
use crate::pool::Pool;
use crate::seen::ClusterFacts;

/// Time between two questions to a host. What a process acknowledges or reads on a primary that was
/// replaced is bounded by this time and a round trip.
const ROUND: Duration = Duration::from_millis(250);

/// Asks all hosts for their timelines until the runtime ends. A host that does not answer keeps no
/// other host waiting.
pub(crate) async fn watch(pool: Arc<Pool>) {
    let Pool { address, seen, .. } = &*pool;
    let hosts = 0..address.hosts.len();
    join_all(hosts.map(|host| watch_host(address, host, seen))).await;
}

async fn watch_host(address: &DatabaseAddress, host: usize, seen: &ClusterFacts) {
    let mut session = None;
    loop {
        // The pool's own sessions are on the primary of the newest timeline.
        let known = session.take();
        if !seen.is_primary(host)
            && let Ok(asked) = timeout(CONNECT_TIMEOUT, ask(address, host, known, seen)).await
        {
            session = asked;
        }
        sleep(ROUND).await;
    }
}

/// Returns the name of each host, with the timeline of a primary, 0 of a standby, or `None` without
/// an answer.
pub(crate) async fn timelines(address: &DatabaseAddress) -> Vec<(String, Option<u32>)> {
    let asked = address.hosts.iter().map(|host| async move {
        let answer =
            timeout(CONNECT_TIMEOUT, async { timeline_of(&opened(address, host).await?).await });
        (name_of(host), answer.await.ok().flatten())
    });
    join_all(asked).await
}

fn name_of(host: &Config) -> String {
    let name = match host.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    host.get_ports().first().map_or(name.clone(), |port| format!("{name}:{port}"))
}

/// Asks a host for its timeline, by a session that stays open. Returns `None` if the host does not
/// answer.
async fn ask(
    address: &DatabaseAddress,
    host: usize,
    known: Option<Client>,
    seen: &ClusterFacts,
) -> Option<Client> {
    let client = match known {
        Some(client) => client,
        None => opened(address, &address.hosts[host]).await?,
    };
    seen.note_timeline(timeline_of(&client).await?, host);
    Some(client)
}

/// Returns the timeline of a primary, or 0 of a standby.
async fn timeline_of(client: &Client) -> Option<u32> {
    Some(HostFacts::ask(client).await.ok()?.timeline)
}

async fn opened(address: &DatabaseAddress, host: &Config) -> Option<Client> {
    let (client, link) = host.connect(address.tls.clone()).await.ok()?;
    // It ends with the client.
    tokio::spawn(link);
    Some(client)
}
