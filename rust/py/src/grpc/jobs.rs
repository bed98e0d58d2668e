//! Threads beside an event loop: they write messages without the GIL, and call Python for the rest.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use fleetcast_core::model::error::{Result, catching};
use fleetcast_core::model::limits::WriteLimits;
use fleetcast_core::plane::{self, Acknowledge, Pending, WriteError, Written};
use fleetcast_core::wire::Format;
use fleetcast_front::fair::{FairQueue, Lane};
use fleetcast_service::planes::OpenPlane;

use crate::arguments::{BatchLimits, ingest_ns};
use crate::errors::{failure, store_error};
use crate::plane::Plane;
use crate::results::WriteResult;

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct Jobs {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The other end of `Shared::wake`.
    woken: UnixStream,
}

struct Shared {
    queue: FairQueue<(), Job>,
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
    work: Work,
}

enum Work {
    Call(Py<PyAny>),
    Write(Box<Message>),
}

/// A batch on its way into a plane.
struct Message {
    open: Arc<OpenPlane>,
    /// Its handle does not close it before the message has its outcome.
    plane: Arc<plane::Plane>,
    body: PyBackedBytes,
    limits: BatchLimits,
}

/// A token, and a result or an exception.
type Taken = (Py<PyAny>, Option<Py<PyAny>>, Option<Py<PyAny>>);

enum Outcome {
    Called(PyResult<Py<PyAny>>),
    Written(Result<Box<WriteResult>>),
    Refused(WriteError),
}

impl Message {
    /// Appends the batch to the log of its plane as of `now_ns`; the outcome where it comes to none.
    fn append(&self, now_ns: i64) -> std::result::Result<Pending, Outcome> {
        let appended = catching(|| {
            let (limits, when): (WriteLimits, Acknowledge) =
                (self.limits.of_batch(), self.limits.acknowledge(None));
            let appended = self.plane.append(Format::Protobuf, &self.body, &limits, now_ns, when);
            Ok(appended.map_err(Outcome::Refused))
        });
        appended.unwrap_or_else(|error| Err(Outcome::Written(Err(error))))
    }
}

impl Shared {
    fn ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(self: &Arc<Self>) {
        let mut next = self.queue.get();
        while let Some((lane, job)) = next {
            match &job.work {
                Work::Call(call) => {
                    let outcome = Python::attach(|py| call.call0(py));
                    self.end(job, Outcome::Called(outcome));
                }
                Work::Write(_) => self.write(job),
            }
            next = self.queue.done_and_get(&lane.owner);
        }
    }

    /// Appends a batch, and leaves it to be acknowledged by whoever waits for its disk.
    fn write(self: &Arc<Self>, job: Job) {
        let Work::Write(message) = &job.work else { return };
        let began = ingest_ns(None).map_err(|error| Outcome::Written(Err(error)));
        match began.and_then(|now_ns| Ok((message.append(now_ns)?, now_ns))) {
            Ok((pending, now_ns)) => {
                let (shared, open) = (Arc::clone(self), Arc::clone(&message.open));
                open.acknowledge(pending, move |written: Result<Written>| {
                    let result = written.and_then(|written| WriteResult::new(written, now_ns));
                    shared.end(job, Outcome::Written(result.map(Box::new)));
                });
            }
            Err(outcome) => self.end(job, outcome),
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
impl Jobs {
    #[new]
    fn new(owner_max: usize) -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let shared = Shared { queue: FairQueue::new(owner_max), ended: Mutex::default(), wake };
        Ok(Self { shared: Arc::new(shared), threads: Mutex::default(), woken })
    }

    fn fileno(&self) -> RawFd {
        self.woken.as_raw_fd()
    }

    fn call(&self, token: Py<PyAny>, owner: &str, call: Py<PyAny>) -> io::Result<()> {
        self.put(owner, Job { token, work: Work::Call(call) })
    }

    fn write(
        &self,
        token: Py<PyAny>,
        owner: &str,
        plane: &Plane,
        body: PyBackedBytes,
        limits: BatchLimits,
    ) -> io::Result<bool> {
        let open = Arc::clone(plane.shared());
        let Ok(plane) = open.for_a_call() else { return Ok(false) };
        let message = Box::new(Message { open, plane, body, limits });
        self.put(owner, Job { token, work: Work::Write(message) })?;
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
            let outcome = match outcome {
                Outcome::Called(outcome) => outcome,
                Outcome::Written(Ok(result)) => Py::new(py, *result).map(Py::into_any),
                Outcome::Written(Err(error)) => Err(store_error(&error)),
                Outcome::Refused(error) => Err(failure(py, error)),
            };
            match outcome {
                Ok(result) => (job.token, Some(result), None),
                Err(error) => (job.token, None, Some(error.into_value(py).into_any())),
            }
        });
        Ok(found.collect())
    }

    /// Waits for what was begun or waits, which can be taken then.
    fn close(&self, py: Python<'_>) {
        self.shared.queue.close();
        let threads = std::mem::take(&mut *self.threads());
        py.detach(|| {
            for thread in threads {
                let _ = thread.join(); // a panic of its own has nobody to tell
            }
        });
    }
}

impl Jobs {
    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, owner: &str, job: Job) -> io::Result<()> {
        self.provide()?;
        self.shared.queue.put(Lane { owner: owner.into(), kind: () }, job);
        Ok(())
    }

    /// Has as many threads as there are jobs, or as there may be; with one all is done in time.
    fn provide(&self) -> io::Result<()> {
        let mut ended = self.shared.ended();
        let mut threads = self.threads();
        let wanted = (ended.under_way + 1).min(self.shared.queue.threads_max());
        while threads.len() < wanted {
            let shared = self.shared.clone();
            let name = format!("job-{}", threads.len());
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

impl Drop for Jobs {
    fn drop(&mut self) {
        self.shared.queue.close();
    }
}
