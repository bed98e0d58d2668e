//! Promises of a plane, kept when the machine does not keep its own.
//!
//! A client works on a plane whose every call that changes a file is recorded. From the record come
//! the states that a power cut may leave at any moment, torn and reordered writes included; each is
//! opened, read, worked on, and cut again. And the same work is done with each call failing once.
//!
//! `FAULTS=full` does it at full length (`make faults`); without it a part is done.
#![expect(clippy::unwrap_used, reason = "all of this is a test")]

mod batches;
mod calls;
mod dice;
mod disk;
mod flaws;
mod workload;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fleetcast_core::model::error::Error;
use fleetcast_core::plane::Plane;
use tempfile::TempDir;

use self::batches::{Event, Expected, Verdict};
use self::calls::{Fault, Tape};
use self::dice::Dice;
use self::disk::{Change, Disk, Image};
use self::workload::{CALLS_FAIL_MAX, Client, MASTER_KEY, Step, expected_at, steps};

/// The plane's path below the directory that is recorded, made with its parent.
const PLANE: &str = "planes/acme";
/// Changes of the next few commits.
const AFTERMATH_CHANGES: usize = 30;
/// Calls during which a disk is full.
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

    fn assert_clean(&self) {
        let found =
            [self.lost, self.partly_visible, self.false_rows, self.unreadable, self.orphans];
        assert_eq!(found, [0; 5], "{self:?}");
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
    /// States that a power cut may leave, and what each must show: as many as there are `moments`,
    /// ascending numbers of changes.
    fn cuts(&self, moments: &[usize], dice: &mut Dice, mut visit: impl FnMut(Image, Expected)) {
        let mut disk = self.disk.clone();
        let mut applied = 0;
        for moment in moments {
            self.tape.changes[applied..*moment].iter().for_each(|change| disk.apply(change));
            applied = *moment;
            visit(disk.cut(dice), expected_at(&self.before, &self.events, *moment));
        }
    }

    /// Moments from the first fault on, where there is one, every other one soon after it.
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

/// A directory for one image; in memory where there is one, as nothing here is worth a real sync.
fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn is_full() -> bool {
    std::env::var_os("FAULTS").is_some_and(|length| length == "full")
}

/// Opens an image, reads all of it and works on; `crashes` times the machine stops during that.
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

fn revive(directory: &Path, expected: &Expected, tally: &mut Tally) -> Option<Client> {
    let mut client = match Client::open(directory, expected.next_batch()) {
        Ok(client) => client,
        // Creation was cut off, and nothing was acknowledged.
        Err(Error::Missing(_)) if expected.acknowledged() == 0 => return None,
        Err(error) => {
            tally.note(&Verdict { unreadable: vec![error.to_string()], ..Verdict::default() });
            return None;
        }
    };
    let verdict = client.judge(expected);
    tally.note(&verdict);
    if !verdict.is_clean() {
        return None;
    }
    client.work(&RECOVERY);
    let after = client.expected(expected);
    tally.note(&client.judge(&after));
    tally.orphans += client.orphans() as u64;
    client.work(&[Step::Reopen]);
    let verified = Plane::verify(directory, &MASTER_KEY).unwrap();
    tally.note(&Verdict { unreadable: verified.damages, ..Verdict::default() });
    tally.note(&client.judge(&after));
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

/// The simulated disk itself: a sync keeps, and whatever was not synced is lost at times, in whole
/// or in part, content and name apart.
#[test]
fn only_what_was_synced_is_sure() {
    let root = scratch();
    let mut disk = calls::record(root.path(), Fault::None);
    let write = |name: &str, is_synced| {
        let mut file = File::create(root.path().join(name)).unwrap();
        file.write_all(&[7; 2_000]).unwrap();
        if is_synced {
            file.sync_all().unwrap();
        }
    };
    write("kept", true);
    File::open(root.path()).unwrap().sync_all().unwrap();
    write("nameless", true);
    write("torn", false);
    for change in &calls::stop().changes {
        disk.apply(change);
    }
    let mut dice = Dice::new(1);
    let images: Vec<Image> = (0..200).map(|_| disk.cut(&mut dice)).collect();
    let content = |image: &Image, name: &str| image.get(Path::new(name)).cloned().flatten();
    let contents =
        |name| -> BTreeSet<_> { images.iter().map(|each| content(each, name)).collect() };
    let whole = Some(vec![7; 2_000]);
    assert_eq!(contents("kept"), BTreeSet::from([whole.clone()]));
    assert_eq!(contents("nameless"), BTreeSet::from([None, whole.clone()]));
    let torn = contents("torn");
    assert!(torn.len() > 5 && torn.contains(&None) && torn.contains(&whole));
}

/// Acknowledged batches outlive a power cut at any moment, and are whole.
#[test]
fn power_cuts() {
    let (images, crashes_each) = if is_full() { (10_200, 2) } else { (240, 1) };
    let (record, ..) = perform(&steps(if is_full() { 140 } else { 60 }), Fault::None);
    let mut dice = Dice::new(6);
    let mut tally = Tally::default();
    // Every third image is cut again while it recovers.
    let first = images * 3 / (3 + crashes_each);
    let moments = record.moments(first, &mut dice);
    let mut number = 0;
    let mut again = Dice::new(7);
    record.cuts(&moments, &mut dice, |image, expected| {
        let crashes = if number % 3 == 0 { crashes_each } else { 0 };
        number += 1;
        tally += recover(&image, &expected, crashes, &mut again);
    });
    eprintln!("power cuts during {} calls: {tally:?}", record.tape.calls);
    tally.assert_clean();
}

/// Works on with a client whose machine is well again, and cuts the power at `cuts` moments after
/// the first fault.
fn aftermath(record: &Record, client: &mut Client, cuts: usize, dice: &mut Dice) -> Tally {
    let expected = client.expected(&Expected::default());
    let mut tally = Tally { acknowledged: expected.acknowledged() as u64, ..Tally::default() };
    for step in [Step::Compact, Step::Reopen] {
        tally.note(&client.judge(&expected));
        client.work(&[step]);
    }
    tally.note(&client.judge(&expected));
    tally.orphans += client.orphans() as u64;
    let moments = record.moments(cuts, dice);
    let mut again = Dice::new(dice.below(1 << 30));
    record.cuts(&moments, dice, |image, expected| {
        tally += recover(&image, &expected, 0, &mut again);
    });
    tally
}

/// Does the work once for every `stride`-th call, which fails and `times - 1` after it.
fn fail_calls(errno: i32, times: u64, stride: usize) {
    let cuts = if is_full() { 4 } else { 2 };
    let mut dice = Dice::new(8);
    let (mut runs, mut tally) = (0, Tally::default());
    for first in (0..).step_by(stride) {
        let calls = first..first + times;
        let (record, mut client, _root) = perform(&steps(46), Fault::Calls { calls, errno });
        if record.tape.failed_at.is_none() {
            break;
        }
        runs += 1;
        let found = aftermath(&record, &mut client, cuts, &mut dice);
        assert_eq!(client.faults, [""; 0], "call {first}");
        found.assert_clean();
        tally += found;
    }
    let error = std::io::Error::from_raw_os_error(errno);
    eprintln!("{runs} runs in each of which {times} of the calls failed ({error}): {tally:?}");
    assert!(runs > 0);
}

/// F9: a device that fails costs nothing that was acknowledged.
#[test]
fn a_failing_device() {
    fail_calls(libc::EIO, 1, if is_full() { 1 } else { 31 });
    fail_calls(libc::EIO, CALLS_FAIL_MAX, if is_full() { 3 } else { 97 });
}

/// LMDB puts its old head page back where it could not sync the new one. What is on disk is not
/// known then, so that must be settled before any other page is written.
#[test]
fn after_a_failed_sync_nothing_is_written_before_a_sync() {
    let mut put_back = 0;
    for first in 0.. {
        let calls = first..first + 1;
        let (record, ..) = perform(&steps(8), Fault::Calls { calls, errno: libc::EIO });
        let Some(failed_at) = record.tape.failed_at else { break };
        let (before, after) = record.tape.changes.split_at(failed_at);
        let (Some(Change::Write { file, at: last_at, .. }), Some(Change::SyncFailed { node })) =
            (before.last(), after.first())
        else {
            continue;
        };
        assert_eq!(file, node);
        let mut later = after[1..].iter().filter_map(|change| match change {
            Change::Write { file: of, at, .. } if of == file => Some(Some(*at)),
            Change::Sync { node } if node == file => Some(None),
            _ => None,
        });
        let mut next = later.next();
        if next == Some(Some(*last_at)) {
            put_back += 1;
            next = later.next();
        }
        assert_eq!(next.flatten(), None, "call {first}");
    }
    assert!(put_back > 0);
}

/// F9: any call may be the one that finds no space.
#[test]
fn no_space_for_one_call() {
    fail_calls(libc::ENOSPC, 1, if is_full() { 1 } else { 31 });
}

/// F11: while a disk is full nothing is acknowledged and all is read; then the same handle goes on.
#[test]
fn a_disk_that_is_full_for_a_while() {
    let (stride, cuts) = if is_full() { (7, 4) } else { (97, 1) };
    let mut dice = Dice::new(9);
    let (mut runs, mut tally) = (0, Tally::default());
    // The first calls make the plane.
    for first in (40..).step_by(stride) {
        let calls = first..first + FULL_CALLS;
        let (record, mut client, _root) = perform(&steps(46), Fault::Full { calls });
        if first >= record.tape.calls {
            break;
        }
        runs += u32::from(record.tape.failed_at.is_some());
        assert_eq!((client.reopened, &*client.faults), (0, &[][..]), "from call {first} on");
        tally += aftermath(&record, &mut client, cuts, &mut dice);
    }
    eprintln!("{runs} runs in each of which the disk was full for {FULL_CALLS} calls: {tally:?}");
    assert!(runs > 0);
    tally.assert_clean();
}

/// Starts `role`, an ignored test of this program, whose fault is at `call`.
fn dying(role: &str, root: &Path, call: u64) -> Child {
    start(role, root, call, false)
}

/// As [`dying`], with a write at `call` made in part where `is_torn`.
fn start(role: &str, root: &Path, call: u64, is_torn: bool) -> Child {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", role, "--ignored"]).stdout(Stdio::null());
    program.env(DYING_TORN, is_torn.to_string());
    program.env(DYING_DIRECTORY, root).env(DYING_CALL, call.to_string()).spawn().unwrap()
}

/// In a process that [`dying`] started: where to work, and the call of its fault.
fn doom() -> (PathBuf, u64) {
    flaws::plant();
    let root = PathBuf::from(std::env::var_os(DYING_DIRECTORY).unwrap());
    (root, std::env::var(DYING_CALL).unwrap().parse().unwrap())
}

const DYING_DIRECTORY: &str = "FLEETCAST_TEST_DYING_DIRECTORY";
const DYING_TORN: &str = "FLEETCAST_TEST_DYING_TORN";
const DYING_CALL: &str = "FLEETCAST_TEST_DYING_CALL";

/// A compactor may die at any instruction, and another goes on. A commit that it did not
/// live to tell others about is seen before what it names is taken for an orphan.
#[test]
fn a_compactor_that_dies() {
    let root = scratch();
    let mut client = Client::create(&root.path().join(PLANE));
    let mut died = 0;
    for call in 0.. {
        client.work(&[Step::Write]);
        let status = dying("compactor", root.path(), call).wait().unwrap();
        let expected = client.expected(&Expected::default());
        let mut tally = Tally::default();
        tally.note(&client.judge(&expected));
        client.work(&[Step::Write, Step::Compact, Step::Write]);
        let expected = client.expected(&Expected::default());
        tally.note(&client.judge(&expected));
        tally.orphans += client.orphans() as u64;
        client.work(&[Step::Reopen]);
        tally.note(&client.judge(&expected));
        tally.assert_clean();
        flaws::count_image();
        assert_eq!(client.faults, [""; 0], "call {call}");
        if status.success() {
            break;
        }
        assert_eq!(status.code(), Some(calls::DIED));
        died += 1;
    }
    eprintln!("{died} compactors died, each after another call");
    assert!(died > 0);
}

/// The compactor of [`a_compactor_that_dies`], a process of its own.
#[test]
#[ignore = "it is started by another test"]
fn compactor() {
    let (root, call) = doom();
    let mut client = Client::open(&root.join(PLANE), 0).unwrap();
    calls::record(&root, Fault::Death { call });
    client.work(&[Step::Compact]);
}

/// A delete, or the compaction after it, may end at any instruction. Its batch is deleted then, or
/// is not, and once it was seen to be gone it never comes back.
#[test]
fn a_delete_that_dies() {
    let root = scratch();
    let mut client = Client::create(&root.path().join(PLANE));
    client.work(&[Step::Write, Step::Compact, Step::Write, Step::Write, Step::Compact]);
    let (mut died, mut deleted) = (0, 0);
    for call in 0.. {
        client.work(&[Step::Write, Step::Write]);
        let batch = client.doomed();
        client.note(Event::DeleteBegun(batch));
        let status = dying("deleter", root.path(), call).wait().unwrap();
        let mut tally = Tally::default();
        tally.note(&client.judge(&client.expected(&Expected::default())));
        if !client.shows(batch) {
            client.note(Event::Deleted(batch));
            deleted += u32::from(!status.success());
        }
        client.work(&[Step::Compact]);
        tally.note(&client.judge(&client.expected(&Expected::default())));
        tally.orphans += client.orphans() as u64;
        tally.assert_clean();
        assert_eq!(client.faults, [""; 0], "call {call}");
        if status.success() {
            assert!(!client.shows(batch));
            break;
        }
        assert_eq!(status.code(), Some(calls::DIED));
        died += 1;
    }
    eprintln!("{died} deletes died, each after another call, {deleted} of them deleted");
    assert!(0 < deleted && deleted < died);
}

/// The delete of [`a_delete_that_dies`], a process of its own.
#[test]
#[ignore = "it is started by another test"]
fn deleter() {
    let (root, call) = doom();
    let mut client = Client::open(&root.join(PLANE), 0).unwrap();
    let next_batch = u32::try_from(client.batches()).unwrap();
    drop(client);
    let mut client = Client::open(&root.join(PLANE), next_batch).unwrap();
    calls::record(&root, Fault::Death { call });
    client.work(&[Step::Delete, Step::Compact]);
}

/// A writer may be stopped and killed at any instruction, also within a write, with its batch
/// unanswered. Reads go on while it stands still. Once it is dead its batch is there for the next
/// read, or for none, whatever is done after it.
#[test]
fn a_writer_that_is_killed() {
    let root = scratch();
    let mut client = Client::create(&root.path().join(PLANE));
    let (mut stored, mut killed) = (0, 0);
    // A write, a sync, and at times space that is reserved.
    for round in 0..60 {
        let call = round % 3;
        client.work(&[Step::Write]);
        let known = client.batches();
        let mut writer = start("writer", root.path(), call, round / 3 % 2 == 1);
        if !stops(&writer) {
            assert_eq!(client.batches(), known + 1, "it was done before");
            continue;
        }
        let meanwhile = client.batches();
        writer.kill().unwrap();
        writer.wait().unwrap();
        let mut answers = vec![client.batches(), client.batches()];
        if round / 6 % 2 == 1 {
            client.work(&[Step::Reopen]);
            answers.push(client.batches());
        }
        client.work(&[Step::Write]);
        answers.push(client.batches() - 1);
        assert!((known..=known + 1).contains(&answers[0]) && meanwhile <= answers[0]);
        assert!(answers.iter().all(|answer| *answer == answers[0]), "call {call}: {answers:?}");
        flaws::count_image();
        stored += answers[0] - known;
        killed += 1;
    }
    eprintln!("{killed} writers were killed, the batches of {stored} are stored");
    assert!(stored > 0 && stored < killed);
}

/// Waits until `process` stops; false where it ends instead.
fn stops(process: &Child) -> bool {
    let id = libc::pid_t::try_from(process.id()).unwrap();
    let mut status = 0;
    // SAFETY: the child is ours and nobody has waited for it; `status` outlives the call.
    #[expect(unsafe_code, reason = "the standard library waits for the end only")]
    let waited = unsafe { libc::waitpid(id, &raw mut status, libc::WUNTRACED) };
    assert_eq!(waited, id);
    libc::WIFSTOPPED(status)
}

/// The writer of [`a_writer_that_is_killed`], a process of its own.
#[test]
#[ignore = "it is started by another test"]
fn writer() {
    let (root, call) = doom();
    let mut client = Client::open(&root.join(PLANE), 0).unwrap();
    let is_torn = std::env::var_os(DYING_TORN).is_some_and(|torn| torn == "true");
    calls::record(&root, if is_torn { Fault::Torn { call } } else { Fault::Stop { call } });
    client.work(&[Step::Write]);
}
