//! Cost of the decision about a request: with 10,000 keys in a sealed store on disk, and an open
//! plane.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use fleetcast_core::plane::Plane;
use fleetcast_core::storage::records::{
    LmdbRecords, RecordStore, RecordTransaction, SealedRecords,
};
use fleetcast_core::storage::store::{DirectoryPlanes, Planes};
use fleetcast_limiter::LimiterRules;
use fleetcast_service::accounts::{ApiKey, Authenticator, Record, SecretHasher, Tenant};
use fleetcast_service::admission::{Admission, KeyPlaces, PUBLIC_ROUTES, PlainRequest};
use fleetcast_service::clients::{ClientAddresses, ClientLimits, LimiterFile, Networks};
use fleetcast_service::planes::OpenPlanes;

const KEYS_COUNT: u32 = 10_000;
const MASTER_KEY: [u8; 32] = [7; 32];
const SECRET: &str = "abcdefghijklmnopabcdefghijklmnop";

fn key_id(number: u32) -> String {
    let digits = (0..16).map(|place| b'a' + u8::try_from(number >> (2 * place) & 3).unwrap_or(0));
    digits.map(char::from).collect()
}

/// A sealed store of accounts in `folder`.
fn accounts(folder: &std::path::Path) -> SealedRecords {
    let spaces = [Tenant::SPACE.to_owned(), ApiKey::SPACE.to_owned()];
    let records = || LmdbRecords::new(folder, SealedRecords::spaces(&spaces), b"bench");
    let sealed = SealedRecords::new(Arc::new(records()), &MASTER_KEY, "bench", &spaces);
    records().create(sealed.beginning().expect("random bytes")).expect("made");
    let hash = SecretHasher::new(b"").hash(SECRET);
    let mut view = RecordTransaction::new(sealed.begin(true).expect("opened"));
    for number in 0..KEYS_COUNT {
        let key_id = key_id(number);
        let key = format!(
            r#"{{"key_id":"{key_id}","tenant":"acme","name":"","scopes":["topology:read"],
            "environment":"sandbox","created_at":1,"expires_at":null,"revoked_at":null,
            "hash":"{hash}"}}"#
        );
        view.put(ApiKey::SPACE, key_id.as_bytes(), key.as_bytes());
    }
    let tenant = br#"{"name":"acme","account_id":"a1","plan":"pro","live_ingest":true,
        "retention_seconds":null,"disabled":false,"created_at":1}"#;
    view.put(Tenant::SPACE, b"acme", tenant);
    view.commit().expect("committed");
    sealed
}

fn admission(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let planes: Arc<dyn Planes> = Arc::new(DirectoryPlanes::new(folder.path()));
    Plane::create(&*planes, "a1", &MASTER_KEY).expect("made");
    let rules = LimiterRules {
        requests_per_minute: 0,
        lockout_failures: 10,
        lockout_window_seconds: 300,
        lockout_seconds: 300,
    };
    let file = folder.path().join("limiter");
    let limiter = Arc::new(LimiterFile::new(file, rules, Arc::new(|_| ())));
    let records = Arc::new(accounts(&folder.path().join("control")));
    let authenticator = Arc::new(Authenticator::new(Arc::clone(&records) as _, b"", "sandbox"));
    let admission = Admission {
        routes: PUBLIC_ROUTES,
        keys: KeyPlaces::Public,
        addresses: ClientAddresses::default(),
        limits: ClientLimits::new(Networks::default(), Arc::clone(&limiter), limiter),
        authenticator: Arc::clone(&authenticator),
        planes: Arc::new(OpenPlanes::in_folder(
            planes,
            folder.path(),
            &MASTER_KEY,
            9,
            Duration::from_mins(1),
        )),
        body_bytes_max: 1_000,
        backend: String::new(),
    };
    let keys: Vec<String> = (0..KEYS_COUNT)
        .map(|number| {
            let text = format!("ftk_sandbox_{}_{SECRET}", key_id(number));
            format!("{text}{:08x}", crc32fast::hash(text.as_bytes()))
        })
        .collect();
    let mut group = criterion.benchmark_group("admission");
    group.bench_function("snapshot of the accounts", |bencher| {
        bencher.iter(|| records.begin(false).expect("opened").version());
    });
    group.bench_function("identity, one key", |bencher| {
        bencher.iter(|| authenticator.identify(Some(black_box(&keys[7])), 5).expect("good"));
    });
    let mut next = keys.iter().cycle();
    group.bench_function("identity, 10,000 keys in turn", |bencher| {
        bencher.iter(|| authenticator.identify(next.next().map(String::as_str), 5).expect("good"));
    });
    let key = ("X_API_KEY".to_owned(), keys[7].clone().into_bytes());
    let (method, path, peer) = ["GET", "/topology", "192.0.2.1"].map(str::to_owned).into();
    let mut read = PlainRequest { method, path, peer, fields: [key].into(), ..<_>::default() };
    group.bench_function("decision", |bencher| {
        bencher.iter(|| admission.decide(&mut read).outcome.expect("granted"));
    });
    group.finish();
}

criterion_group!(benches, admission);
criterion_main!(benches);
