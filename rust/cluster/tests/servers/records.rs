//! Records and installations, as several processes use them.

use std::sync::{Arc, mpsc};
use std::thread;

use fleetcast_cluster::{Cluster, Durability, Installed, Records, Settings};
use fleetcast_core::model::error::Error;

use crate::database::Database;

#[test]
fn an_installation_is_made_once_and_joined_by_the_same_environment_and_key_alone() {
    let Some(database) = Database::new() else { return };
    let cluster = database.open();
    assert!(cluster.check("test", b"check").is_err());
    assert_eq!(cluster.install("test", b"check").unwrap(), Installed::New);
    assert_eq!(database.open().install("test", b"check").unwrap(), Installed::Joined);
    for (environment, key) in [("live", b"check"), ("test", b"other")] {
        let refused = database.open().install(environment, key);
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
}

#[test]
fn two_that_install_at_once_make_one_installation() {
    let Some(database) = Database::new() else { return };
    let outcomes = thread::scope(|scope| {
        let install = || database.open().install("test", b"check").unwrap();
        let both = [scope.spawn(install), scope.spawn(install)];
        both.map(|thread| thread.join().unwrap())
    });
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Installed::New).count(), 1);
}

#[test]
fn a_transaction_is_seen_by_others_whole_and_only_once_it_is_committed() {
    let Some(database) = Database::new() else { return };
    let own = Records::new(database.installed(), "control");
    let other = Records::new(database.open(), "control");
    assert!(other.newer(0).unwrap().is_none());
    let mut transaction = own.begin(true).unwrap();
    transaction.put("keys", b"b\xff", b"2").unwrap();
    transaction.put("keys", b"a", b"1").unwrap();
    transaction.put("tenants", b"b", b"3").unwrap();
    assert_eq!(transaction.get("keys", b"a").unwrap(), Some(b"1".to_vec()));
    assert!(other.newer(0).unwrap().is_none());
    transaction.commit().unwrap();
    let (version, records) = other.newer(0).unwrap().unwrap();
    let keys: Vec<_> = records.iter().map(|(space, key, _)| (space.as_str(), &key[..])).collect();
    assert_eq!(keys, [("keys", &b"a"[..]), ("keys", b"b\xff"), ("tenants", b"b")]);
    assert!(other.newer(version).unwrap().is_none());
    assert!(Records::new(database.open(), "forecast").newer(0).unwrap().is_none());
    let mut reading = other.begin(false).unwrap();
    assert_eq!((reading.version(), reading.count("keys").unwrap()), (version, 2));
    let found = reading.under("keys", b"b", b"", 9).unwrap();
    assert_eq!(found, [(b"b\xff".to_vec(), b"2".to_vec())]);
    assert_eq!(reading.under("keys", b"", b"a", 1).unwrap(), [(b"a".to_vec(), b"1".to_vec())]);
    assert!(matches!(reading.put("keys", b"a", b""), Err(Error::Invalid { .. })));
}

#[test]
fn what_is_not_committed_leaves_no_trace_and_no_lock() {
    let Some(database) = Database::new() else { return };
    let records = Records::new(database.installed(), "control");
    let mut transaction = records.begin(true).unwrap();
    transaction.put("keys", b"a", b"1").unwrap();
    drop(transaction);
    assert!(records.newer(0).unwrap().is_none());
    let mut transaction = records.begin(true).unwrap();
    transaction.delete("keys", b"a").unwrap();
    transaction.commit().unwrap();
    assert_eq!(records.newer(0).unwrap().unwrap().1, []);
    // One that changes nothing is no news.
    let version = records.begin(true).unwrap().version();
    records.begin(true).unwrap().commit().unwrap();
    assert!(records.newer(version).unwrap().is_none());
}

#[test]
fn writers_of_a_store_take_turns_and_readers_do_not_wait_for_them() {
    let Some(database) = Database::new() else { return };
    let cluster = database.installed();
    let count = |cluster: Arc<Cluster>| {
        let mut transaction = Records::new(cluster, "control").begin(true).unwrap();
        let value = transaction.get("", b"number").unwrap().map_or(0, |value| value[0]);
        transaction.put("", b"number", &[value + 1]).unwrap();
        transaction.commit().unwrap();
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            let cluster = database.open();
            scope.spawn(move || (0..10).for_each(|_| count(Arc::clone(&cluster))));
        }
    });
    let holding = Records::new(Arc::clone(&cluster), "control").begin(true).unwrap();
    let read = Records::new(database.open(), "control").begin(false).unwrap().get("", b"number");
    assert_eq!(read.unwrap(), Some(vec![40]));
    let (began_send, began) = mpsc::channel();
    let other = database.open();
    let waiting = thread::spawn(move || {
        let begun = Records::new(other, "control").begin(true).map(drop);
        began_send.send(()).unwrap();
        begun
    });
    Records::new(cluster, "forecast").begin(true).unwrap().commit().unwrap();
    assert!(began.try_recv().is_err());
    holding.roll_back();
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
    let records = Records::new(Arc::new(Cluster::new(settings).unwrap()), "control");
    for _ in 0..2 {
        let message = records.newer(0).unwrap_err().to_string();
        assert!(
            message.contains("PostgreSQL cannot connect") && !message.contains("secret"),
            "{message}"
        );
    }
}
