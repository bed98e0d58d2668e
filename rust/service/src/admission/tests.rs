//! The order of the stages, and the refusals of each stage.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fleetcast_core::plane::Plane;
use fleetcast_core::storage::records::{MemoryRecords, RecordStore, RecordTransaction};
use fleetcast_core::storage::store::{DirectoryPlanes, Planes};
use fleetcast_limiter::LimiterRules;

use super::{
    ADAPTER_ROUTES, Admission, BodyState, Cause, Decision, KeyPlaces, PUBLIC_ROUTES, PlainRequest,
};
use crate::accounts::{ApiKey, Authenticator, Record, SecretHasher, Tenant};
use crate::clients::{ClientAddresses, ClientLimits, LimiterFile, Networks};
use crate::planes::OpenPlanes;
use crate::refusal::ContextValue;

const MASTER_KEY: [u8; 32] = [7; 32];
const PROTOBUF: &str = "application/x-protobuf";
const SECRET: &str = "abcdefghijklmnopabcdefghijklmnop";

/// A request of a client at `192.0.2.1`.
fn asking(method: &str, path: &str) -> PlainRequest {
    let (method, path, peer) = (method.to_owned(), path.to_owned(), "192.0.2.1".to_owned());
    PlainRequest { method, path, peer, ..PlainRequest::default() }
}

trait With {
    fn with(self, name: &str, value: impl Into<Vec<u8>>) -> Self;
    fn body(self, body: BodyState) -> Self;
}

impl With for PlainRequest {
    fn with(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    fn body(self, body: BodyState) -> Self {
        Self { body, ..self }
    }
}

/// A listener with its own stores.
struct Listener {
    folder: tempfile::TempDir,
    admission: Admission,
}

fn key(name: char) -> String {
    let text = format!("ftk_sandbox_{}_{SECRET}", String::from(name).repeat(16));
    format!("{text}{:08x}", crc32fast::hash(text.as_bytes()))
}

/// Keys of tenants: with all rights, with the right to write or read only, not entitled, disabled,
/// deleted, or with a deleted plane.
fn records() -> MemoryRecords {
    let store = MemoryRecords::default();
    let mut view = RecordTransaction::new(store.begin(true).unwrap());
    let hash = SecretHasher::new(b"").hash(SECRET);
    let both = r#""telemetry:write","topology:read""#;
    for (name, scopes, entitled, disabled) in [
        ('a', both, true, false),
        ('b', r#""topology:read""#, false, false),
        ('c', both, false, false),
        ('d', both, true, true),
        ('e', both, true, false),
        ('f', "", true, false),
    ] {
        let key_id = String::from(name).repeat(16);
        let account = if name == 'f' { "gone" } else { "a1" };
        let key = format!(
            r#"{{"key_id":"{key_id}","tenant":"{name}","name":"","scopes":[{scopes}],
            "environment":"sandbox","created_at":1,"expires_at":null,"revoked_at":null,
            "hash":"{hash}"}}"#
        );
        view.put(ApiKey::SPACE, key_id.as_bytes(), key.as_bytes());
        let tenant = format!(
            r#"{{"name":"{name}","account_id":"{account}","plan":"pro","live_ingest":{entitled},
            "retention_seconds":null,"disabled":{disabled},"created_at":1}}"#
        );
        if name != 'e' {
            view.put(Tenant::SPACE, String::from(name).as_bytes(), tenant.as_bytes());
        }
    }
    view.commit().unwrap();
    store
}

fn listener(requests_per_minute: u32, is_adapters: bool) -> Listener {
    let folder = tempfile::tempdir().unwrap();
    let planes: Arc<dyn Planes> = Arc::new(DirectoryPlanes::new(folder.path()));
    Plane::create(&*planes, "a1", &MASTER_KEY).unwrap();
    let rules = LimiterRules {
        requests_per_minute,
        lockout_failures: 3,
        lockout_window_seconds: 300,
        lockout_seconds: 300,
    };
    let on_fault = Arc::new(|error: &_| panic!("{error}"));
    let file = Arc::new(LimiterFile::new(folder.path().join("limiter"), rules, on_fault));
    let open = OpenPlanes::in_folder(planes, folder.path(), &MASTER_KEY, 9, Duration::MAX);
    let admission = Admission {
        routes: if is_adapters { ADAPTER_ROUTES } else { PUBLIC_ROUTES },
        keys: if is_adapters { KeyPlaces::Adapters } else { KeyPlaces::Public },
        addresses: ClientAddresses::default(),
        limits: ClientLimits::new(Networks::default(), Arc::clone(&file), file),
        authenticator: Arc::new(Authenticator::new(Arc::new(records()), b"", "sandbox")),
        planes: Arc::new(open),
        body_bytes_max: 1_000,
        backend: "embedded".to_owned(),
    };
    Listener { folder, admission }
}

/// Returns the code of a refusal, or the name of the grant.
fn outcome(decision: &Decision) -> String {
    match &decision.outcome {
        Ok(grant) => format!("{grant:?}"),
        Err(Cause::Refused(refusal)) => refusal.code.to_owned(),
        Err(other) => format!("{other:?}"),
    }
}

