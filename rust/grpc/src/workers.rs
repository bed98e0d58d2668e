//! Threads beside the event loop, for work that takes long or blocks. Owners take turns at them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use fleetcast_core::model::error::catching;
use fleetcast_front::fair::{FairQueue, Lane, Owner};
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Threads, started as they are needed.
pub(crate) struct Workers {
    name: &'static str,
    queue: Arc<FairQueue<(), Job>>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    threads: Vec<JoinHandle<()>>,
    /// Jobs that wait or are being done.
    jobs: usize,
}

impl Workers {
    /// `owner_max` threads for each owner, and as many beside these for all others.
    pub(crate) fn new(name: &'static str, owner_max: usize) -> Self {
        Self { name, queue: Arc::new(FairQueue::new(owner_max)), state: Arc::default() }
    }

    /// Does `job` in a thread, to its end even if the result is not awaited. `Err` if it panics.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        owner: &Owner,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> oneshot::Receiver<R> {
        let (sender, receiver) = oneshot::channel();
        self.put(owner, move || drop(sender.send(job())));
        receiver
    }

    /// Does `job` in a thread; drops it if there is none, and none can be made.
    pub(crate) fn put(&self, owner: &Owner, job: impl FnOnce() + Send + 'static) {
        if self.provide() {
            self.queue.put(Lane { owner: owner.clone(), kind: () }, Box::new(job));
        }
    }

    /// Count of the threads that there may be.
    #[cfg(test)]
    pub(crate) fn threads_max(&self) -> usize {
        self.queue.threads_max()
    }

    /// Count of the jobs that wait or are being done.
    #[cfg(test)]
    pub(crate) fn jobs(&self) -> usize {
        lock(&self.state).jobs
    }

    /// Waits for the jobs that were begun or wait.
    pub(crate) fn close(&self) {
        self.queue.close();
        let threads = std::mem::take(&mut lock(&self.state).threads);
        for thread in threads {
            drop(thread.join()); // jobs are caught, so it has not panicked
        }
    }

    /// Has as many threads as there are jobs with one more, or as there may be. False without any;
    /// with one all is done in time.
    fn provide(&self) -> bool {
        let mut state = lock(&self.state);
        let wanted = (state.jobs + 1).min(self.queue.threads_max());
        if state.threads.len() < wanted {
            let (queue, shared) = (Arc::clone(&self.queue), Arc::clone(&self.state));
            let name = format!("{}-{}", self.name, state.threads.len());
            let thread = thread::Builder::new().name(name).spawn(move || work(&queue, &shared));
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

fn work(queue: &FairQueue<(), Job>, state: &Mutex<State>) {
    let mut next = queue.get();
    while let Some((lane, job)) = next {
        // A panic drops what would tell the result, which ends the call.
        drop(catching(|| {
            job();
            Ok(())
        }));
        lock(state).jobs -= 1;
        next = queue.done_and_get(&lane.owner);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
