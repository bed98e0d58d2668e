//! Appends and views of the store beside the bare driver and the embedded store: the same blocks
//! with as many in flight, in turns. Medians of the turns are divided.
//!
//! `docs/benchmarks.md` has the command, which starts three servers with quorum commit. The embedded
//! store lies below `target/`, on the disk of the repository.

#![expect(clippy::print_stdout, reason = "a table is its result")]
#![expect(clippy::unwrap_used, reason = "without a measurement there is nothing to go on with")]

mod bare;
mod block;
mod schema;
mod stores;

use std::time::{Duration, Instant};

use fleetcast_core::storage::store::Store;

use self::bare::Bare;
use self::schema::Schema;
use self::stores::{EmbeddedPlane, SharedPlane, append, view};

const TURNS: usize = 7;
const TURN: Duration = Duration::from_millis(250);

/// Writers and planes of each line.
const APPENDS: [(usize, usize); 5] = [(1, 1), (8, 1), (8, 8), (16, 1), (16, 16)];

/// Writers on one plane, and processes that they are of.
const CROWD: (usize, usize) = (24, 3);

fn main() {
    let Ok(url) = std::env::var("DATABASE") else {
        println!("skipped: no DATABASE; docs/benchmarks.md says how to start one");
        return;
    };
    let schema = Schema::new(&url);
    schema.settle();
    println!("{:<34} bare/s  store/s  embedded/s  store to bare", "");
    for (writers, planes) in APPENDS {
        compare_appends(&schema, writers, planes);
    }
    compare_crowd(&schema);
    compare_views(&schema);
}

fn compare_appends(schema: &Schema, writers: usize, planes: usize) {
    let bare = Bare::new(schema, writers);
    let planes: Vec<SharedPlane> = (0..planes).map(|_| SharedPlane::new(schema)).collect();
    let embedded: Vec<EmbeddedPlane> = planes.iter().map(|_| EmbeddedPlane::new()).collect();
    // One process, so one pool, with as many connections as the driver has.
    let process = schema.process(writers);
    let shared: Vec<_> = planes.iter().map(|plane| plane.open(&process)).collect();
    let embedded: Vec<_> = embedded.iter().map(EmbeddedPlane::open).collect();
    let rates = append_in_turns(&bare, &[&shared, &embedded], writers);
    let ratio = rates[1] / rates[0];
    let plural = if planes.len() == 1 { "" } else { "s" };
    let name = format!("append, {writers} in flight, {} plane{plural}", planes.len());
    print_line(&name, rates, ratio, ">= 0.7");
    if let [plane] = &planes[..] {
        print_commits(&bare, plane, "");
    }
}

fn compare_crowd(schema: &Schema) {
    let (writers, processes) = CROWD;
    let bare = Bare::new(schema, writers);
    let (plane, embedded) = (SharedPlane::new(schema), EmbeddedPlane::new());
    let processes: Vec<_> = (0..processes).map(|_| schema.process(2)).collect();
    let shared: Vec<_> = processes.iter().map(|process| plane.open(process)).collect();
    let embedded = [embedded.open()];
    let rates = append_in_turns(&bare, &[&shared, &embedded], writers);
    let name = format!("append, {writers} of {} processes, 1 plane", processes.len());
    print_line(&name, rates, rates[1] / rates[0], "");
    print_commits(&bare, &plane, ", goal <= 0.3");
}

/// Transactions that wrote the log of a plane, all turns counted.
fn print_commits(bare: &Bare, plane: &SharedPlane, goal: &str) {
    let (batches, commits) = bare.batches_and_commits(plane.name());
    let share = ratio(commits, batches);
    println!("  {commits} commits for {batches} batches: {share:.2} each{goal}");
}

fn append_in_turns(
    bare: &Bare,
    [shared, embedded]: &[&[Box<dyn Store>]; 2],
    writers: usize,
) -> [f64; 3] {
    let mut insert = || bare.append(TURN);
    let mut append_shared = || append(shared, writers, TURN);
    let mut append_embedded = || append(embedded, writers, TURN);
    in_turns([&mut insert, &mut append_shared, &mut append_embedded])
}

fn compare_views(schema: &Schema) {
    let (bare, threaded) = (Bare::new(schema, 1), Bare::with_thread(schema));
    let (plane, embedded) = (SharedPlane::new(schema), EmbeddedPlane::new());
    let process = schema.process(1);
    let (shared, embedded) = (plane.open(&process), embedded.open());
    for store in [&shared, &embedded] {
        (0..100).for_each(|_| store.append(vec![block::new()]).unwrap());
    }
    let [bare, threaded, shared, embedded] = in_turns([
        &mut || bare.select_one(TURN),
        &mut || threaded.select_one(TURN),
        &mut || view(&*shared, TURN),
        &mut || view(&*embedded, TURN),
    ]);
    let lines = [("view, SELECT 1", bare), ("view, SELECT 1 by a thread", threaded)];
    for (name, bare) in lines {
        print_line(name, [bare, shared, embedded], bare / shared, "<= 2.0, in time");
    }
}

/// Median rates of those who take turns, a first one not counted.
fn in_turns<const N: usize>(mut subjects: [&mut dyn FnMut() -> u64; N]) -> [f64; N] {
    let mut rates: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for turn in 0..=TURNS {
        for (subject, rates) in subjects.iter_mut().zip(&mut rates) {
            let began = Instant::now();
            let done = u32::try_from(subject()).unwrap();
            if turn > 0 {
                rates.push(f64::from(done) / began.elapsed().as_secs_f64());
            }
        }
    }
    rates.map(|mut rates| {
        rates.sort_unstable_by(f64::total_cmp);
        rates[rates.len() / 2]
    })
}

fn print_line(name: &str, [bare, store, embedded]: [f64; 3], ratio: f64, goal: &str) {
    let goal = if goal.is_empty() { String::new() } else { format!(", goal {goal}") };
    println!("{name:<34} {bare:>6.0} {store:>8.0} {embedded:>11.0}  {ratio:.2}{goal}");
}

#[expect(clippy::cast_precision_loss, reason = "a run has fewer batches than that")]
fn ratio(count: i64, of: i64) -> f64 {
    count as f64 / of as f64
}
