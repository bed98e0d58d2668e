//! A test of the tests, by calls. Each sync is left out, or made after the changes that should
//! follow it, at each place of the store that calls one. An image must show the fault.
//!
//! The syncs are found in a record, so the store is not changed for this test. A new sync is a new
//! place, so no sync can be forgotten.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};

use super::sites::{self, Site};
use super::*;

/// Number of images without a fault after which the absence of a sync counts as unnoticed.
const IMAGES_MAX: usize = 5_000;
/// Most changes by which a late sync is late. Its absence shows within as many.
const LATE_MAX: usize = 40;
/// Processes that look for faults at the same time.
const PROCESSES: usize = 2;
const PROCESS: &str = "FLEETCAST_TEST_PROCESS";

/// Places whose missing syncs show no fault, found by a text in their lines, and the reason: other
/// syncs do the same.
const STAND_INS: [(&str, &str); 6] = [
    ("create_databases_and_commit", "nothing is promised yet; the next commit syncs the file"),
    ("env.write(\"begin the log\"", "nothing is promised yet; who opens the file syncs it"),
    ("LogFile::create(&directory, log", "recovery syncs the names once more before it is used"),
    (
        "directory.parent().map_or(Ok(()), sync_directory)",
        "the key's sync is one of the same names",
    ),
    ("keys.turned()", "the file before has both data keys"),
    (
        "keys.without_old()",
        "the file before has the key too; the next compaction drops the old one",
    ),
];

/// Harm that is done to the syncs of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Flaw {
    LeftOut,
    /// The sync comes after some of the changes that follow it, and after the acknowledgement.
    Late,
}

/// A sync: number of its record, and number of the change.
type Occurrence = (usize, usize);

/// An image shows the absence of each sync, and each wrong order of a sync and the changes after
/// it.
#[test]
fn each_sync_is_missed() {
    let start = |process: usize| {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "omissions::search", "--ignored", "--nocapture"]);
        program.env(PROCESS, process.to_string()).stderr(Stdio::null()).stdout(Stdio::piped());
        program.spawn().unwrap()
    };
    let started: Vec<_> = (0..PROCESSES).map(start).collect();
    let (mut flaws, mut stand_ins, mut unmissed) = (0, 0, Vec::new());
    for process in started {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        for report in text.lines().filter_map(|line| line.strip_prefix("report: ")) {
            eprintln!("{report}");
            flaws += 1;
            stand_ins += usize::from(report.contains("others do the same"));
            if report.contains("nobody misses it") {
                unmissed.push(report.to_owned());
            }
        }
    }
    eprintln!("{flaws} flaws of syncs, for {stand_ins} of which others stand in");
    assert!(flaws > 0 && unmissed.is_empty(), "{unmissed:#?}");
}

/// Looks for the effects of missing syncs, in this process.
#[test]
#[ignore = "it is started by another test"]
fn search() {
    let process: usize = std::env::var(PROCESS).unwrap().parse().unwrap();
    sites::want();
    let pool = pool();
    let occurrences = occurrences(&pool);
    let mut named = sites::named(occurrences.keys().copied());
    if is_full() {
        for (text, _) in STAND_INS {
            assert!(named.values().any(|site| sites::has(*site, text)), "no place has {text:?}");
        }
    } else {
        named.retain(|name, _| is_drawn(name));
    }
    for (number, (name, site)) in named.into_iter().enumerate() {
        for flaw in [Flaw::LeftOut, Flaw::Late] {
            if (number + usize::from(flaw == Flaw::Late)) % PROCESSES != process {
                continue;
            }
            let why = STAND_INS.iter().find(|(text, _)| sites::has(site, text));
            let outcome = match look_for(&pool, site, &occurrences[&site], flaw) {
                Ok(images) => format!("found after {images} images"),
                Err(images) => match why {
                    Some((_, why)) => format!("others do the same in {images} images: {why}"),
                    None => format!("nobody misses it in {images} images"),
                },
            };
            println!("\nreport: {flaw:?} {name}: {outcome}");
        }
    }
}

/// Draws one place in seven, by its name alone. So a new place does not change the choice of other
/// places.
fn is_drawn(name: &str) -> bool {
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, hash).is_multiple_of(7)
}

