//! Records and installations, as several processes use them.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use fleetcast_cluster::{Cluster, ClusterRecords, Durability, InstallOutcome, Replica, Settings};
use fleetcast_core::model::error::Error;
use fleetcast_core::storage::records::testing::{agrees, transactions};
use fleetcast_core::storage::records::{RecordStore, RecordTransaction, SealedRecords};
use proptest::prelude::*;

use crate::database::Database;

/// After so long an event is taken for one that never comes.
const PATIENCE: Duration = Duration::from_mins(2);

#[test]
fn an_installation_is_made_once_and_joined_by_the_same_environment_and_key_alone() {
    let Some(database) = Database::new() else { return };
    let cluster = database.open();
    assert!(cluster.check("test", &[b"check"]).is_err());
    assert_eq!(cluster.install("test", b"check").unwrap(), InstallOutcome::New);
    assert_eq!(database.open().install("test", b"check").unwrap(), InstallOutcome::Joined);
    for (environment, key) in [("live", b"check"), ("test", b"other")] {
        let refused = database.open().install(environment, key);
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
}

#[test]
fn some_that_install_at_once_make_one_installation() {
    let Some(database) = Database::new() else { return };
    let outcomes = thread::scope(|scope| {
        let install = || database.open().install("test", b"check").unwrap();
        let all = [(); 8].map(|()| scope.spawn(install));
        all.map(|thread| thread.join().unwrap())
    });
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == InstallOutcome::New).count(), 1);
}

fn keys(view: &mut RecordTransaction, space: &str) -> Vec<Vec<u8>> {
    let found = view.under(space, b"", b"", 100).unwrap().0;
    found.into_iter().map(|(key, _)| key).collect()
}

fn put(store: &dyn RecordStore, key: &[u8], value: &[u8]) {
    let mut view = RecordTransaction::new(store.begin(true).unwrap());
    view.put("a", key, value);
    view.commit().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn records_in_the_database_answer_as_the_twin_in_memory(transactions in transactions()) {
        if let Some(database) = Database::new() {
            agrees(&ClusterRecords::new(database.installed(), "control"), &transactions)?;
        }
    }

    #[test]
    fn a_replica_answers_as_the_twin_in_memory(
        transactions in transactions(),
        follows in any::<bool>(),
    ) {
        if let Some(database) = Database::new() {
            agrees(&Replica::new(database.installed(), "control", follows), &transactions)?;
        }
    }
}

#[test]
fn records_that_were_exchanged_or_put_back_in_the_database_are_noticed_by_each_node() {
    let Some(database) = Database::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let sealed = |records, node: &str| {
        let spaces = ["a".to_owned()];
        let store = SealedRecords::new(records, &[7; 32], "accounts", &spaces);
        store.counting(&spaces, &folder.path().join(node))
    };
    let raw = ClusterRecords::new(database.installed(), "accounts");
    let own = sealed(Arc::new(ClusterRecords::new(database.open(), "accounts")), "own");
    let replica = || Arc::new(Replica::new(database.open(), "accounts", false));
    put(&own, b"k", b"one");
    let before = get(&raw, b"k").unwrap();
    put(&own, b"k", b"revoked");
    put(&own, b"l", b"two");
    assert_eq!(get(&sealed(replica(), "other"), b"k"), Some(b"revoked".to_vec()));
    let last = get(&raw, b"k").unwrap();
    put(&raw, b"k", &before);
    let put_back = sealed(replica(), "other").check();
    assert!(matches!(put_back, Err(Error::Foreign { .. })), "{put_back:?}");
    put(&raw, b"k", &last);
    sealed(replica(), "other").check().unwrap();
    put(&raw, b"k", &get(&raw, b"l").unwrap());
    let fault =
        RecordTransaction::new(own.begin(false).unwrap()).get("a", b"k").unwrap_err().to_string();
    assert!(fault.starts_with("the record a/k is damaged"), "{fault}");
}

fn get(store: &dyn RecordStore, key: &[u8]) -> Option<Vec<u8>> {
    RecordTransaction::new(store.begin(false).unwrap()).get("a", key).unwrap()
}

