//! Threads outside of the event loop, for work that takes long or blocks. Owners take turns at
//! them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use fleetcast_core::model::error::catching;
use fleetcast_front::fair::{FairQueue, Lane, Owner, thread_time};
use fleetcast_service::accounting::Accounting;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Threads that are started as they are needed.
pub(crate) struct Workers {
    name: &'static str,
    queue: Arc<FairQueue<(), Job>>,
    state: Arc<Mutex<WorkersState>>,
    accounting: Arc<Accounting>,
}

#[derive(Default)]
struct WorkersState {
    threads: Vec<JoinHandle<()>>,
    /// Count of the jobs that wait or run.
    jobs: usize,
}

impl Workers {
    /// Makes `owner_max` threads for each owner, and as many more for all other owners together.
    /// The cores are shared with the workers of other `processes`. `accounting` count the CPU time
    /// of the jobs.
    pub(crate) fn new(
        name: &'static str,
        owner_max: usize,
        processes: usize,
        accounting: &Arc<Accounting>,
    ) -> Self {
        let queue = Arc::new(FairQueue::new(owner_max, processes));
        let accounting = Arc::clone(accounting);
        Self { name, queue, state: Arc::default(), accounting }
    }

    /// Runs `job` in a thread, to its end even if the result is not awaited. Returns `Err` if it
    /// panics.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        owner: &Owner,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> oneshot::Receiver<R> {
        let (sender, receiver) = oneshot::channel();
        self.put(owner, move || drop(sender.send(job())));
        receiver
    }

    /// Runs `job` in a thread. Drops it if there is no thread and no thread can be made.
    pub(crate) fn put(&self, owner: &Owner, job: impl FnOnce() + Send + 'static) {
        if self.provide() {
            self.queue.put(Lane { owner: owner.clone(), kind: () }, Box::new(job));
        }
    }

    /// Bound on the count of threads.
    #[cfg(test)]
    pub(crate) fn threads_max(&self) -> usize {
        self.queue.threads_max()
    }

    /// Count of the jobs that wait or run.
    #[cfg(test)]
    pub(crate) fn jobs(&self) -> usize {
        lock(&self.state).jobs
    }

    /// Waits for all jobs that run or wait.
    pub(crate) fn close(&self) {
        self.queue.close();
        let threads = std::mem::take(&mut lock(&self.state).threads);
        for thread in threads {
            drop(thread.join()); // panics of jobs are caught, so the thread has not panicked
        }
    }

    /// Starts a thread if there are fewer threads than jobs with the new job, up to the bound.
    /// Returns false if there is no thread at all. A single thread is enough to run every job in
    /// time.
    fn provide(&self) -> bool {
        let mut state = lock(&self.state);
        let wanted = (state.jobs + 1).min(self.queue.threads_max());
        if state.threads.len() < wanted {
            let (queue, shared) = (Arc::clone(&self.queue), Arc::clone(&self.state));
            let accounting = Arc::clone(&self.accounting);
            let name = format!("{}-{}", self.name, state.threads.len());
            let thread =
                thread::Builder::new().name(name).spawn(move || work(&queue, &shared, &accounting));
            state.threads.extend(thread);
        }
        let is_provided = !state.threads.is_empty();
        state.jobs += usize::from(is_provided);
        is_provided
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn work(queue: &FairQueue<(), Job>, state: &Mutex<WorkersState>, accounting: &Accounting) {
    let mut next = queue.get();
    while let Some((lane, job)) = next {
        thread_time::begin();
        // A panic drops the channel of the result, which ends the call.
        drop(catching(|| {
            job();
            Ok(())
        }));
        lock(state).jobs -= 1;
        let used = thread_time::used();
        accounting.note_used(&lane.owner, used);
        next = queue.done_and_get(&lane.owner, used);
    }
}

fn lock(state: &Mutex<WorkersState>) -> MutexGuard<'_, WorkersState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
