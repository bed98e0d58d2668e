//! The rules against a model that keeps every instant, and the file against damage and removal.

use std::collections::HashMap;
use std::os::unix::fs::FileExt;

use proptest::prelude::*;
use tempfile::TempDir;

use crate::rules::{RATE_WINDOW_NS, SECOND_NS};
use crate::{Client, Limiter, LimiterResult, LimiterRules, RetryAfter};

const RULES: LimiterRules = LimiterRules {
    requests_per_minute: 30,
    lockout_failures: 10,
    lockout_window_seconds: 300,
    lockout_seconds: 300,
};
const START_NS: u64 = 1_000 * SECOND_NS;

fn opened(rules: LimiterRules) -> (TempDir, Limiter) {
    let folder = tempfile::tempdir().expect("a folder");
    let limiter = Limiter::open(&folder.path().join("limiter"), rules).expect("opened");
    (folder, limiter)
}

#[expect(clippy::unnecessary_wraps, reason = "calls take the instant so")]
fn at(seconds: f64) -> Option<u64> {
    let after = std::time::Duration::from_secs_f64(seconds).as_nanos();
    Some(START_NS + u64::try_from(after).expect("a short test"))
}

/// Returns the whole seconds to wait, or 0 for no wait.
fn wait(outcome: LimiterResult<Option<RetryAfter>>) -> u64 {
    outcome.expect("a sound file").map_or(0, RetryAfter::get)
}

/// A model that keeps every admitted instant of every client, and looks at all of them.
#[derive(Default)]
struct Model(HashMap<Client, Vec<u64>>);

