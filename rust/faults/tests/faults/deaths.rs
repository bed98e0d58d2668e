//! Processes that are stopped or die while other processes have the store open.

use std::process::{Child, Command, Stdio};

use fleetcast_faults::plane::CompactionTrigger;
use fleetcast_faults::storage::store::DirectoryPlanes;

use super::batches::NOW_NS;
use super::*;

/// Starts `role`, an ignored test of this program, with a fault at `call`.
fn dying(role: &str, root: &Path, call: u64) -> Child {
    start(role, root, call, false)
}

/// Starts a process as [`dying`] does. If `is_torn`, a write at `call` is made in part.
fn start(role: &str, root: &Path, call: u64, is_torn: bool) -> Child {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", &format!("deaths::{role}"), "--ignored"]).stdout(Stdio::null());
    program.env(DYING_TORN, is_torn.to_string());
    program.env(DYING_DIRECTORY, root).env(DYING_CALL, call.to_string()).spawn().unwrap()
}

/// In a process that [`dying`] started: returns the folder to work in, and the call of the fault.
fn doom() -> (PathBuf, u64) {
    flaws::plant();
    let root = PathBuf::from(std::env::var_os(DYING_DIRECTORY).unwrap());
    (root, std::env::var(DYING_CALL).unwrap().parse().unwrap())
}

const DYING_DIRECTORY: &str = "FLEETCAST_TEST_DYING_DIRECTORY";
const DYING_TORN: &str = "FLEETCAST_TEST_DYING_TORN";
const DYING_CALL: &str = "FLEETCAST_TEST_DYING_CALL";

/// A compactor may die at any instruction, and another compactor continues. Its last commit may not
/// have been announced. Other processes see that commit before they take its segments for orphans.
#[test]
pub(crate) fn a_compactor_that_dies() {
    let root = scratch();
    let mut client = Client::create(&root.path().join(PLANE));
    let mut died = 0;
    // Each call in six ways. The next write is read by the same handle or by a new handle, and it has
    // each of three turns: days have turns, and so have series that are new.
    for number in 0.. {
        let call = number / 6;
        client.work(&[Step::Write]);
        while client.batches() % 3 != number % 3 {
            client.work(&[Step::Write]);
        }
        let status = dying("compactor", root.path(), call).wait().unwrap();
        let expected = client.expected(&Expected::default());
        let mut tally = Tally::default();
        tally.note(&client.judge(&expected));
        client.work(&[Step::Write]);
        if number % 2 == 1 {
            client.work(&[Step::Reopen]);
            tally.note(&client.judge(&client.expected(&Expected::default())));
        }
        client.work(&[Step::Compact, Step::Write]);
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

/// The compactor of [`a_compactor_that_dies`], in another process.
#[test]
#[ignore = "it is started by another test"]
fn compactor() {
    let (root, call) = doom();
    let mut client = Client::open(&root.join(PLANE), 0).unwrap();
    calls::record(&root, Fault::Death { call });
    client.work(&[Step::Compact]);
}

/// A compactor whose calls fail continues and opens the store again, next to another process. The
/// other process then sees, writes and compacts as if it were alone.
#[test]
fn a_compactor_that_fails_beside_another() {
    let root = scratch();
    let mut client = Client::create(&root.path().join(PLANE));
    let mut failed = 0;
    // A sync of a head page fails, alone or with the calls that LMDB makes then.
    for number in 0.. {
        let call = number / 2;
        client.work(&[Step::Write]);
        let role = if number % 2 == 0 { "failing_once" } else { "failing_twice" };
        let status = dying(role, root.path(), call).wait().unwrap();
        assert!(status.success() || status.code() == Some(calls::FAILED), "call {call}");
        let mut tally = Tally::default();
        for step in [Step::Write, Step::Compact, Step::Compact, Step::Reopen] {
            let expected = client.expected(&Expected::default());
            tally.note(&client.judge(&expected));
            client.work(&[step]);
        }
        tally.note(&client.judge(&client.expected(&Expected::default())));
        tally.orphans += client.orphans() as u64;
        tally.assert_clean();
        flaws::count_image();
        assert_eq!(client.faults, [""; 0], "call {call}");
        if status.success() {
            break;
        }
        failed += 1;
    }
    eprintln!("{failed} compactors failed beside another process");
    assert!(failed > 0);
}

/// Compactors of [`a_compactor_that_fails_beside_another`], in other processes.
#[test]
#[ignore = "it is started by another test"]
fn failing_once() {
    fail(1);
}

#[test]
#[ignore = "it is started by another test"]
fn failing_twice() {
    fail(2);
}

fn fail(times: u64) {
    let (root, call) = doom();
    let directory = root.join(PLANE);
    let (planes, name) = DirectoryPlanes::of_plane(&directory).unwrap();
    let open = || Plane::open(&planes, name, &MASTER_KEY, "acme");
    let plane = open().unwrap();
    calls::record(&root, Fault::Calls { calls: call..call + times, errno: libc::EIO });
    drop(plane.compact(CompactionTrigger::Now, NOW_NS));
    drop(plane);
    let opened = (0..=times).find_map(|_| open().ok()).unwrap();
    opened.stats().unwrap();
    if calls::stop().failed_at.is_some() {
        std::process::exit(calls::FAILED);
    }
}

/// A delete, or the compaction after it, may end at any instruction. Its batch is then deleted or
/// not. If a read has shown the batch as deleted, the batch never comes back.
#[test]
pub(crate) fn a_delete_that_dies() {
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

/// The delete of [`a_delete_that_dies`], in another process.
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

/// A writer may be stopped and killed at any instruction, also within a write, before its batch is
/// answered. Reads continue while the writer is stopped. Once it is dead, the next read shows its
/// batch or no read ever does. Later work does not change that.
#[test]
pub(crate) fn a_writer_that_is_killed() {
    let root = scratch();
    let mut client = Client::create(&root.path().join(PLANE));
    let (mut stored, mut killed) = (0, 0);
    // A write, a sync, and at times the reservation of space.
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

/// Waits until `process` stops. Returns false if it ends instead.
fn stops(process: &Child) -> bool {
    let id = libc::pid_t::try_from(process.id()).unwrap();
    let mut status = 0;
    // SAFETY: the child is ours, and no other code has waited for it. `status` outlives the call.
    #[expect(unsafe_code, reason = "the standard library waits for the end only")]
    let waited = unsafe { libc::waitpid(id, &raw mut status, libc::WUNTRACED) };
    assert_eq!(waited, id);
    libc::WIFSTOPPED(status)
}

/// The writer of [`a_writer_that_is_killed`], in another process.
#[test]
#[ignore = "it is started by another test"]
fn writer() {
    let (root, call) = doom();
    let mut client = Client::open(&root.join(PLANE), 0).unwrap();
    let is_torn = std::env::var_os(DYING_TORN).is_some_and(|torn| torn == "true");
    calls::record(&root, if is_torn { Fault::Torn { call } } else { Fault::Stop { call } });
    client.work(&[Step::Write]);
}