impl Listener {
    fn asked(&self, request: &PlainRequest) -> String {
        outcome(&self.admission.decide(&mut request.clone()))
    }
}

#[test]
fn stage_by_stage_the_earlier_refusal_wins() {
    let listener = listener(0, false);
    let worst = asking("GET", "/nowhere")
        .with("X_API_KEY", "nonsense")
        .with("CONTENT_ENCODING", "gzip")
        .with("CONTENT_TYPE", "text/plain");
    assert_eq!(listener.asked(&worst), "not_found");
    let mut request = PlainRequest { path: "/telemetry".to_owned(), ..worst };
    assert_eq!(listener.asked(&request), "method_not_allowed");
    request.method = "POST".to_owned();
    request.is_over_share = true;
    assert_eq!(listener.asked(&request), "auth_failed");
    for (name, code) in [
        ('d', "tenant_disabled"),
        ('e', "tenant_unknown"),
        ('f', "ingest_buffer_full"), // even though its plane is gone, and its key has no scope
    ] {
        request = request.with("X_API_KEY", key(name));
        assert_eq!(listener.asked(&request), code);
    }
    request.is_over_share = false;
    for (name, code) in [
        ('f', "tenant_unavailable"),
        ('b', "insufficient_scope"), // and the tenant is not entitled
        ('c', "live_ingest_not_entitled"),
        ('a', "length_required"),
    ] {
        request = request.with("X_API_KEY", key(name));
        assert_eq!(listener.asked(&request), code);
    }
    for (length, code) in [
        ("+1", "invalid_content_length"),
        ("1001", "request_too_large"),
        ("99999999999999999999999", "request_too_large"),
        ("2", "unsupported_content_encoding"),
    ] {
        request = request.with("CONTENT_LENGTH", length);
        assert_eq!(listener.asked(&request), code);
    }
    request = request.with("CONTENT_ENCODING", "identity");
    assert_eq!(listener.asked(&request), "schema_faults"); // the fault is the content type
    request = request.with("CONTENT_TYPE", "application/json");
    assert_eq!(listener.asked(&request), "invalid_content_length"); // no byte has arrived
    assert_eq!(listener.asked(&request.clone().body(BodyState::Due)), "AwaitBody");
    assert_eq!(listener.asked(&request.clone().body(BodyState::Oversized)), "request_too_large");
    assert_eq!(listener.asked(&request.clone().body(BodyState::Come(2))), "Serve");
    request = request.with("CONTENT_LENGTH", "0");
    assert_eq!(listener.asked(&request), "schema_faults"); // there is no body
}

#[test]
fn all_that_was_found_out_is_kept_up_to_the_stage_that_ended_it() {
    let listener = listener(0, false);
    let request = |name| asking("GET", "/topology").with("X_API_KEY", key(name));
    let served = listener.admission.decide(&mut request('a'));
    assert_eq!((outcome(&served), &*served.address), ("Serve".to_owned(), "192.0.2.1"));
    assert_eq!(served.route.map(|route| route.path), Some("/topology"));
    assert!(served.plane.is_some() && served.fault.is_none() && served.events.is_empty());
    let refused = listener.admission.decide(&mut request('f'));
    assert!(refused.identity.is_some() && refused.plane.is_none());
    assert!(refused.fault.is_some_and(|fault| fault.to_string().contains("gone")));
    let claim = |account: &str| account != "a1";
    let mut beyond = PlainRequest { claim: Some(Arc::new(claim)), ..request('a') };
    let refused = listener.admission.decide(&mut beyond);
    assert!(refused.is_over_share);
    let Err(Cause::Refused(refusal)) = refused.outcome else { panic!("it is beyond its share") };
    let upstream = ContextValue::Text("embedded".to_owned());
    assert_eq!(
        (refusal.code, refusal.context),
        ("telemetry_unavailable", vec![("upstream", upstream)])
    );
}

#[test]
fn a_request_counts_once_and_before_anything_is_known_of_it() {
    let listener = listener(2, false);
    let mut request = asking("POST", "/telemetry")
        .with("X_API_KEY", key('a'))
        .with("CONTENT_LENGTH", "2")
        .body(BodyState::Due);
    assert_eq!(outcome(&listener.admission.decide(&mut request)), "AwaitBody");
    request.body = BodyState::Come(2);
    assert_eq!(outcome(&listener.admission.decide(&mut request)), "Serve");
    assert_eq!(listener.asked(&asking("GET", "/nowhere")), "not_found");
    for path in ["/nowhere", "/health", "/telemetry"] {
        assert_eq!(listener.asked(&asking("GET", path)), "rate_limited");
    }
}

