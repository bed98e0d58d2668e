//! Calls that have ended, and other events. The owner of the front counts and logs them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};

/// Bound on the events that wait. A call that ends while the queue is full waits too.
const EVENTS_MAX: usize = 1_024;

/// A call that has ended, except a write that was stored.
#[derive(Debug)]
pub struct EndedCall {
    /// The id of the call.
    pub request_id: String,
    /// The call in the form `Service/Method`, with the last part of the service's name.
    pub route: Arc<str>,
    /// The name of its status.
    pub status: &'static str,
    /// The error code, if the call was refused.
    pub error: Option<String>,
    /// Account, name of the tenant, and id of the key, if the key is known.
    pub identity: Option<(String, String, String)>,
    /// Address and port of the client.
    pub client: String,
    /// Time from the head to the end.
    pub duration: Duration,
    /// Bytes of the message that was received.
    pub bytes_in: u64,
    /// Bytes of the messages that were sent.
    pub bytes_out: u64,
    /// The text of an invalid key, for the audit log.
    pub bad_key: Option<String>,
    /// A fault of this machine, for the log.
    pub fault: Option<String>,
    /// The setting that the tenant's names would have exceeded.
    pub bound: Option<&'static str>,
    /// True if the call's account, or its address, already held its share.
    pub is_over_share: bool,
}

/// An incident of the listener.
#[derive(Debug)]
pub struct Notice {
    /// The event, for a line of the log.
    pub event: &'static str,
    /// The problem, if there is one.
    pub problem: Option<String>,
}

impl Notice {
    pub(crate) fn new(event: &'static str, problem: Option<String>) -> Self {
        Self { event, problem }
    }
}

/// An event.
#[derive(Debug)]
pub enum Event {
    /// A call has ended.
    Ended(Box<EndedCall>),
    /// The listener had an incident.
    Notice(Notice),
}

type NoteSender = oneshot::Sender<()>;
type QueuedEvent = (Event, Option<NoteSender>);

/// Events on their way to the owner of the front.
pub(crate) struct Events {
    sender: mpsc::Sender<QueuedEvent>,
    receiver: Mutex<(mpsc::Receiver<QueuedEvent>, Vec<NoteSender>)>,
}

impl Events {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        Self { sender, receiver: Mutex::new((receiver, Vec::new())) }
    }

    /// Reports the end of a call, and waits until it is noted. A call is thus counted before its
    /// client gets the answer.
    pub(crate) async fn note(&self, ended: EndedCall) {
        let (noted, waiting) = oneshot::channel();
        if self.sender.send((Event::Ended(Box::new(ended)), Some(noted))).await.is_ok() {
            drop(waiting.await); // no event is noted once the process ends
        }
    }

    /// Reports a notice, unless too many events wait.
    pub(crate) fn tell(&self, notice: Notice) {
        drop(self.sender.try_send((Event::Notice(notice), None)));
    }

    /// Waits for the next events. This call confirms that the events of the last call were noted.
    /// Returns no events if none arrive within `patience`. Call it from one thread, outside of the
    /// runtime.
    pub(crate) async fn next(&self, patience: Duration) -> Vec<Event> {
        let mut receiver = self.receiver.lock().await;
        let (receiver, noted) = &mut *receiver;
        for noted in noted.drain(..) {
            let _ = noted.send(()); // it does not wait any more
        }
        let mut found = Vec::new();
        let waiting = receiver.recv_many(&mut found, EVENTS_MAX);
        drop(tokio::time::timeout(patience, waiting).await);
        let mut events = Vec::with_capacity(found.len());
        for (event, waits) in found {
            events.push(event);
            noted.extend(waits);
        }
        events
    }
}