#[test]
fn a_transaction_is_seen_by_others_whole_and_only_once_it_is_committed() {
    let Some(database) = Database::new() else { return };
    let own = ClusterRecords::new(database.installed(), "control");
    let other = Replica::new(database.open(), "control", false);
    let mut view = RecordTransaction::new(own.begin(true).unwrap());
    view.put("keys", b"b\xff", b"2");
    view.put("keys", b"a", b"1");
    view.put("tenants", b"b", b"3");
    let seen = |space| keys(&mut RecordTransaction::new(other.begin(false).unwrap()), space);
    assert!(seen("keys").is_empty());
    view.commit().unwrap();
    assert_eq!(seen("keys"), [b"a".to_vec(), b"b\xff".to_vec()]);
    assert_eq!(seen("tenants"), [b"b".to_vec()]);
    let version = |records: &dyn RecordStore| records.begin(false).unwrap().version();
    assert_eq!(version(&other), version(&own));
    let unrelated = ClusterRecords::new(database.open(), "forecast");
    assert!(keys(&mut RecordTransaction::new(unrelated.begin(false).unwrap()), "keys").is_empty());
}

#[test]
fn what_is_not_committed_leaves_no_trace_and_no_lock() {
    let Some(database) = Database::new() else { return };
    let records = ClusterRecords::new(database.installed(), "control");
    let mut view = RecordTransaction::new(records.begin(true).unwrap());
    view.put("keys", b"a", b"1");
    drop(view);
    let version = || records.begin(false).unwrap().version();
    // A transaction that changes nothing is no news.
    RecordTransaction::new(records.begin(true).unwrap()).commit().unwrap();
    assert_eq!(version(), 0);
    put(&records, b"a", b"1");
    assert_eq!(version(), 1);
}

#[test]
fn a_replica_that_follows_learns_of_changes_by_itself_and_stays_as_it_was_without_a_database() {
    let Some(database) = Database::new() else { return };
    let own = ClusterRecords::new(database.installed(), "control");
    put(&own, b"a", b"1");
    let replica = Replica::new(database.open(), "control", true);
    let seen = || keys(&mut RecordTransaction::new(replica.begin(false).unwrap()), "a");
    assert_eq!(seen(), [b"a".to_vec()]);
    put(&own, b"b", b"1");
    let began = Instant::now();
    while seen().len() < 2 {
        assert!(began.elapsed() < PATIENCE, "it does not learn of a change");
        thread::sleep(Duration::from_millis(10));
    }
    put(&own, b"c", b"1");
    assert!(replica.renew().unwrap());
    assert_eq!(seen().len(), 3);
}

#[test]
fn writers_of_a_store_take_turns_and_readers_do_not_wait_for_them() {
    let Some(database) = Database::new() else { return };
    let cluster = database.installed();
    let count = |cluster: Arc<Cluster>| {
        let records = ClusterRecords::new(cluster, "control");
        let mut view = RecordTransaction::new(records.begin(true).unwrap());
        let value = view.get("", b"number").unwrap().map_or(0, |value| value[0]);
        view.put("", b"number", &[value + 1]);
        view.commit().unwrap();
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            let cluster = database.open();
            scope.spawn(move || (0..10).for_each(|_| count(Arc::clone(&cluster))));
        }
    });
    let holding = ClusterRecords::new(Arc::clone(&cluster), "control").begin(true).unwrap();
    let read = ClusterRecords::new(database.open(), "control").begin(false).unwrap();
    assert_eq!(RecordTransaction::new(read).get("", b"number").unwrap(), Some(vec![40]));
    let (began_send, began) = mpsc::channel();
    let other = database.open();
    let waiting = thread::spawn(move || {
        let begun = ClusterRecords::new(other, "control").begin(true).map(drop);
        began_send.send(()).unwrap();
        begun
    });
    put(&ClusterRecords::new(cluster, "forecast"), b"a", b"1");
    assert!(began.try_recv().is_err());
    drop(holding);
    waiting.join().unwrap().unwrap();
}

#[test]
fn a_database_that_nobody_serves_is_unavailable_and_the_password_is_not_told() {
    let database = "postgresql://fleet:secret@127.0.0.1:9/fleet".to_owned();
    let settings = Settings {
        database,
        connections: 4,
        durability: Durability::Quorum,
        objects: None,
        cache: None,
    };
    let records = ClusterRecords::new(Arc::new(Cluster::new(settings).unwrap()), "control");
    for _ in 0..2 {
        let message = records.begin(false).err().expect("it fails").to_string();
        assert!(
            message.contains("PostgreSQL cannot connect") && !message.contains("secret"),
            "{message}"
        );
    }
}
