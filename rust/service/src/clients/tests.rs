//! Addresses of clients (B5), and limits whose own errors do not refuse clients (B7).

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fleetcast_limiter::LimiterRules;

use super::{ClientAddresses, ClientLimits, LimiterFile, Networks};
use crate::refusal::{ContextValue, Refusal};

fn addresses() -> ClientAddresses {
    ClientAddresses::new(Networks::new(["10.0.0.0/8", "192.0.2.7", "2001:db8:ff::/48"]))
}

#[test]
fn the_client_is_the_right_most_address_that_is_no_proxy() {
    for (peer, forwarded, client) in [
        ("198.51.100.1", None, "198.51.100.1"),
        ("198.51.100.1", Some("203.0.113.9"), "198.51.100.1"), // forged: the peer is no proxy
        ("10.1.1.1", None, "10.1.1.1"),
        ("10.1.1.1", Some(""), "10.1.1.1"),
        ("10.1.1.1", Some(" , ,"), "10.1.1.1"),
        ("10.1.1.1", Some("203.0.113.9"), "203.0.113.9"),
        ("::ffff:10.1.1.1", Some("203.0.113.9"), "203.0.113.9"),
        ("2001:db8:ff::1", Some("203.0.113.9"), "203.0.113.9"),
        ("10.1.1.1", Some("1.1.1.1, 203.0.113.9"), "203.0.113.9"), // the client wrote the first
        ("10.1.1.1", Some("1.1.1.1, 203.0.113.9, 192.0.2.7,10.2.2.2"), "203.0.113.9"),
        ("10.1.1.1", Some("203.0.113.9, ::ffff:10.2.2.2"), "203.0.113.9"),
        ("10.1.1.1", Some("10.3.3.3, 10.2.2.2"), "10.3.3.3"), // only proxies: the first entry
        ("10.1.1.1", Some("203.0.113.9, unknown"), "10.1.1.1"),
        ("10.1.1.1", Some("203.0.113.9, _hidden, 10.2.2.2"), "10.2.2.2"),
        ("10.1.1.1", Some("203.0.113.9:4711"), "203.0.113.9"),
        ("10.1.1.1", Some("[2001:db8::1]:4711"), "2001:db8::1"),
        ("10.1.1.1", Some("2001:db8::1"), "2001:db8::1"),
        ("10.1.1.1", Some("2001:DB8:0:0::1"), "2001:db8::1"),
        ("10.1.1.1", Some("fe80::1%eth0"), "fe80::1%eth0"),
        ("10.1.1.1", Some("203.0.113.9%eth0"), "10.1.1.1"),
        ("10.1.1.1", Some("::ffff:203.0.113.9"), "203.0.113.9"),
        ("", Some("203.0.113.9"), ""), // a Unix socket
    ] {
        assert_eq!(addresses().of(peer, forwarded.map(str::as_bytes)), client, "{forwarded:?}");
    }
    let believed = ClientAddresses::default().of("10.1.1.1", Some(b"203.0.113.9")).into_owned();
    assert_eq!(believed, "10.1.1.1", "nothing is believed without trusted proxies");
}

#[test]
fn a_network_has_its_addresses_and_no_others() {
    let networks = Networks::new(["203.0.113.0/28", "2001:db8::/48", "0.0.0.0/0"]);
    assert!(networks.has("198.51.100.1"));
    let networks =
        Networks::new(["203.0.113.0/28", "2001:db8::/48", "192.0.2.1", "none", "::1/129"]);
    for (address, is_there) in [
        ("203.0.113.15", true),
        ("203.0.113.16", false),
        ("::ffff:203.0.113.7", true),
        ("2001:db8:0:1::5", true),
        ("2001:db8:1::5", false),
        ("192.0.2.1", true),
        ("192.0.2.2", false),
        ("", false),
    ] {
        assert_eq!(networks.has(address), is_there, "{address}");
    }
}

struct Files {
    folder: tempfile::TempDir,
    faults: Arc<AtomicUsize>,
}

impl Files {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), faults: Arc::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("run").join(name)
    }

    fn file(&self, name: &str, requests_per_minute: u32) -> Arc<LimiterFile> {
        let faults = Arc::clone(&self.faults);
        let rules = LimiterRules {
            requests_per_minute,
            lockout_failures: 2,
            lockout_window_seconds: 300,
            lockout_seconds: 300,
        };
        let on_fault = Arc::new(move |_: &_| _ = faults.fetch_add(1, Ordering::Relaxed));
        Arc::new(LimiterFile::new(self.path(name), rules, on_fault))
    }
}

fn code(outcome: Result<(), Refusal>) -> Option<&'static str> {
    let Err(refusal) = outcome else { return None };
    let seconds = refusal.context.iter().find(|(name, _)| *name == "retry_after_seconds");
    assert!(matches!(seconds, Some((_, ContextValue::Whole(1..)))), "{refusal:?}");
    Some(refusal.code)
}

#[test]
fn a_listener_with_a_rate_of_its_own_shares_the_lockout_alone() {
    let files = Files::new();
    let all = || files.file("limiter", 1);
    let public = ClientLimits::new(Networks::default(), all(), all());
    let other = ClientLimits::new(Networks::default(), files.file("adapters", 2), all());
    assert_eq!(code(public.admit("203.0.113.7")), None);
    for _ in 0..2 {
        assert_eq!(code(other.admit("203.0.113.7")), None);
    }
    for limits in [&public, &other] {
        assert_eq!(code(limits.admit("203.0.113.7")), Some("rate_limited"));
        limits.record_failure("203.0.113.7");
    }
    for limits in [&public, &other] {
        assert_eq!(code(limits.check_lockout("203.0.113.7")), Some("auth_lockout"));
    }
}

#[test]
fn a_limit_of_zero_and_an_exempt_client_are_not_counted() {
    let files = Files::new();
    let unlimited = files.file("unlimited", 0);
    let limits = ClientLimits::new(Networks::default(), unlimited, files.file("limiter", 1));
    let exempt = ClientLimits::new(
        Networks::new(["203.0.113.7"]),
        files.file("exempt", 1),
        files.file("limiter", 1),
    );
    for _ in 0..10 {
        assert_eq!(code(limits.admit("203.0.113.7")), None);
        assert_eq!(code(exempt.admit("203.0.113.7")), None);
    }
    assert!(!files.path("unlimited").exists() && !files.path("exempt").exists());
    assert_eq!(code(exempt.admit("203.0.113.8")), None);
    assert_eq!(code(exempt.admit("203.0.113.8")), Some("rate_limited"));
}

#[test]
fn a_broken_file_lets_requests_pass_and_mends_itself_once_it_can() {
    let files = Files::new();
    let in_the_way = files.folder.path().join("run");
    fs::write(&in_the_way, "in the way").unwrap();
    let file = files.file("limiter", 1);
    let limits = ClientLimits::new(Networks::default(), Arc::clone(&file), file);
    for _ in 0..3 {
        assert_eq!(code(limits.admit("10.0.0.1")), None);
    }
    assert_eq!(code(limits.check_lockout("10.0.0.1")), None);
    limits.record_failure("10.0.0.1");
    assert_eq!(files.faults.load(Ordering::Relaxed), 5);

    fs::remove_file(&in_the_way).unwrap();
    assert_eq!(code(limits.admit("10.0.0.1")), None);
    assert_eq!(code(limits.admit("10.0.0.1")), Some("rate_limited"));
    fs::write(files.path("limiter"), "cut short while open").unwrap();
    assert_eq!(code(limits.admit("10.0.0.1")), None);
    assert_eq!(files.faults.load(Ordering::Relaxed), 6);
}
