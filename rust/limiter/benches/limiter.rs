//! Cost of the shared limiter to a request: alone, and while three other processes use it as well.
//!
//! `FLEETCAST_BENCH_DIR` is the folder of the file. If it is not set, the folder for temporary
//! files is used.

#![expect(clippy::print_stdout, reason = "the slowest calls are a result of this bench")]

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group};
use fleetcast_limiter::{Client, Limiter, LimiterRules};

const RULES: LimiterRules = LimiterRules {
    requests_per_minute: 30,
    lockout_failures: 10,
    lockout_window_seconds: 300,
    lockout_seconds: 300,
};

/// Set in the other processes: the file that they use without end.
const FILE: &str = "FLEETCAST_BENCH_FILE";

fn clients(count: u32) -> impl Iterator<Item = Client> {
    let all: Vec<_> = (0..count)
        .map(|number| Client::of(&format!("10.0.{}.{}", number / 256, number % 256)))
        .collect();
    all.into_iter().cycle()
}

fn ask_for_ever(path: &Path) {
    let limiter = Limiter::open(path, RULES).expect("opened");
    for client in clients(1_000) {
        limiter.admit(client, None).expect("a sound file");
    }
}

fn measure(criterion: &mut Criterion, name: &str, limiter: &Limiter) {
    let mut group = criterion.benchmark_group(name);
    // Every client comes again after 3 s of this clock, so nearly all requests are admitted.
    let mut now_ns = 1_000_000_000_000;
    let mut many = clients(1_000);
    group.bench_function("admitted", |bencher| {
        bencher.iter(|| {
            now_ns += 3_000_000;
            limiter.admit(many.next().expect("a cycle"), Some(now_ns)).expect("a sound file")
        });
    });
    let one = Client::of("10.1.1.1");
    group.bench_function("refused", |bencher| {
        bencher.iter(|| limiter.admit(one, None).expect("a sound file"));
    });
    group.bench_function("lockout", |bencher| {
        bencher.iter(|| limiter.lockout(one, None).expect("a sound file"));
    });
    group.finish();
    let mut calls: Vec<Duration> = Vec::new();
    for client in clients(1_000).take(200_000) {
        let start = Instant::now();
        limiter.admit(client, None).expect("a sound file");
        calls.push(start.elapsed());
    }
    calls.sort_unstable();
    let at = |share: usize| calls[calls.len() * share / 10_000];
    println!("{name}: p50 {:?}, p99 {:?}, p99.9 {:?}", at(5_000), at(9_900), at(9_990));
}

fn limiter(criterion: &mut Criterion) {
    let folder = std::env::var_os("FLEETCAST_BENCH_DIR")
        .map_or_else(tempfile::tempdir, tempfile::tempdir_in)
        .expect("a folder");
    let path = folder.path().join("limiter");
    let limiter = Limiter::open(&path, RULES).expect("opened");
    println!("{} clients fit", limiter.clients_max());
    measure(criterion, "alone", &limiter);
    let others: Vec<Child> = (0..3)
        .map(|_| {
            let program = std::env::current_exe().expect("this program");
            Command::new(program).env(FILE, &path).spawn().expect("a process")
        })
        .collect();
    measure(criterion, "beside three processes", &limiter);
    for mut other in others {
        other.kill().expect("killed");
        other.wait().expect("gone");
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = limiter
}

fn main() {
    if let Some(path) = std::env::var_os(FILE) {
        return ask_for_ever(Path::new(&path));
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
