//! A test of the tests. Parts of the durable path are left out, one at a time, and a test must find
//! each. `../../flaws.rs` has the edits that leave them out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use fleetcast_faults::FLAWS;

use super::bits::flips;
use super::deaths::{a_compactor_that_dies, a_writer_that_is_killed};
use super::failing::{aftermath, failing_syncs, heads_in_doubt, short_writes};
use super::rivals::a_sync_beside_a_sync_that_failed;
use super::*;

/// Names of the parts that are left out.
const PARTS: &str = "FLEETCAST_TEST_PARTS";
/// Processes that look for faults at the same time.
const PROCESSES: usize = 2;
/// Parts that replace each other. Without one of them no fault occurs, because the state that it
/// guards against cannot occur or the other part finds it.
const PAIRS: [(&str, &str); 1] = [("CompactionLock", "Generation")];
/// Parts whose absence alone shows no fault. A frame at a wrong position fails its checksum. The
/// first read also refuses a missing frame before the last file. Chain and clearing guard against a
/// frame that is written twice alike, which takes a test of the log alone. Only a compactor that
/// waited for another process has to look a second time, and no test here waits like that.
const NOT_ALONE: [&str; 7] =
    ["Chain", "Clearing", "Position", "Gap", "Join", "Generation", "LookLocked"];

static IMAGES: AtomicU64 = AtomicU64::new(0);

/// Counts an image of a crash that was looked at.
pub(crate) fn count_image() {
    IMAGES.fetch_add(1, Ordering::Relaxed);
}

/// Leaves out the parts that this process was started without.
pub(crate) fn plant() {
    let Ok(parts) = std::env::var(PARTS) else { return };
    parts.split_terminator(',').for_each(fleetcast_faults::plant);
}

/// A test finds each part that is left out. With all parts no test finds a fault.
#[test]
fn what_is_left_out_is_missed() {
    let single = FLAWS.iter().filter(|part| !NOT_ALONE.contains(part)).map(|part| vec![*part]);
    let pairs = PAIRS.iter().map(|(first, second)| vec![*first, *second]);
    let all: Vec<_> = single.chain(pairs).collect();
    let count = if is_full() { all.len() } else { 1 };
    let (next, unnoticed) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..PROCESSES {
            scope.spawn(|| {
                let next = || usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap();
                while let Some(parts) = all[..count].get(next()) {
                    let (code, report) = hunt_without(parts);
                    eprintln!("{parts:?}: {report}");
                    if code != Some(0) {
                        unnoticed.lock().unwrap().push(parts);
                    }
                }
            });
        }
    });
    let unnoticed = unnoticed.into_inner().unwrap();
    assert!(unnoticed.is_empty(), "nobody misses {unnoticed:?}");
    eprintln!("{count} of {} sets of parts were left out, and each was missed", all.len());
    if is_full() {
        let (code, report) = hunt_without(&[]);
        assert_eq!(code, Some(1), "with all parts: {report}");
        eprintln!("with all parts: {report}");
    }
}

/// Returns exit code and last line of a process that works without `parts`.
fn hunt_without(parts: &[&str]) -> (Option<i32>, String) {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program
        .args(["--exact", "flaws::hunt", "--ignored", "--nocapture"])
        .env(PARTS, parts.join(","));
    let output = program.stderr(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = text.lines().filter_map(|line| line.split_once("report: "));
    (output.status.code(), report.map(|(_, report)| report.to_owned()).collect())
}

/// Looks for faults until it finds one.
#[test]
#[ignore = "it is started by another test"]
fn hunt() {
    plant();
    let stages: [(&str, fn()); 14] = [
        ("power cuts", || cuts(1)),
        ("power cuts at the beginning", beginnings),
        ("a sync beside a sync that failed", a_sync_beside_a_sync_that_failed),
        ("syncs that fail", || failing_syncs(&steps(46), 7)),
        ("head pages in doubt", || heads_in_doubt(20)),
        ("a compactor that dies", a_compactor_that_dies),
        ("a writer that is killed", a_writer_that_is_killed),
        ("flipped bits", || flips(23)),
        ("two threads", threads),
        ("writes that are cut short", || short_writes(7)),
        ("failing calls", || fail_some(libc::EIO, 5, 3)),
        ("more power cuts", || cuts(4)),
        ("no space", no_space),
        ("more failing calls", || fail_some(libc::ENOSPC, 3, 3)),
    ];
    for (name, stage) in stages {
        calls::stop();
        if catch_unwind(AssertUnwindSafe(stage)).is_err() {
            let images = IMAGES.load(Ordering::Relaxed);
            println!("\nreport: found by {name}, after {images} images");
            std::process::exit(0);
        }
    }
    println!("\nreport: not found in {} images", IMAGES.load(Ordering::Relaxed));
    std::process::exit(1);
}

fn cuts(records: u64) {
    let mut dice = Dice::new(10 + records);
    for _ in 0..records {
        let (record, ..) = perform(&steps(70), Fault::None);
        let moments = record.moments(150, &mut dice);
        let mut again = Dice::new(dice.below(1 << 30));
        record.cuts(&moments, &mut dice, |image, expected| {
            recover(&image, &expected, 1, &mut again).assert_clean();
        });
    }
}

fn beginnings() {
    let mut dice = Dice::new(13);
    let (record, ..) = perform(&steps(2), Fault::None);
    let moments = record.moments(200, &mut dice);
    let mut again = Dice::new(14);
    record.cuts(&moments, &mut dice, |image, expected| {
        recover(&image, &expected, 0, &mut again).assert_clean();
    });
}

fn threads() {
    let mut dice = Dice::new(15);
    for number in 0.. {
        let Some((record, mut client, _root)) = rivals::race(number) else { break };
        aftermath(&record, &mut client, 6, &mut dice).assert_clean();
        assert_eq!(client.faults, [""; 0]);
    }
}

fn no_space() {
    let mut dice = Dice::new(11);
    for first in (40..400).step_by(13) {
        let calls = first..first + FULL_CALLS;
        let (record, mut client, _root) = perform(&steps(46), Fault::Full { calls });
        aftermath(&record, &mut client, 2, &mut dice).assert_clean();
        assert_eq!(client.faults, [""; 0]);
    }
}

fn fail_some(errno: i32, stride: usize, cuts: usize) {
    let mut dice = Dice::new(12);
    for first in (0..).step_by(stride) {
        let (record, mut client, _root) =
            perform(&steps(46), Fault::Calls { calls: first..first + 1, errno });
        if record.tape.failed_at.is_none() {
            break;
        }
        aftermath(&record, &mut client, cuts, &mut dice).assert_clean();
        assert_eq!(client.faults, [""; 0]);
    }
}
