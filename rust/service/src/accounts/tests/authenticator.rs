//! Identities by the records at each instant.

use std::sync::Arc;

use fleetcast_core::model::error::Error;
use fleetcast_core::storage::records::{
    LmdbRecords, MemoryRecords, RecordStore, RecordTransaction, SealedRecords,
};

use crate::accounts::{ApiKey, Authenticator, Record, Rejection, SecretHasher, Tenant};

const PEPPER: &[u8] = b"pepper";
const NOW: i64 = 1_790_000_000;
const KEY_ID: &str = "abcdefghijklmnop";
const SECRET: &str = "abcdefghijklmnopabcdefghijklmnop";

fn with_checksum(text: &str) -> String {
    format!("{text}{:08x}", crc32fast::hash(text.as_bytes()))
}

fn key_text(environment: &str, secret: &str) -> String {
    with_checksum(&format!("ftk_{environment}_{KEY_ID}_{secret}"))
}

fn hash(secret: &str) -> String {
    SecretHasher::new(PEPPER).hash(secret)
}

fn key_record(changes: &str) -> String {
    let hash = hash(SECRET);
    let record = format!(
        r#"{{"key_id":"{KEY_ID}","tenant":"acme","name":"","scopes":["telemetry:write"],
        "environment":"sandbox","created_at":1,"expires_at":null,"revoked_at":null,"hash":"{hash}"}}"#
    );
    changes.split(';').filter(|change| !change.is_empty()).fold(record, |record, change| {
        let (name, value) = change.split_once('=').unwrap();
        let start = record.find(&format!("\"{name}\":")).unwrap() + name.len() + 3;
        let end = start + record[start..].find([',', '}']).unwrap();
        format!("{}{value}{}", &record[..start], &record[end..])
    })
}

fn tenant_record(disabled: bool) -> String {
    format!(
        r#"{{"name":"acme","account_id":"a1","plan":"pro","live_ingest":true,
        "retention_seconds":null,"disabled":{disabled},"created_at":1}}"#
    )
}

fn put(store: &dyn RecordStore, space: &str, key: &str, record: Option<&str>) {
    let mut view = RecordTransaction::new(store.begin(true).unwrap());
    match record {
        Some(record) => view.put(space, key.as_bytes(), record.as_bytes()),
        None => view.delete(space, key.as_bytes()),
    }
    view.commit().unwrap();
}

fn made(store: Arc<dyn RecordStore>) -> Authenticator {
    put(&*store, Tenant::SPACE, "acme", Some(&tenant_record(false)));
    put(&*store, ApiKey::SPACE, KEY_ID, Some(&key_record("")));
    Authenticator::new(store, PEPPER, "sandbox")
}

/// Returns the account, or the name of the rejection.
fn outcome(authenticator: &Authenticator, key: Option<&str>) -> String {
    match authenticator.identify(key, NOW) {
        Ok(identity) => identity.account.to_string(),
        Err(Rejection::Unavailable(error)) => error.to_string(),
        Err(rejection) => format!("{rejection:?}"),
    }
}