#[test]
fn options_and_health_need_no_key_and_other_spellings_are_other_paths() {
    let listener = listener(0, false);
    for route in PUBLIC_ROUTES {
        assert_eq!(listener.asked(&asking("OPTIONS", route.path)), "Options");
    }
    let mut health = PlainRequest { is_over_share: true, ..asking("GET", "/health") };
    assert_eq!(outcome(&listener.admission.decide(&mut health)), "Serve");
    for path in ["/", "/telemetry/", "//telemetry", "/Telemetry", "/%74elemetry", "/a/../health"] {
        assert_eq!(listener.asked(&asking("OPTIONS", path)), "not_found", "{path}");
    }
}

#[test]
fn bad_keys_lock_a_client_out_and_others_do_not() {
    let listener = listener(0, false);
    let request = |key: &str| asking("GET", "/topology").with("X_API_KEY", key);
    for _ in 0..5 {
        assert_eq!(listener.asked(&asking("GET", "/topology")), "auth_failed");
        assert_eq!(listener.asked(&request(&key('d'))), "tenant_disabled");
    }
    let bad = key('a').replace("abcdefghijklmnopa", "bbcdefghijklmnopa");
    for number in 1..=3 {
        let decision = listener.admission.decide(&mut request(&bad));
        assert_eq!(outcome(&decision), "auth_failed");
        let last: &[_] = if number == 3 { &["client locked out"] } else { &[] };
        assert_eq!(decision.events, [&["authentication failed"], last].concat());
    }
    assert_eq!(listener.asked(&request(&key('a'))), "auth_lockout");
    assert_eq!(listener.asked(&asking("GET", "/health")), "Serve");
}

#[test]
fn a_plane_that_went_away_is_missed_with_the_next_request() {
    let listener = listener(0, false);
    let request = asking("GET", "/topology").with("X_API_KEY", key('a'));
    assert_eq!(listener.asked(&request), "Serve");
    let (here, there) = (listener.folder.path().join("a1"), listener.folder.path().join("there"));
    std::fs::rename(&here, &there).unwrap();
    assert_eq!(listener.asked(&request), "tenant_unavailable");
    std::fs::rename(&there, &here).unwrap();
    assert_eq!(listener.asked(&request), "Serve");
}

#[test]
fn adapters_take_a_key_from_authorization_as_well() {
    let listener = listener(0, true);
    let good = key('a');
    let request = || asking("POST", "/write").with("CONTENT_LENGTH", "2").body(BodyState::Come(2));
    let asked = |value: &str| listener.asked(&request().with("AUTHORIZATION", value));
    for value in [format!("Token {good}"), format!("bearer  {good} "), basic(&format!("u:{good}"))]
    {
        assert_eq!(asked(&value), "Serve", "{value}");
    }
    assert_eq!(listener.asked(&request()), "auth_failed");
    for value in [good.clone(), basic(&good), format!("Digest {good}")] {
        assert!(listener.admission.limits.check_lockout("192.0.2.1").is_ok());
        assert_eq!(asked(&value), "auth_failed", "{value}");
    }
    let locked = listener.admission.limits.check_lockout("192.0.2.1");
    assert!(locked.is_err(), "each was sent and is no good");
}

/// Basic credentials (RFC 7617).
fn basic(plain: &str) -> String {
    format!("Basic {}", STANDARD.encode(plain))
}

#[test]
fn each_protocol_has_its_codings_types_and_message() {
    let listener = listener(0, true);
    let asked = |path, coding: &str, content_type: &str| {
        let request = asking("POST", path)
            .with("X_API_KEY", key('a'))
            .with("CONTENT_LENGTH", "2")
            .with("CONTENT_ENCODING", coding)
            .with("CONTENT_TYPE", content_type);
        listener.asked(&request.body(BodyState::Come(2)))
    };
    for (path, coding, content_type, expected) in [
        ("/write", "", "", "Serve"),
        ("/write", " GZIP ", "text/plain", "Serve"),
        ("/write", "snappy", "", "unsupported_content_encoding"),
        ("/api/v1/write", "", PROTOBUF, "unsupported_content_encoding"),
        ("/api/v1/write", "snappy", "Application/X-Protobuf", "Serve"),
        ("/api/v1/write", "snappy", "text/plain", "unsupported_media_type"),
        (
            "/api/v1/write",
            "snappy",
            "application/x-protobuf; proto=\"prometheus.WriteRequest\"",
            "Serve",
        ),
        (
            "/api/v1/write",
            "snappy",
            "application/x-protobuf;Proto=io.prometheus.write.v2.Request",
            "unsupported_media_type",
        ),
        ("/v1/metrics", "identity", "application/x-protobuf;charset=a", "Serve"),
        ("/v1/metrics", "identity", "application/json", "unsupported_media_type"),
    ] {
        assert_eq!(asked(path, coding, content_type), expected, "{path} {coding} {content_type}");
    }
    let chunked = PlainRequest { is_chunked: true, ..asking("POST", "/write") };
    let chunked = chunked.with("X_API_KEY", key('a'));
    for (body, expected) in [
        (BodyState::Due, "AwaitBody"),
        (BodyState::Come(0), "Serve"),
        (BodyState::Oversized, "request_too_large"),
    ] {
        assert_eq!(listener.asked(&chunked.clone().body(body)), expected);
    }
}
