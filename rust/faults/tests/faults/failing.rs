//! Calls that fail.

use super::*;

/// Continues with a client on a machine without faults. Cuts the power at `cuts` moments after the
/// first fault.
pub(crate) fn aftermath(
    record: &Record,
    client: &mut Client,
    cuts: usize,
    dice: &mut Dice,
) -> Tally {
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

/// Does the work once for every `stride`-th call. That call and the `times - 1` calls after it
/// fail.
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

/// F9: a device that fails loses no acknowledged batch.
#[test]
fn a_failing_device() {
    fail_calls(libc::EIO, 1, if is_full() { 1 } else { 31 });
    fail_calls(libc::EIO, CALLS_FAIL_MAX, if is_full() { 3 } else { 97 });
}

/// If LMDB cannot sync its new head page, it writes the old page again. The content on disk is then
/// unknown, and must be settled before any other page is written.
#[test]
fn after_a_failed_sync_nothing_is_written_before_a_sync() {
    let mut put_back = 0;
    for first in 0.. {
        let calls = first..first + 1;
        let (record, ..) = perform(&steps(8), Fault::Calls { calls, errno: libc::EIO });
        let Some(failed_at) = record.tape.failed_at else { break };
        let (before, after) = record.tape.changes.split_at(failed_at);
        let (Some(Change::Write { file, at: last_at, bytes }), Some(Change::SyncFailed { node })) =
            (before.last(), after.first())
        else {
            continue;
        };
        // Pages of a commit without its head page are free. Other pages may be written over them.
        if !is_head_page(*last_at, bytes) {
            continue;
        }
        assert_eq!(file, node);
        let mut later = after[1..].iter().filter_map(|change| match change {
            Change::Write { file: of, at, bytes } if of == file => Some(Some((*at, bytes))),
            Change::Sync { node, .. } if node == file => Some(None),
            _ => None,
        });
        let mut next = later.next();
        if next.flatten().is_some_and(|(at, _)| at == *last_at) {
            put_back += 1;
            next = later.next();
        }
        // Head pages are written again.
        while next.flatten().is_some_and(|(at, bytes)| is_head_page(at, bytes)) {
            next = later.next();
        }
        assert_eq!(next.flatten(), None, "call {first}");
    }
    assert!(put_back > 0);
}

/// Work in which only compactions commit to LMDB, one after another. An opening before each leaves
/// its file too short to be rewritten by the next. The first compaction has rows of all days, so
/// every later compaction removes segments.
const COMPACTIONS: [Step; 13] = [
    Step::Write,
    Step::Write,
    Step::Write,
    Step::Compact,
    Step::Write,
    Step::Reopen,
    Step::Compact,
    Step::Compact,
    Step::Write,
    Step::Reopen,
    Step::Compact,
    Step::Compact,
    Step::Compact,
];

/// F9: if reads have shown a commit whose head page could not be synced, the commit stays. If reads
/// have not shown it, it does no harm. This holds whether or not LMDB could write the old page
/// again, and however often the store was opened before a sync succeeded.
#[test]
fn a_head_page_in_doubt() {
    heads_in_doubt(if is_full() { 60 } else { 6 });
}

/// Cuts the power at `cuts` moments after each head page in doubt.
pub(crate) fn heads_in_doubt(cuts: usize) {
    let mut dice = Dice::new(18);
    let (mut runs, mut tally) = (0, Tally::default());
    head_faults(|record, mut client, fault| {
        runs += 1;
        tally += aftermath(&record, &mut client, cuts, &mut dice);
        assert_eq!(client.faults, [""; 0], "{fault:?}");
        assert!(tally.is_clean(), "{fault:?}: {tally:?}");
    });
    eprintln!("{runs} runs in which a head page was in doubt: {tally:?}");
    assert!(runs > 0);
}

/// Makes the sync of each head page fail, together with some of the calls or syncs that follow.
pub(crate) fn head_faults(mut visit: impl FnMut(Record, Client, &Fault)) {
    let errno = libc::EIO;
    let calls = |first, times| Fault::Calls { calls: first..first + times, errno };
    // LMDB writes the old page again, and that write is lost.
    let syncs = |first, times| Fault::Syncs { syncs: first..first + times, errno };
    let faults: [&dyn Fn(u64, u64) -> Fault; 2] = [&calls, &syncs];
    for fault in faults {
        let (mut first, mut times) = (0, 1);
        loop {
            let fault = fault(first, times);
            let (record, client, root) = perform(&COMPACTIONS, fault.clone());
            let Some(failed_at) = record.tape.failed_at else { break };
            if times > CALLS_FAIL_MAX || !is_of_head_page(&record.tape.changes, failed_at) {
                (first, times) = (first + 1, 1);
                continue;
            }
            visit(record, client, &fault);
            drop(root);
            times += 1;
        }
    }
}

/// Returns true if the change at `at` is a failed sync of LMDB's head page, written just before.
fn is_of_head_page(changes: &[Change], at: usize) -> bool {
    let (before, after) = changes.split_at(at);
    let (Some(Change::Write { file, at, bytes }), Some(Change::SyncFailed { node })) =
        (before.last(), after.first())
    else {
        return false;
    };
    file == node && is_head_page(*at, bytes)
}

/// Returns true for a write of one of LMDB's head pages.
fn is_head_page(at: u64, bytes: &[u8]) -> bool {
    [32, 4_096 + 32].contains(&at) && bytes.len() == 120
}

/// F9: any single call may find no space.
#[test]
fn no_space_for_one_call() {
    fail_calls(libc::ENOSPC, 1, if is_full() { 1 } else { 31 });
}

/// A write that is cut short counts as no write, however many bytes it has written.
#[test]
fn writes_that_are_cut_short() {
    short_writes(if is_full() { 1 } else { 31 });
}

/// Cuts each `stride`-th call short, if it is a write.
pub(crate) fn short_writes(stride: usize) {
    let mut dice = Dice::new(17);
    let (mut runs, mut tally) = (0, Tally::default());
    for call in (0..).step_by(stride) {
        let (record, mut client, _root) = perform(&steps(46), Fault::Short { call });
        if record.tape.failed_at.is_none() {
            break;
        }
        runs += 1;
        tally += aftermath(&record, &mut client, 3, &mut dice);
        assert_eq!(client.faults, [""; 0], "call {call}");
        tally.assert_clean();
    }
    eprintln!("{runs} runs in each of which a write was cut short: {tally:?}");
    assert!(runs > 0);
}

/// F11: while a disk is full, no batch is acknowledged and all batches can be read. Then the same
/// handle continues.
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

/// Syncs fail, one after another, and then succeed again. A later sync does not write the changes
/// that a failed sync left out.
#[test]
fn syncs_that_fail() {
    failing_syncs(&SHORT, 1);
    failing_syncs(&steps(46), if is_full() { 1 } else { 41 });
}

/// Work after which most of LMDB's file is free, so that the file is rewritten.
const SHORT: [Step; 10] = [
    Step::Write,
    Step::Compact,
    Step::Write,
    Step::Delete,
    Step::Compact,
    Step::Write,
    Step::Compact,
    Step::Reopen,
    Step::Write,
    Step::Delete,
];

/// Makes one to three syncs fail, from each `stride`-th sync on.
pub(crate) fn failing_syncs(steps: &[Step], stride: usize) {
    let mut dice = Dice::new(16);
    let (mut runs, mut tally) = (0, Tally::default());
    for first in (0..).step_by(stride) {
        let syncs = first..first + 1 + first / stride as u64 % 3;
        let (record, mut client, _root) = perform(steps, Fault::Syncs { syncs, errno: libc::EIO });
        if record.tape.failed_at.is_none() {
            break;
        }
        runs += 1;
        tally += aftermath(&record, &mut client, 6, &mut dice);
        assert_eq!(client.faults, [""; 0], "sync {first}");
        tally.assert_clean();
    }
    eprintln!("{runs} runs in each of which syncs failed: {tally:?}");
    assert!(runs > 0);
}