impl Model {
    fn admit(&mut self, client: Client, now_ns: u64, limit: usize) -> u64 {
        let all = self.0.entry(client).or_default();
        let recent: Vec<u64> =
            all.iter().copied().filter(|at| now_ns - at < RATE_WINDOW_NS).collect();
        if recent.len() < limit {
            all.push(now_ns);
            return 0;
        }
        let oldest_ns = recent[recent.len() - limit];
        (oldest_ns + RATE_WINDOW_NS - now_ns).div_ceil(SECOND_NS).max(1)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// B2, B3, B8: the limiter answers as the model does, so never more than the limit in any 60 s.
    #[test]
    fn the_rate_is_that_of_a_log_of_everything(
        limit in prop_oneof![Just(1_u32), Just(2), Just(30), Just(40)],
        arrivals in prop::collection::vec((0_u8..3, 1_000_u64..4_000_000_000), 1..400),
    ) {
        let (_folder, limiter) = opened(LimiterRules { requests_per_minute: limit, ..RULES });
        let mut model = Model::default();
        let mut now_ns = START_NS;
        for (client, gap_ns) in arrivals {
            now_ns += gap_ns / u64::from(limit);
            let client = Client::of(&format!("10.0.0.{client}"));
            let expected = model.admit(client, now_ns, limit as usize);
            prop_assert_eq!(wait(limiter.admit(client, Some(now_ns))), expected);
        }
        for admitted in model.0.values() {
            for span in admitted.windows(limit as usize + 1) {
                prop_assert!(span[limit as usize] - span[0] >= RATE_WINDOW_NS);
            }
        }
    }
}

#[test]
fn a_client_that_waits_for_retry_after_is_admitted() {
    let (_folder, limiter) = opened(RULES);
    let client = Client::of("10.0.0.1");
    for request in 0..30 {
        assert_eq!(wait(limiter.admit(client, at(0.5 * f64::from(request)))), 0);
    }
    // B3: refused requests do not extend the minute.
    for (now, seconds) in [(20.0, 40), (20.5, 40), (59.0, 1), (59.999, 1)] {
        assert_eq!(wait(limiter.admit(client, at(now))), seconds, "{now}");
    }
    assert_eq!(wait(limiter.admit(Client::of("10.0.0.2"), at(59.0))), 0);
    assert_eq!(wait(limiter.admit(client, at(60.0))), 0);
    assert_eq!(wait(limiter.admit(client, at(60.0))), 1);
}

/// B12, B14: seconds, events, and how long the client is locked out after each.
#[test]
fn lockout_follows_its_rules() {
    let (_folder, limiter) = opened(RULES);
    let client = Client::of("10.0.0.1");
    let fail = |now| limiter.record_failure(client, at(now)).expect("a sound file");
    let left = |now| wait(limiter.lockout(client, at(now)));
    for failure in 0..9 {
        fail(f64::from(failure));
        assert_eq!(left(f64::from(failure)), 0);
    }
    // The tenth failure within 300 s of the first locks. The first was 300 s ago, so this failure
    // does not lock.
    fail(300.0);
    assert_eq!(left(300.0), 0);
    fail(300.5);
    assert_eq!(left(300.5), 300);
    // Other clients are not affected (B11), and the rate does not depend on the lock (B15).
    assert_eq!(wait(limiter.lockout(Client::of("10.0.0.2"), at(301.0))), 0);
    assert_eq!(wait(limiter.admit(client, at(301.0))), 0);
    // Failures of requests in progress neither extend the lock nor count after it.
    for (now, seconds) in [(310.0, 291), (400.0, 201), (600.4, 1)] {
        fail(now);
        assert_eq!(left(now), seconds);
    }
    assert_eq!(left(600.5), 0);
    for failure in 0..9 {
        fail(600.5 + f64::from(failure));
        assert_eq!(left(609.0), 0, "{failure}");
    }
    fail(610.0);
    assert_eq!(left(610.0), 300);
}

#[test]
fn one_failure_may_lock_and_zero_is_off() {
    let client = Client::of("::1");
    let (_folder, limiter) = opened(LimiterRules { lockout_failures: 1, ..RULES });
    limiter.record_failure(client, None).expect("a sound file");
    assert_eq!(wait(limiter.lockout(client, None)), 300);

    let off = LimiterRules { requests_per_minute: 0, lockout_failures: 0, ..RULES };
    let (_folder, limiter) = opened(off);
    for _ in 0..100 {
        limiter.record_failure(client, None).expect("a sound file");
        assert_eq!(wait(limiter.admit(client, None)) + wait(limiter.lockout(client, None)), 0);
    }
}

#[test]
fn a_full_bucket_gives_way_to_new_clients_by_age() {
    // The higher the limits, the fewer the clients.
    let rules = LimiterRules { requests_per_minute: 1_000_000, ..RULES };
    let (_folder, limiter) = opened(rules);
    assert_eq!(limiter.clients_max(), 64);
    let client = |index: u32| Client::of(&format!("10.0.{}.{}", index / 256, index % 256));
    let locked = client(0);
    for _ in 0..10 {
        limiter.record_failure(locked, at(0.0)).expect("a sound file");
    }
    for index in 1..1_000 {
        assert_eq!(wait(limiter.admit(client(index), at(f64::from(index) / 10.0))), 0);
    }
    // A lock outlives a flood of other clients.
    assert_eq!(wait(limiter.lockout(locked, at(100.0))), 200);
}

#[test]
fn openers_share_the_counts_until_the_rings_or_the_boot_change() {
    let (folder, first) = opened(RULES);
    let path = folder.path().join("limiter");
    let client = Client::of("10.0.0.1");
    for _ in 0..30 {
        assert_eq!(wait(first.admit(client, at(0.0))), 0);
    }
    let second = Limiter::open(&path, RULES).expect("opened");
    assert_eq!(wait(second.admit(client, at(1.0))), 59);
    let other =
        Limiter::open(&path, LimiterRules { requests_per_minute: 31, ..RULES }).expect("opened");
    assert_eq!(wait(other.admit(client, at(1.0))), 0);
    assert_eq!(wait(first.admit(client, at(1.0))), 59, "it keeps what it counts by");

    let boot = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
    boot.write_all_at(b"another boot", 8).expect("written");
    let later = Limiter::open(&path, RULES).expect("opened");
    assert_eq!(wait(later.admit(client, at(0.0))), 0);
}

#[test]
fn damage_is_an_error_or_forgotten_but_never_refuses_for_long() {
    for length in [0, 1, 80, 4_095, 4_096, 100_000] {
        let (folder, limiter) = opened(RULES);
        let path = folder.path().join("limiter");
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
        file.set_len(length).expect("cut");
        let clients = (0..=255).map(|index| Client::of(&format!("10.0.0.{index}")));
        let failed = clients.filter(|client| limiter.admit(*client, at(0.0)).is_err()).count();
        assert!(failed > 0, "{length}");
        let again = Limiter::open(&path, RULES).expect("made anew");
        assert_eq!(wait(again.admit(Client::of("10.0.0.1"), at(0.0))), 0);
    }
    let (folder, limiter) = opened(RULES);
    let client = Client::of("10.0.0.1");
    limiter.admit(client, at(0.0)).expect("a sound file");
    let file =
        std::fs::OpenOptions::new().read(true).write(true).open(folder.path().join("limiter"));
    let file = file.expect("a file");
    let rings = limiter.layout().rings_offset(0);
    let mut heads = vec![0; usize::try_from(rings).expect("small")];
    file.read_exact_at(&mut heads, 0).expect("read");
    let head = heads.chunks(32).skip(128).position(|head| head.iter().any(|byte| *byte != 0));
    let slot = head.expect("the client's slot") as u64;
    let ring = limiter.layout().rings_offset(slot);
    file.write_all_at(&[0xff; 312], ring).expect("written");
    file.write_all_at(&[0xff; 16], 4_096 + slot * 32 + 16).expect("written");
    for second in 0..100 {
        assert_eq!(wait(limiter.admit(client, at(f64::from(second)))), 0);
        assert_eq!(wait(limiter.lockout(client, at(f64::from(second)))), 0);
        limiter.record_failure(client, at(400.0 * f64::from(second))).expect("no panic");
    }
}

#[test]
fn threads_take_turns() {
    let (folder, limiter) = opened(RULES);
    let other = Limiter::open(&folder.path().join("limiter"), RULES).expect("opened");
    let client = Client::of("10.0.0.1");
    let admitted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = [&limiter, &other, &limiter, &other]
            .into_iter()
            .map(|limiter| {
                scope.spawn(move || {
                    (0..50).filter(|_| wait(limiter.admit(client, None)) == 0).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!(admitted, 30, "B6");
}
