//! Costs of names that a store has never seen: writing the rows of new entities beside the same rows
//! again, and opening the store.
//!
//!     cargo bench --bench names -- [ENTITIES] [STEP ...]
//!
//! Steps are `first`, `again`, `open` and `shuffled`; all of them without any. Two runs under `perf
//! stat -e instructions:u` that differ by a step tell what it executes.

#![expect(clippy::print_stdout, reason = "the figures are the result of this bench")]
#![expect(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]

mod inputs;

use std::path::Path;

use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::model::time::SECOND_NS;
use fleetcast_core::plane::{Acknowledgement, Plane};
use fleetcast_core::storage::store::DirectoryPlanes;
use fleetcast_core::wire::Format;

use self::inputs::{BODY_RECORDS, Dice, Fleet, START_NS};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MASTER_KEY: [u8; 32] = [7; 32];
const ENTITIES: u32 = 100_000;
const INGEST_NS: i64 = START_NS + 86_400 * SECOND_NS;

/// CPU seconds of this thread so far, the kernel's part included.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds: u64 = text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    nanoseconds as f64 / 1e9
}

/// Bytes of memory of this process that no file stands behind.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.expect("a number") << 10
}

/// The records of `body` in another order.
fn shuffled(body: &[u8], dice: &mut Dice) -> Vec<u8> {
    let text = std::str::from_utf8(&body[1..body.len() - 1]).expect("JSON");
    let mut records: Vec<&str> =
        text.split_inclusive("}},").map(|r| r.trim_end_matches(',')).collect();
    for at in (1..records.len()).rev() {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to `at`")]
        let other = (dice.roll() * at as f64) as usize;
        records.swap(at, other);
    }
    format!("[{}]", records.join(",")).into_bytes()
}

fn timed(name: &str, rows: usize, work: impl FnOnce()) {
    let (start, memory) = (cpu_seconds(), resident_bytes());
    work();
    let seconds = cpu_seconds() - start;
    println!(
        "{name:<10} {:.3} us a row, {:.0} k rows a CPU second, {:+.1} MB",
        seconds / rows as f64 * 1e6,
        rows as f64 / seconds / 1e3,
        (resident_bytes() as f64 - memory as f64) / 1e6,
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let entities = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(ENTITIES);
    let steps: Vec<&str> =
        arguments.iter().map(String::as_str).filter(|a| a.parse::<u32>().is_err()).collect();
    let wants = |step: &str| steps.is_empty() || steps.contains(&step);
    let bodies: Vec<Vec<u8>> = (0..entities / BODY_RECORDS)
        .map(|number| Fleet::new(number * BODY_RECORDS).body(START_NS))
        .collect();
    let rows = bodies.len() * BODY_RECORDS as usize;
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let folder = tempfile::tempdir_in(target).expect("a folder below target");
    let planes = DirectoryPlanes::new(folder.path());
    Plane::create(&planes, "plane", &MASTER_KEY).expect("a fresh folder");
    let open = || Plane::open(&planes, "plane", &MASTER_KEY, "bench").expect("it is sound");
    let plane = open();
    let limits = WriteLimits::default();
    let write = |bodies: &[Vec<u8>]| {
        for body in bodies {
            let written =
                plane.write(Format::Json, body, &limits, INGEST_NS, Acknowledgement::Durable);
            written.expect("a valid body");
        }
    };
    if wants("first") {
        timed("first", rows, || write(&bodies));
    }
    if wants("again") {
        for _ in 0..3 {
            timed("again", rows, || write(&bodies));
        }
    }
    if wants("shuffled") {
        let mut dice = Dice(3);
        let shuffled: Vec<_> = bodies.iter().map(|body| shuffled(body, &mut dice)).collect();
        for _ in 0..3 {
            timed("shuffled", rows, || write(&shuffled));
        }
    }
    drop(plane);
    if wants("open") {
        timed("open", rows, || drop(open()));
    }
}
