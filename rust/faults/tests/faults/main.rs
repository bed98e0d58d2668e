//! The promises of a plane, kept even if the machine does not keep its promises.
//!
//! A client works on a plane. Every call that changes a file is recorded. The record gives the
//! states that a power cut may leave at any moment, torn and reordered writes included. Each state
//! is opened, read, worked on, and cut again. The same work is also done with each call failing
//! once.
//!
//! With `FAULTS=full` all of it is done (`make faults`), otherwise a part.
#![expect(clippy::unwrap_used, reason = "all of this is a test")]

mod batches;
mod calls;
mod dice;
mod disk;
mod sites;
mod workload;

mod bits;
mod cuts;
mod deaths;
mod failing;
mod killed;
mod rivals;
mod sequences;

mod flaws;
mod omissions;

mod traced;
mod turning;

use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use fleetcast_faults::model::error::Error;
use fleetcast_faults::plane::Plane;
use fleetcast_faults::storage::store::DirectoryPlanes;
use tempfile::TempDir;

use self::batches::{Event, Expected, Verdict};
use self::calls::{Fault, Tape};
use self::dice::Dice;
use self::disk::{Change, Disk, Image};
use self::workload::{CALLS_FAIL_MAX, Client, MASTER_KEY, Step, expected_at, steps};

/// The plane's path below the recorded directory. The plane is made with its parent.
const PLANE: &str = "planes/acme";
/// The file that processes share.
const SHARED: &str = "plane.log-lock";
/// Number of changes of the next few commits.
const AFTERMATH_CHANGES: usize = 30;
/// Number of calls during which a disk is full.
const FULL_CALLS: u64 = 100;
const RECOVERY: [Step; 6] =
    [Step::Write, Step::Compact, Step::Flush, Step::Write, Step::Delete, Step::Compact];

/// Outcome of many crashes.
#[derive(Debug, Default)]
struct Tally {
    images: u64,
    acknowledged: u64,
    lost: u64,
    partly_visible: u64,
    false_rows: u64,
    unreadable: u64,
    orphans: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.images += other.images;
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.partly_visible += other.partly_visible;
        self.false_rows += other.false_rows;
        self.unreadable += other.unreadable;
        self.orphans += other.orphans;
    }
}

impl Tally {
    fn note(&mut self, verdict: &Verdict) {
        self.lost += verdict.lost.len() as u64;
        self.partly_visible += verdict.partly_visible.len() as u64;
        self.false_rows += verdict.false_rows.len() as u64;
        self.unreadable += verdict.unreadable.len() as u64;
        if !verdict.is_clean() {
            eprintln!("{verdict:?}");
        }
    }

    fn is_clean(&self) -> bool {
        [self.lost, self.partly_visible, self.false_rows, self.unreadable, self.orphans] == [0; 5]
    }

    fn assert_clean(&self) {
        assert!(self.is_clean(), "{self:?}");
    }
}

/// A recorded piece of work.
struct Record {
    disk: Disk,
    tape: Tape,
    events: Vec<(usize, Event)>,
    before: Expected,
}

impl Record {
    /// Makes states that a power cut may leave: one for each of `moments`, which are ascending
    /// numbers of changes. `visit` gets each state, and what it must show.
    fn cuts(&self, moments: &[usize], dice: &mut Dice, mut visit: impl FnMut(Image, Expected)) {
        let mut disk = self.disk.clone();
        let mut applied = 0;
        for moment in moments {
            self.tape.changes[applied..*moment].iter().for_each(|change| disk.apply(change));
            applied = *moment;
            visit(disk.cut(dice), expected_at(&self.before, &self.events, *moment));
        }
    }

