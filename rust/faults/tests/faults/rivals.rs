//! Threads that write at the same time. One waits at a call, while the other gets as far as it can.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::calls::{Handle, Others};
use super::*;

/// First batch of the other thread.
const RIVAL_BATCH: u32 = 1_000;
/// Number of looks that must find the other thread asleep. It is then taken to wait for this
/// thread.
const LOOKS: usize = 3;
/// Steps of the thread that waits at one of its calls.
const STEPS: [Step; 6] =
    [Step::Write, Step::Compact, Step::Write, Step::Delete, Step::Write, Step::Compact];
/// Steps of the other thread.
const RIVAL_STEPS: [&[Step]; 3] =
    [&[Step::Write], &[Step::Write, Step::Write], &[Step::Compact, Step::Write]];

/// Two threads work at the same time, and wait for each other's locks if they must.
#[test]
fn two_threads() {
    let stride = if is_full() { 1 } else { 23 };
    let mut dice = Dice::new(21);
    let (mut runs, mut tally) = (0, Tally::default());
    for number in (0..).step_by(stride) {
        let Some((record, mut client, _root)) = race(number) else { break };
        runs += 1;
        tally += failing::aftermath(&record, &mut client, if is_full() { 6 } else { 4 }, &mut dice);
        assert_eq!(client.faults, [""; 0], "run {number}");
        tally.assert_clean();
    }
    eprintln!("{runs} runs in each of which another thread wrote during a call: {tally:?}");
    assert!(runs > 0);
}

/// Makes the run with this number. Returns `None` if there are no more runs.
pub(crate) fn race(number: usize) -> Option<(Record, Client, TempDir)> {
    let root = scratch();
    let disk = calls::record(root.path(), Fault::None);
    let mut client = Client::create(&root.path().join(PLANE));
    client.work(&[Step::Write]);
    let rival_steps = RIVAL_STEPS[number / 2 % RIVAL_STEPS.len()];
    let call = (number / 2 / RIVAL_STEPS.len()) as u64;
    let rival = Rival::of(&mut client, rival_steps);
    let recording = calls::handle().unwrap();
    let begin = Arc::clone(&rival);
    let others = Others(Arc::new(move || begin.run()));
    recording.pause(call, number % 2 == 1, others);
    client.work(&STEPS);
    rival.end(&mut client);
    let tape = calls::stop();
    tape.failed_at?;
    let events = client.events.clone();
    Some((Record { disk, tape, events, before: Expected::default() }, client, root))
}

/// A read makes the batch of a writer durable that has gone away, and its sync fails. Another thread
/// writes before the read has said so. Its sync succeeds, but the batch before its own is missing.
#[test]
pub(crate) fn a_sync_beside_a_sync_that_failed() {
    let root = scratch();
    let disk = calls::record(root.path(), Fault::None);
    let mut client = Client::create(&root.path().join(PLANE));
    client.work(&[Step::Write; 10]);
    // The next batch is large, so the other thread does not write its sectors again.
    client.work(&[Step::Hold, Step::Leave]);
    let rival = Rival::of(&mut client, &[Step::WriteOnce]);
    let begin = Arc::clone(&rival);
    calls::handle().unwrap().fail_sync(Others(Arc::new(move || begin.run())));
    client.batches();
    rival.end(&mut client);
    client.work(&[Step::Reopen]);
    let tape = calls::stop();
    assert!(matches!(tape.changes[tape.failed_at.unwrap() - 1], Change::SyncFailed { .. }));
    let events = client.events.clone();
    let record = Record { disk, tape, events, before: Expected::default() };
    let tally = failing::aftermath(&record, &mut client, 60, &mut Dice::new(33));
    assert_eq!(client.faults, [""; 0]);
    tally.assert_clean();
}

/// The other thread.
struct Rival {
    steps: &'static [Step],
    recording: Handle,
    client: Mutex<Option<Client>>,
    thread: Mutex<Option<JoinHandle<Client>>>,
    id: AtomicI32,
    is_done: AtomicBool,
}

impl Rival {
    fn of(client: &mut Client, steps: &'static [Step]) -> Arc<Self> {
        Arc::new(Self {
            steps,
            recording: calls::handle().unwrap(),
            client: Mutex::new(Some(client.beside(RIVAL_BATCH))),
            thread: Mutex::default(),
            id: AtomicI32::new(0),
            is_done: AtomicBool::new(false),
        })
    }

    /// Runs the other thread. Returns when it is done or waits.
    fn run(self: &Arc<Self>) {
        let rival = Arc::clone(self);
        let thread = std::thread::spawn(move || {
            rival.recording.join();
            let mut client = rival.client.lock().unwrap().take().unwrap();
            // SAFETY: the call has no conditions.
            #[expect(unsafe_code, reason = "the standard library does not tell it")]
            rival.id.store(unsafe { libc::gettid() }, Ordering::Release);
            client.work(rival.steps);
            rival.is_done.store(true, Ordering::Release);
            client
        });
        let mut sleeping = 0;
        while sleeping < LOOKS && !self.is_done.load(Ordering::Acquire) && !thread.is_finished() {
            sleeping = if self.sleeps() { sleeping + 1 } else { 0 };
            std::thread::yield_now();
        }
        *self.thread.lock().unwrap() = Some(thread);
    }

    fn sleeps(&self) -> bool {
        let id = self.id.load(Ordering::Acquire);
        let stat = std::fs::read_to_string(format!("/proc/self/task/{id}/stat"));
        stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S')))
    }

    fn end(&self, client: &mut Client) {
        if let Some(thread) = self.thread.lock().unwrap().take() {
            client.merge(thread.join().unwrap());
        }
        drop(self.client.lock().unwrap().take());
    }
}
