//! CPU of compaction beside that of the writes whose rows it takes, in turns.
//!
//!     cargo bench --bench compaction -- [ROWS] [--write-only | --open] [--past]
//!
//! Both are counted by the kernel, so nothing else of the machine counts, and both are of the same
//! rows in turn. At last the day ends, so that its segments become one. `--write-only` leaves
//! compaction out and `--open` the end of the day, so that the difference of two runs under `perf
//! stat -e instructions:u` is what these execute. `--past` has the rows come ten days late, a look
//! a second, as those of the service's benchmark do.

#![expect(clippy::print_stdout, reason = "the figures are the result of this bench")]
#![expect(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]

mod inputs;

use std::fmt::Write;
use std::path::Path;

use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::model::time::{SECOND_NS, write_rfc3339};
use fleetcast_core::plane::{Acknowledgement, CompactionReport, CompactionTrigger, Plane};
use fleetcast_core::storage::store::DirectoryPlanes;
use fleetcast_core::wire::Format;

use self::inputs::{BODY_RECORDS, Dice, Fleet, START_NS};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const DUE: CompactionTrigger = CompactionTrigger::LargeOrAged { age_ns: 3_600 * SECOND_NS };
const MASTER_KEY: [u8; 32] = [7; 32];
/// Bodies between two looks of the maintenance process: it looks once a second.
const BODIES_PER_LOOK: u64 = 500;
/// Bodies that are sent again and again.
const REPEATED: u64 = 16;
const TRUCKS: u32 = 500;
/// Bodies of the large fleet at each instant.
const LARGER: u32 = 16;

/// Trucks that send two measurements in turn, in no order, some of them late.
struct Trucks {
    dice: Dice,
    number: u64,
}

impl Trucks {
    fn body(&mut self) -> Vec<u8> {
        let mut order: Vec<u32> = (0..TRUCKS).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, self.draw(at + 1));
        }
        let mut out = String::from("[");
        for truck in order {
            let late = if self.dice.roll() < 0.05 { 1 + self.draw(6) } else { 0 };
            let step = self.number.saturating_sub(late as u64);
            let mut time = Vec::new();
            let time_ns = START_NS + i64::try_from(step).expect("small") * 10 * SECOND_NS;
            write_rfc3339(&mut time, time_ns);
            let time = String::from_utf8(time).expect("digits");
            for (measurement, fields) in [
                (
                    "telemetry",
                    &["lat:5", "lon:5", "ele:0", "vel:0", "head:0", "grade:0", "use:1"][..],
                ),
                ("link", &["fuel:1", "load:0", "status:0"][..]),
            ] {
                let comma = if out.len() == 1 { "" } else { "," };
                write!(
                    out,
                    "{comma}{{\"measurement\":\"{measurement}\",\"time\":\"{time}\",\"tags\":{{\
                     \"entity_id\":\"truck_{truck}\",\"fleet\":\"East\"}},\"fields\":{{"
                )
                .expect("memory");
                let missing = if self.dice.roll() < 0.1 { self.draw(fields.len()) } else { 9 };
                let there = fields.iter().enumerate().filter(|(at, _)| *at != missing);
                for (number, (at, field)) in there.enumerate() {
                    let (name, decimals) = field.split_once(':').expect("a name and digits");
                    let value = f64::from(truck) * 0.1 + 10.0 * at as f64 + 5.0 * self.dice.roll();
                    let decimals: usize = decimals.parse().expect("digits");
                    let comma = if number == 0 { "" } else { "," };
                    write!(out, "{comma}\"{name}\":{value:.decimals$}").expect("memory");
                }
                out.push_str("}}");
            }
        }
        out.push(']');
        self.number += 1;
        out.into_bytes()
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to `below`")]
    fn draw(&mut self, below: usize) -> usize {
        ((self.dice.roll() * below as f64) as usize).min(below - 1)
    }
}

/// Work that is done.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Work {
    Writes,
    OpenDay,
    All,
}

/// CPU seconds of this thread so far.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds: u64 = text.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    nanoseconds as f64 / 1e9
}

fn device_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).expect("a number")
}

/// Calls `work` in a thread of a name by which a profiler tells it apart.
fn in_a_thread<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("compaction".to_owned());
        let joined = thread.spawn_scoped(scope, work).expect("a thread").join();
        joined.expect("it does not panic")
    })
}

/// CPU seconds and device bytes of a compaction, and the segments that it wrote.
fn compaction_of(plane: &Plane, now_ns: i64) -> (f64, u64, CompactionReport) {
    in_a_thread(|| {
        let (start, bytes) = (cpu_seconds(), device_bytes());
        let done = plane.compact(DUE, now_ns).expect("room").expect("nobody else");
        (cpu_seconds() - start, device_bytes() - bytes, done)
    })
}