#[test]
fn a_key_gives_the_identity_that_its_records_have_at_each_instant() {
    let store: Arc<dyn RecordStore> = Arc::new(MemoryRecords::default());
    let authenticator = made(Arc::clone(&store));
    let good = key_text("sandbox", SECRET);
    assert_eq!(outcome(&authenticator, None), "NoKey");
    assert_eq!(outcome(&authenticator, Some("nonsense")), "InvalidKey");
    for changes in [
        "revoked_at=5".to_owned(),
        format!("expires_at={NOW}"),
        r#"environment="production""#.to_owned(),
        format!(r#"hash="{}""#, hash("another")),
    ] {
        assert_eq!(outcome(&authenticator, Some(&good)), "a1", "before {changes}");
        put(&*store, ApiKey::SPACE, KEY_ID, Some(&key_record(&changes)));
        assert_eq!(outcome(&authenticator, Some(&good)), "InvalidKey", "{changes}");
        put(&*store, ApiKey::SPACE, KEY_ID, Some(&key_record(&format!("expires_at={}", NOW + 1))));
    }
    put(&*store, Tenant::SPACE, "acme", Some(&tenant_record(true)));
    assert_eq!(outcome(&authenticator, Some(&good)), "TenantDisabled");
    put(&*store, Tenant::SPACE, "acme", None);
    assert_eq!(outcome(&authenticator, Some(&good)), "TenantUnknown");
    put(&*store, ApiKey::SPACE, KEY_ID, None);
    assert_eq!(outcome(&authenticator, Some(&good)), "InvalidKey");
}

#[test]
fn neither_another_secret_nor_another_environment_is_let_in() {
    let authenticator = made(Arc::new(MemoryRecords::default()));
    let other = key_text("sandbox", &SECRET.replace('a', "b"));
    assert_eq!(outcome(&authenticator, Some(&other)), "InvalidKey");
    assert_eq!(outcome(&authenticator, Some(&key_text("production", SECRET))), "InvalidKey");
}

#[test]
fn a_record_that_is_damaged_is_no_refusal() {
    let store: Arc<dyn RecordStore> = Arc::new(MemoryRecords::default());
    let authenticator = made(Arc::clone(&store));
    let good = key_text("sandbox", SECRET);
    for record in ["", "[]", "{}", &key_record("hash=\"00\""), &key_record("created_at=\"1\"")] {
        put(&*store, ApiKey::SPACE, KEY_ID, Some(record));
        assert!(outcome(&authenticator, Some(&good)).contains("key is damaged"), "{record}");
    }
    put(&*store, ApiKey::SPACE, KEY_ID, Some(&key_record("")));
    put(&*store, Tenant::SPACE, "acme", Some(r#"{"name":"acme"}"#));
    assert!(outcome(&authenticator, Some(&good)).contains("tenant is damaged"));
}

/// B21: a hash of no secret stands in for a missing hash.
#[test]
fn an_unknown_id_is_compared_as_well() {
    let store: Arc<dyn RecordStore> = Arc::new(MemoryRecords::default());
    let authenticator = made(Arc::clone(&store));
    put(&*store, ApiKey::SPACE, KEY_ID, None);
    assert_eq!(outcome(&authenticator, Some(&key_text("sandbox", SECRET))), "InvalidKey");
    let zeros = format!("hash=\"{}\"", "0".repeat(64));
    put(&*store, ApiKey::SPACE, KEY_ID, Some(&key_record(&zeros)));
    assert_eq!(outcome(&authenticator, Some(&key_text("sandbox", SECRET))), "InvalidKey");
}

/// A store that other machines change too. Its newest state is ahead of the state that is known
/// here.
struct Behind {
    known: MemoryRecords,
    newest: MemoryRecords,
    is_renewed: std::sync::atomic::AtomicBool,
}

impl RecordStore for Behind {
    fn place(&self) -> String {
        String::new()
    }

    fn begin(
        &self,
        writes: bool,
    ) -> Result<Box<dyn fleetcast_core::storage::records::RecordSnapshot>, Error> {
        let is_renewed = self.is_renewed.load(std::sync::atomic::Ordering::Relaxed);
        if is_renewed { self.newest.begin(writes) } else { self.known.begin(writes) }
    }

    fn renew(&self) -> Result<bool, Error> {
        self.is_renewed.store(true, std::sync::atomic::Ordering::Relaxed);
        Ok(true)
    }
}

#[test]
fn a_refusal_rests_on_the_newest_state() {
    let (known, newest) = (MemoryRecords::default(), MemoryRecords::default());
    put(&newest, Tenant::SPACE, "acme", Some(&tenant_record(false)));
    put(&newest, ApiKey::SPACE, KEY_ID, Some(&key_record("")));
    let store = Arc::new(Behind { known, newest, is_renewed: false.into() });
    let authenticator = Authenticator::new(store, PEPPER, "sandbox");
    assert_eq!(outcome(&authenticator, Some(&key_text("sandbox", SECRET))), "a1");
}

#[test]
fn a_known_key_is_identified_again_without_asking_another_machine() {
    let (known, newest) = (MemoryRecords::default(), MemoryRecords::default());
    let store = Arc::new(Behind { known, newest, is_renewed: false.into() });
    let authenticator = made(Arc::clone(&store) as _);
    let account = |key: &str| {
        authenticator.identify_known(key, NOW).map(|identity| identity.account.to_string())
    };
    let good = key_text("sandbox", SECRET);
    assert_eq!(account(&good), None, "its records were never read");
    assert_eq!(outcome(&authenticator, Some(&good)), "a1");
    assert_eq!(account(&good).as_deref(), Some("a1"));
    assert_eq!(account(&key_text("sandbox", &SECRET.replace('a', "b"))), None);
    assert_eq!(account(&key_text("production", SECRET)), None);
    assert_eq!(account("nonsense"), None);
    put(&*store, ApiKey::SPACE, KEY_ID, Some(&key_record(&format!("expires_at={}", NOW + 1))));
    assert_eq!(account(&good).as_deref(), Some("a1"));
    assert!(authenticator.identify_known(&good, NOW + 1).is_none(), "it has expired");
    put(&*store, ApiKey::SPACE, KEY_ID, Some(&key_record("revoked_at=5")));
    assert_eq!(account(&good), None);
    assert!(!store.is_renewed.load(std::sync::atomic::Ordering::Relaxed));
}

#[test]
fn sealed_records_that_another_handle_changes_are_seen_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let spaces = [Tenant::SPACE.to_owned(), ApiKey::SPACE.to_owned()];
    let path = folder.path().join("control");
    let records = || LmdbRecords::new(&path, SealedRecords::spaces(&spaces), b"test");
    let sealed = SealedRecords::new(Arc::new(records()), &[7; 32], "test", &spaces);
    records().create(sealed.beginning().unwrap()).unwrap();
    let store: Arc<dyn RecordStore> = Arc::new(sealed);
    let authenticator = made(Arc::clone(&store));
    let good = key_text("sandbox", SECRET);
    for round in 0..20 {
        assert_eq!(outcome(&authenticator, Some(&good)), "a1", "round {round}");
        put(&*store, ApiKey::SPACE, KEY_ID, Some(&key_record("revoked_at=5")));
        assert_eq!(outcome(&authenticator, Some(&good)), "InvalidKey", "round {round}");
        put(&*store, ApiKey::SPACE, KEY_ID, Some(&key_record("")));
    }
}