    /// Returns moments after the first fault, if there is one. Every other moment is soon after it.
    fn moments(&self, count: usize, dice: &mut Dice) -> Vec<usize> {
        let from = self.tape.failed_at.unwrap_or(0);
        let span = self.tape.changes.len() + 1 - from;
        let soon = if from > 0 { span.min(AFTERMATH_CHANGES) } else { span };
        let span = |number| if number % 2 == 0 { soon } else { span };
        let mut moments: Vec<_> =
            (0..count).map(|number| from + dice.index(span(number))).collect();
        moments.sort_unstable();
        moments
    }
}

/// Makes a directory for one image. It lies in memory if possible, because no file here needs a
/// real sync.
fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn is_full() -> bool {
    std::env::var_os("FAULTS").is_some_and(|length| length == "full")
}

/// Opens an image, reads all of it and continues the work. The machine stops `crashes` times during
/// that.
fn recover(image: &Image, expected: &Expected, crashes: usize, dice: &mut Dice) -> Tally {
    flaws::count_image();
    let mut tally =
        Tally { images: 1, acknowledged: expected.acknowledged() as u64, ..Tally::default() };
    let root = scratch();
    disk::restore(image, root.path());
    let directory = root.path().join(PLANE);
    if crashes > 0 {
        let disk = calls::record(root.path(), Fault::None);
        let client = revive(&directory, expected, &mut tally);
        let tape = calls::stop();
        if let Some(client) = client {
            let record = Record { disk, tape, events: client.events, before: expected.clone() };
            let moments = record.moments(crashes, dice);
            let mut again = Dice::new(dice.below(1 << 30));
            record.cuts(&moments, dice, |image, expected| {
                tally += recover(&image, &expected, 0, &mut again);
            });
        }
    } else {
        revive(&directory, expected, &mut tally);
    }
    tally
}

/// Opens an image and reads all of it.
fn look(image: &Image, expected: &Expected) -> Tally {
    flaws::count_image();
    let mut tally =
        Tally { images: 1, acknowledged: expected.acknowledged() as u64, ..Tally::default() };
    let root = scratch();
    disk::restore(image, root.path());
    if let Some(mut client) = open(&root.path().join(PLANE), expected, &mut tally) {
        tally.note(&client.judge(expected));
    }
    tally
}

/// Opens a plane that a crash has left.
fn open(directory: &Path, expected: &Expected, tally: &mut Tally) -> Option<Client> {
    match Client::open(directory, expected.next_batch()) {
        Ok(client) => Some(client),
        // The crash cut off the creation of the plane.
        Err(Error::Missing(_)) if !expected.is_created() => None,
        Err(error) => {
            tally.note(&Verdict { unreadable: vec![error.to_string()], ..Verdict::default() });
            None
        }
    }
}

fn revive(directory: &Path, expected: &Expected, tally: &mut Tally) -> Option<Client> {
    let mut client = open(directory, expected, tally)?;
    let verdict = client.judge(expected);
    tally.note(&verdict);
    if !verdict.is_clean() {
        return None;
    }
    // Once a read has shown a batch, the batch must stay.
    verdict.shown.iter().for_each(|batch| client.note(Event::Shown(*batch)));
    client.work(&RECOVERY);
    let after = client.expected(expected);
    tally.note(&client.judge(&after));
    tally.orphans += client.orphans() as u64;
    client.work(&[Step::Reopen]);
    let (planes, plane) = DirectoryPlanes::of_plane(directory).unwrap();
    let verified = Plane::verify(&planes, plane, &MASTER_KEY).unwrap();
    tally.note(&Verdict { unreadable: verified.damages, ..Verdict::default() });
    tally.note(&client.judge(&after));
    client.work(&[Step::Write]);
    assert_eq!(client.faults, [""; 0]);
    Some(client)
}

/// Does all steps on a new plane while `fault` is in force.
fn perform(steps: &[Step], fault: Fault) -> (Record, Client, TempDir) {
    let root = scratch();
    let disk = calls::record(root.path(), fault);
    let mut client = Client::create(&root.path().join(PLANE));
    client.work(steps);
    let tape = calls::stop();
    let events = client.events.clone();
    (Record { disk, tape, events, before: Expected::default() }, client, root)
}