/// Returns the syncs of each place that made a change durable.
fn occurrences(pool: &[Record]) -> BTreeMap<Site, Vec<Occurrence>> {
    let mut occurrences = BTreeMap::<Site, Vec<Occurrence>>::new();
    for (number, record) in pool.iter().enumerate() {
        let mut disk = record.disk.clone();
        for (at, change) in record.tape.changes.iter().enumerate() {
            if let Change::Sync { site, node, .. } = change
                && disk.is_unsynced(*node)
            {
                occurrences.entry(*site).or_default().push((number, at));
            }
            disk.apply(change);
        }
    }
    occurrences
}

/// Returns the number of images until the flaw shows, or as the error the number of images without
/// it.
fn look_for(
    pool: &[Record],
    site: Site,
    occurrences: &[Occurrence],
    flaw: Flaw,
) -> Result<usize, usize> {
    let mut dice = Dice::new(31);
    for image in 1..=IMAGES_MAX {
        let (number, at) = occurrences[dice.index(occurrences.len())];
        let within = [LATE_MAX / 8, LATE_MAX / 2, LATE_MAX][dice.index(3)];
        let record = pool[number].without(site, flaw, within);
        let end = (at + 1 + within).min(record.tape.changes.len());
        let moment = at + 1 + dice.index(end - at);
        let mut again = Dice::new(dice.below(1 << 30));
        let looked = catch_unwind(AssertUnwindSafe(|| {
            record.cuts(&[moment.min(end)], &mut dice, |image, expected| {
                recover(&image, &expected, 0, &mut again).assert_clean();
            });
        }));
        if looked.is_err() {
            return Ok(image);
        }
    }
    Err(IMAGES_MAX)
}

impl Record {
    /// Returns the record with the flaw in all syncs of a place.
    fn without(&self, site: Site, flaw: Flaw, late_by: usize) -> Self {
        let (mut changes, mut events) = (self.tape.changes.clone(), self.events.clone());
        for at in (0..changes.len()).rev() {
            if !matches!(changes[at], Change::Sync { site: of, .. } if of == site) {
                continue;
            }
            match flaw {
                Flaw::LeftOut => changes[at] = Change::Nothing,
                Flaw::Late => {
                    let end = changes.len().min(at + 1 + late_by);
                    changes[at..end].rotate_left(1);
                    // Events keep their place between the same changes.
                    let between = events.iter_mut().filter(|(told, _)| at < *told && *told < end);
                    between.for_each(|(told, _)| *told -= 1);
                }
            }
        }
        let tape = Tape { changes, ..self.tape.clone() };
        let (disk, before) = (self.disk.clone(), self.before.clone());
        Self { disk, tape, events, before }
    }
}

/// Records work of all kinds.
fn pool() -> Vec<Record> {
    let mut dice = Dice::new(32);
    let stride = if is_full() { 1 } else { 19 };
    let mut pool = vec![perform(&steps(46), Fault::None).0];
    for number in (0..).step_by(7 * stride) {
        let Some((record, ..)) = rivals::race(number) else { break };
        pool.push(record);
    }
    for first in (0..).step_by(4 * stride) {
        let syncs = first..first + 1 + first % 3;
        let (record, ..) = perform(&steps(46), Fault::Syncs { syncs, errno: libc::EIO });
        if record.tape.failed_at.is_none() {
            break;
        }
        pool.push(record);
    }
    let mut in_doubt = Vec::new();
    failing::head_faults(|record, _, _| in_doubt.push(record));
    pool.extend(in_doubt.into_iter().step_by(2 * stride));
    let mut recoveries = Vec::new();
    for record in &pool {
        let moments = record.moments(8, &mut dice);
        record.cuts(&moments, &mut dice, |image, expected| {
            recoveries.push(recovery(&image, &expected));
        });
    }
    pool.extend(recoveries);
    pool
}

/// Records a recovery, and the work after it.
fn recovery(image: &Image, expected: &Expected) -> Record {
    let root = scratch();
    disk::restore(image, root.path());
    let disk = calls::record(root.path(), Fault::None);
    let client = revive(&root.path().join(PLANE), expected, &mut Tally::default());
    let tape = calls::stop();
    let events = client.map(|client| client.events).unwrap_or_default();
    Record { disk, tape, events, before: expected.clone() }
}
