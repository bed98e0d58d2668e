//! The proof put to the proof: parts of the durable path are left out, one at a time, and each must
//! be missed by one of the tests.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use fleetcast_core::storage::store::flaw::{Part, end_files_soon, leave_out};

use super::batches::Expected;
use super::*;

/// Numbers of the parts that are left out.
const PARTS: &str = "FLEETCAST_TEST_PARTS";
const IMAGES_MAX: u64 = 20_000;
/// Parts that stand in for each other: without one of them nothing is wrong, as what it guards
/// against cannot come to be, or another one finds it as well.
const PAIRS: [(Part, Part); 1] = [(Part::Chain, Part::Clearing)];
const IN_PAIRS_ONLY: [Part; 3] = [Part::Chain, Part::Clearing, Part::Position];

static IMAGES: AtomicU64 = AtomicU64::new(0);

/// Counts a state that a crash has left and that was looked at.
pub(crate) fn count_image() {
    IMAGES.fetch_add(1, Ordering::Relaxed);
}

/// Leaves out what this process was started to leave out.
pub(crate) fn plant() {
    let Ok(parts) = std::env::var(PARTS) else { return };
    end_files_soon();
    for number in parts.split_terminator(',') {
        leave_out(Part::ALL[number.parse::<usize>().unwrap()]);
    }
}

/// Each part that is left out is missed, and with all of them nothing is.
#[test]
fn what_is_left_out_is_missed() {
    let single =
        Part::ALL.iter().filter(|part| !IN_PAIRS_ONLY.contains(part)).map(|part| vec![*part]);
    let pairs = PAIRS.iter().map(|(first, second)| vec![*first, *second]);
    let all: Vec<_> = single.chain(pairs).collect();
    let count = if is_full() { all.len() } else { 1 };
    let mut unnoticed = Vec::new();
    for parts in &all[..count] {
        let (code, report) = hunt_without(parts);
        eprintln!("{parts:?}: {report}");
        if code != Some(0) {
            unnoticed.push(parts);
        }
    }
    assert!(unnoticed.is_empty(), "nobody misses {unnoticed:?}");
    eprintln!("{count} of {} sets of parts were left out, and each was missed", all.len());
    if is_full() {
        let (code, report) = hunt_without(&[]);
        assert_eq!(code, Some(1), "with all parts: {report}");
        eprintln!("with all parts: {report}");
    }
}

/// Exit code and last line of a process that works without `parts`.
fn hunt_without(parts: &[Part]) -> (Option<i32>, String) {
    let number = |part: &Part| Part::ALL.iter().position(|other| other == part).unwrap();
    let numbers: Vec<String> = parts.iter().map(|part| number(part).to_string()).collect();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program
        .args(["--exact", "flaws::hunt", "--ignored", "--nocapture"])
        .env(PARTS, numbers.join(","));
    let output = program.stderr(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = text.lines().filter_map(|line| line.split_once("report: "));
    (output.status.code(), report.map(|(_, report)| report.to_owned()).collect())
}

/// Looks for faults until one is found.
#[test]
#[ignore = "it is started by another test"]
fn hunt() {
    plant();
    let stages: [(&str, fn()); 6] = [
        ("power cuts", cuts),
        ("failing calls", failing_calls),
        ("no space", no_space),
        ("a compactor that dies", a_compactor_that_dies),
        ("a writer that is killed", a_writer_that_is_killed),
        ("flipped bits", flips),
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

fn cuts() {
    let mut dice = Dice::new(10);
    for _ in 0..4 {
        let (record, ..) = perform(&steps(70), Fault::None);
        let moments = record.moments(150, &mut dice);
        let mut again = Dice::new(dice.below(1 << 30));
        record.cuts(&moments, &mut dice, |image, expected| {
            recover(&image, &expected, 1, &mut again).assert_clean();
        });
    }
}

fn failing_calls() {
    for stride in [7, 1] {
        fail_some(libc::EIO, stride, 3);
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
        if IMAGES.load(Ordering::Relaxed) > IMAGES_MAX {
            break;
        }
        let (record, mut client, _root) =
            perform(&steps(46), Fault::Calls { calls: first..first + 1, errno });
        if record.tape.failed_at.is_none() {
            break;
        }
        aftermath(&record, &mut client, cuts, &mut dice).assert_clean();
        assert_eq!(client.faults, [""; 0]);
    }
}

/// Bits of the log that was left by a process that ended: none may be read as something else.
fn flips() {
    let root = scratch();
    let mut client = Client::create(&root.path().join(PLANE));
    client.work(&[Step::Write, Step::Write, Step::Compact, Step::Write, Step::Write]);
    let expected = client.expected(&Expected::default());
    drop(client);
    let directory = root.path().join(PLANE).join("log");
    for path in directory.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
        let whole = std::fs::read(&path).unwrap();
        let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        for bit in (0..8 * used).step_by(11) {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &flipped).unwrap();
            if let Ok(mut opened) = Client::open(&root.path().join(PLANE), 0) {
                let verdict = opened.judge(&expected);
                assert!(verdict.is_clean(), "byte {}: {verdict:?}", bit / 8);
            }
            count_image();
        }
        std::fs::write(&path, &whole).unwrap();
    }
}
