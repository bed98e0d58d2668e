//! Threads that write messages and never take the GIL.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use fleetcast_core::model::error::{Error, catching};
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::{self, Acknowledge, WriteError};
use fleetcast_core::wire::Format;
use fleetcast_front::admission::files::PlaneFiles as Files;
use fleetcast_front::fair::{FairQueue, Lane};

use super::KeyVerdict;
use crate::arguments::{BatchLimits, clock_ns};
use crate::errors::{failure, store_error};
use crate::results::WriteResult;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct ProtobufWrites {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The other end of `Shared::wake`.
    woken: UnixStream,
}

struct Shared {
    jobs: FairQueue<(), Job>,
    ended: Mutex<Ended>,
    /// Has a byte in it while there is something in `ended`.
    wake: UnixStream,
}

#[derive(Default)]
struct Ended {
    outcomes: Vec<(Job, Outcome)>,
    under_way: usize,
}

struct Job {
    token: Py<PyAny>,
    plane: Arc<plane::Plane>,
    files: Option<Arc<Files>>,
    body: PyBackedBytes,
    limits: WriteLimits,
    when: Acknowledge,
}

/// A token, and a result, or an exception, or neither.
type Taken = (Py<PyAny>, Option<WriteResult>, Option<Py<PyAny>>);

enum Outcome {
    Written(WriteResult),
    Refused(WriteError),
    Failed(Error),
    /// The files of the plane are not those that it was opened from: nothing was done.
    Stale,
}

impl Job {
    fn run(&mut self) -> Outcome {
        let when = std::mem::replace(&mut self.when, Acknowledge::Durable);
        let outcome = catching(|| {
            if self.files.as_ref().is_some_and(|files| !files.carry()) {
                return Ok(Outcome::Stale);
            }
            let now_ns = clock_ns(None);
            let written =
                self.plane.write(Format::Protobuf, &self.body, &self.limits, now_ns, when);
            Ok(match written {
                Ok(written) => Outcome::Written(WriteResult::new(written, now_ns)?),
                Err(error) => Outcome::Refused(error),
            })
        });
        outcome.unwrap_or_else(Outcome::Failed)
    }
}

impl Shared {
    fn ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut next = self.jobs.get();
        while let Some((lane, mut job)) = next {
            let outcome = job.run();
            self.end(job, outcome);
            next = self.jobs.done_and_get(&lane.owner);
        }
    }

    /// Hands an outcome to the thread that has the GIL, which is woken once for many.
    fn end(&self, job: Job, outcome: Outcome) {
        let mut ended = self.ended();
        ended.outcomes.push((job, outcome));
        if ended.outcomes.len() == 1 {
            let _ = (&self.wake).write(&[0]); // full only where there are bytes that wake
        }
    }
}

#[pymethods]
impl ProtobufWrites {
    #[new]
    fn new(owner_max: usize) -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let shared = Shared { jobs: FairQueue::new(owner_max), ended: Mutex::default(), wake };
        Ok(Self { shared: Arc::new(shared), threads: Mutex::default(), woken })
    }

    fn fileno(&self) -> RawFd {
        self.woken.as_raw_fd()
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands a mapping over as it is")]
    fn put(
        &self,
        token: Py<PyAny>,
        owner: &str,
        verdict: &KeyVerdict,
        body: PyBackedBytes,
        limits: BatchLimits,
    ) -> io::Result<bool> {
        let plane = verdict.plane.upgrade().and_then(|plane| plane.for_a_call().ok());
        let Some(plane) = plane else { return Ok(false) };
        let files = verdict.files.clone();
        let (limits, when) = (limits.of_batch(), limits.acknowledge(None));
        self.provide()?;
        let lane = Lane { owner: owner.into(), kind: () };
        self.shared.jobs.put(lane, Job { token, plane, files, body, limits, when });
        Ok(true)
    }

    /// All that has ended since the last call.
    fn take(&self, py: Python<'_>) -> PyResult<Vec<Taken>> {
        let mut bytes = [0; 64];
        match (&self.woken).read(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
            _ => {}
        }
        let outcomes = {
            let mut ended = self.shared.ended();
            let outcomes = std::mem::take(&mut ended.outcomes);
            ended.under_way -= outcomes.len();
            outcomes
        };
        let found = outcomes.into_iter().map(|(job, outcome)| {
            let (result, error) = match outcome {
                Outcome::Written(result) => (Some(result), None),
                Outcome::Refused(error) => (None, Some(failure(py, error))),
                Outcome::Failed(error) => (None, Some(store_error(&error))),
                Outcome::Stale => (None, None),
            };
            (job.token, result, error.map(|error| error.into_value(py).into_any()))
        });
        Ok(found.collect())
    }

    /// Waits for what was begun or waits, which can be taken then.
    fn close(&self, py: Python<'_>) {
        self.shared.jobs.close();
        let threads = std::mem::take(&mut *self.threads());
        py.detach(|| {
            for thread in threads {
                let _ = thread.join(); // a panic of its own has nobody to tell
            }
        });
    }
}

impl ProtobufWrites {
    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has as many threads as there are jobs, or as there may be; with one all is done in time.
    fn provide(&self) -> io::Result<()> {
        let mut ended = self.shared.ended();
        let mut threads = self.threads();
        let wanted = (ended.under_way + 1).min(self.shared.jobs.threads_max());
        while threads.len() < wanted {
            let shared = self.shared.clone();
            let name = format!("write-{}", threads.len());
            match thread::Builder::new().name(name).spawn(move || shared.work()) {
                Ok(thread) => threads.push(thread),
                Err(error) if threads.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        ended.under_way += 1;
        Ok(())
    }
}

impl Drop for ProtobufWrites {
    fn drop(&mut self) {
        self.shared.jobs.close();
    }
}
