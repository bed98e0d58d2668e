//! Records are read as they were written, by this release and by earlier ones.

use std::fmt::Debug;

use fleetcast_core::storage::records::{MemoryRecords, RecordStore, RecordTransaction};
use proptest::prelude::*;

use crate::accounts::{ApiKey, ConsoleSession, OperatorToken, Record, Tenant, UsageRecord};

/// Records as fleetcast 0.3.0 wrote them, and as they are written now.
const KEY_OF_0_3: &str = r#"{"key_id": "abcdefghijklmnop", "tenant": "acme", "name": "B\u00e4r",
"scopes": ["telemetry:write"], "environment": "sandbox", "created_at": 1, "expires_at": null,
"revoked_at": 5, "hash": "00ff"}"#;
const TENANT: &str = r#"{"name":"acme","account_id":"a1","plan":"pro","live_ingest":true,"retention_seconds":60,"disabled":false,"created_at":1}"#;
const KEY: &str = r#"{"key_id":"abcdefghijklmnop","tenant":"acme","name":"Bär","scopes":["telemetry:write"],"environment":"sandbox","created_at":1,"expires_at":null,"revoked_at":5,"hash":"00ff","replaced_by":null}"#;
const TOKEN: &str = r#"{"token_id":"t","name":"Ada","created_at":1,"expires_at":2,"revoked_at":null,"hash":"00ff"}"#;
const SESSION: &str = r#"{"session_id":"s","token_id":"t","address":"::1","opened_at":1,"used_at":2,"expires_at":3,"hash":"00ff"}"#;
const USAGE: &str = r#"{"requests":7,"run":"first","counted":3}"#;

fn text<R: Record>(record: &str) -> String {
    let record = R::decode(record.as_bytes()).unwrap();
    String::from_utf8(record.encode().unwrap()).unwrap()
}

#[test]
fn records_have_the_bytes_of_this_format() {
    assert_eq!(text::<Tenant>(TENANT), TENANT);
    assert_eq!(text::<ApiKey>(KEY), KEY);
    assert_eq!(text::<OperatorToken>(TOKEN), TOKEN);
    assert_eq!(text::<ConsoleSession>(SESSION), SESSION);
    assert_eq!(text::<UsageRecord>(USAGE), USAGE);
}

#[test]
fn a_key_of_an_earlier_release_is_read() {
    assert_eq!(text::<ApiKey>(KEY_OF_0_3), KEY);
}

#[test]
fn other_bytes_are_damage_that_is_named() {
    for other in ["", "{}", "7", r#"{"requests":-1,"run":"","counted":0}"#, &format!("{USAGE}x")] {
        let error = UsageRecord::decode(other.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("usage is damaged"), "{error}");
    }
    let unknown = TENANT.replace('}', r#","colour":"red"}"#);
    assert!(Tenant::decode(unknown.as_bytes()).is_err(), "a member of a later release");
}

fn assert_comes_back<R: Record + PartialEq + Debug>(record: &R) {
    assert_eq!(&R::decode(&record.encode().unwrap()).unwrap(), record);
}

proptest! {
    #[test]
    fn whatever_is_put_comes_back(
        texts in prop::array::uniform6(any::<String>()),
        times in prop::array::uniform3(any::<i64>()),
        ends in prop::array::uniform2(any::<Option<i64>>()),
        counts in prop::array::uniform2(any::<u64>()),
        flags in prop::array::uniform2(any::<bool>()),
        scopes in prop::collection::vec(any::<String>(), 0..3),
    ) {
        let [first, second, third, fourth, hash, last] = texts;
        assert_comes_back(&Tenant {
            name: first.clone(),
            account_id: second.clone(),
            plan: third.clone(),
            live_ingest: flags[0],
            retention_seconds: ends[0],
            disabled: flags[1],
            created_at: times[0],
        });
        assert_comes_back(&OperatorToken {
            token_id: first.clone(),
            name: second.clone(),
            created_at: times[0],
            expires_at: times[1],
            revoked_at: ends[0],
            hash: hash.clone(),
        });
        assert_comes_back(&ConsoleSession {
            session_id: first.clone(),
            token_id: second.clone(),
            address: third.clone(),
            opened_at: times[0],
            used_at: times[1],
            expires_at: times[2],
            hash: hash.clone(),
        });
        let run = first.clone();
        assert_comes_back(&UsageRecord { requests: counts[0], run, counted: counts[1] });
        assert_comes_back(&ApiKey {
            key_id: first,
            tenant: second,
            name: third,
            scopes,
            environment: fourth,
            created_at: times[0],
            expires_at: ends[0],
            revoked_at: ends[1],
            hash,
            replaced_by: flags[0].then_some(last),
        });
    }
}

#[test]
fn all_records_under_a_prefix_are_found_however_many() {
    let store = MemoryRecords::default();
    let mut view = RecordTransaction::new(store.begin(true).unwrap());
    let usage = UsageRecord::decode(USAGE.as_bytes()).unwrap();
    let mut put = |key: &str| view.put(UsageRecord::SPACE, key.as_bytes(), USAGE.as_bytes());
    for number in 0..3_000 {
        put(&format!("a/{number:04}"));
    }
    put("b");
    view.commit().unwrap();
    let mut view = RecordTransaction::new(store.begin(false).unwrap());
    let found = UsageRecord::all(&mut view, "a/").unwrap();
    assert_eq!(found.len(), 3_000);
    assert!(found.is_sorted_by_key(|(key, _)| key.clone()));
    assert_eq!(UsageRecord::all(&mut view, "").unwrap().len(), 3_001);
    assert_eq!(UsageRecord::get(&mut view, "b").unwrap(), Some(usage));
    for key in ["", "c", &"x".repeat(512)] {
        assert_eq!(UsageRecord::get(&mut view, key).unwrap(), None, "{key}");
    }
}

#[test]
fn keys_and_tokens_end_by_revocation_and_at_their_end() {
    let mut key = ApiKey::decode(KEY.as_bytes()).unwrap();
    assert_eq!(key.ended(0), Some("revoked"));
    key.revoked_at = None;
    assert_eq!(key.ended(i64::MAX), None);
    key.expires_at = Some(2);
    assert_eq!([1, 2].map(|now| key.ended(now)), [None, Some("expired")]);
    let token = OperatorToken::decode(TOKEN.as_bytes()).unwrap();
    assert_eq!([1, 2].map(|now| token.ended(now)), [None, Some("expired")]);
}

#[test]
fn a_session_ends_at_its_end_when_it_is_idle_and_when_its_clock_was_wrong() {
    let used_at = |used_at| ConsoleSession {
        used_at,
        expires_at: 10_000,
        ..ConsoleSession::decode(SESSION.as_bytes()).unwrap()
    };
    assert!(!used_at(1_000).has_ended(1_000 + 1_799));
    assert!(used_at(1_000).has_ended(1_000 + 1_800));
    assert!(!used_at(1_060).has_ended(1_000));
    assert!(used_at(1_061).has_ended(1_000));
    assert!(!used_at(9_999).has_ended(9_999));
    assert!(used_at(9_999).has_ended(10_000));
    assert!(used_at(i64::MIN).has_ended(i64::MAX));
}