fn run(name: &str, rows: u64, (work, is_past): (Work, bool), mut body: impl FnMut(u64) -> Vec<u8>) {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let folder = tempfile::tempdir_in(target).expect("a folder below target");
    let planes = DirectoryPlanes::new(folder.path());
    Plane::create(&planes, "plane", &MASTER_KEY).expect("a fresh folder");
    let plane = Plane::open(&planes, "plane", &MASTER_KEY, "bench").expect("just made");
    let (mut writing, mut compacting) = (0.0, 0.0);
    let (mut written, mut rewritten, mut device, mut encoded) = (0, 0, 0, 0);
    let bodies = rows / u64::from(BODY_RECORDS);
    let limits = WriteLimits::default();
    for number in 0..bodies {
        let body = body(number);
        let looks = i64::try_from(number / BODIES_PER_LOOK).expect("small");
        let now_ns = if is_past {
            START_NS + (864_000 + looks) * SECOND_NS
        } else {
            START_NS + i64::try_from(number + 1).expect("small") * 10 * SECOND_NS
        };
        let (start, bytes) = (cpu_seconds(), device_bytes());
        plane.write(Format::Json, &body, &limits, now_ns, Acknowledgement::Durable).expect("valid");
        let end = cpu_seconds();
        writing += end - start;
        written += device_bytes() - bytes;
        if work > Work::Writes && (number + 1) % BODIES_PER_LOOK == 0 {
            let (seconds, bytes, done) = compaction_of(&plane, now_ns);
            compacting += seconds;
            device += bytes;
            rewritten += done.bytes_written;
            encoded += done.rows_written;
        }
    }
    let mut ending = 0.0;
    if work == Work::All {
        let (seconds, _, done) = compaction_of(&plane, START_NS + 30 * 86_400 * SECOND_NS);
        ending = seconds;
        encoded += done.rows_written;
    }
    let a_row = |sum: f64| sum / rows as f64;
    let stats = plane.stats().expect("it is open");
    println!(
        "{name:<28} write {:.3} us a row, compact {:.3}, ratio {:.2}, with the end of the day {:.2}; \
         encoded {:.2} times; \
         bytes a row: log {:.1}, segments {:.1}, device {:.1}, at last {:.2}",
        a_row(writing * 1e6),
        a_row(compacting * 1e6),
        compacting / writing,
        (compacting + ending) / writing,
        a_row(encoded as f64),
        a_row(written as f64),
        a_row(rewritten as f64),
        a_row(device as f64),
        a_row(stats.space.segments as f64),
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rows = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(4_000_000);
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let work = match (has("--write-only"), has("--open")) {
        (true, _) => Work::Writes,
        (_, true) => Work::OpenDay,
        _ => Work::All,
    };
    let work = (work, has("--past"));
    let is_wanted = |name: &str| {
        let names = || arguments.iter().filter(|argument| name.starts_with(argument.as_str()));
        names().count() > 0
            || !["fleet", "large", "trucks", "repeated"]
                .iter()
                .any(|n| arguments.iter().any(|a| a == n))
    };
    let mut fleet = Fleet::new(0);
    if is_wanted("fleet") {
        run("fleet", rows, work, |number| {
            fleet.body(START_NS + i64::try_from(number).expect("small") * 10 * SECOND_NS)
        });
    }
    if is_wanted("large fleet") {
        let mut fleets: Vec<_> =
            (0..LARGER).map(|number| Fleet::new(number * BODY_RECORDS)).collect();
        run("large fleet", rows, work, |number| {
            let step = i64::try_from(number / u64::from(LARGER)).expect("small");
            let fleet = usize::try_from(number % u64::from(LARGER)).expect("below 16");
            fleets[fleet].body(START_NS + step * 10 * SECOND_NS)
        });
    }
    if is_wanted("repeated bodies") {
        let mut fleet = Fleet::new(0);
        let bodies: Vec<_> = (0..REPEATED)
            .map(|number| {
                fleet.body(START_NS + i64::try_from(number).expect("small") * 10 * SECOND_NS)
            })
            .collect();
        // Four clients, each some bodies ahead of the one before.
        run("repeated bodies", rows, work, |number| {
            bodies[((number / 4 + number % 4 * 5) % REPEATED) as usize].clone()
        });
    }
    if is_wanted("trucks") {
        let mut trucks = Trucks { dice: Dice(7), number: 0 };
        run("trucks", rows, work, |_| trucks.body());
    }
}
