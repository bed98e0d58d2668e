//! Calls that have ended, and other events that somebody else counts and logs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc, oneshot};

/// Events that wait; a call that ends meanwhile waits as well.
const EVENTS_MAX: usize = 1_024;

/// A call that has ended, and is not a write that was stored.
#[derive(Debug)]
pub struct EndedCall {
    /// The id of the call.
    pub request_id: String,
    /// The call, `Service/Method`, the service by its last name.
    pub route: Arc<str>,
    /// The name of its status.
    pub status: &'static str,
    /// The error code, if it was refused.
    pub error: Option<String>,
    /// Account, name of the tenant, and id of the key, if the key is known.
    pub identity: Option<(String, String, String)>,
    /// Address and port of the client.
    pub client: String,
    /// Time from the head to the end.
    pub duration: Duration,
    /// Bytes of the message that came.
    pub bytes_in: u64,
    /// Bytes of the messages that went.
    pub bytes_out: u64,
    /// The text of a key that is no good, for the audit log.
    pub bad_key: Option<String>,
    /// A fault of the machine, for the log.
    pub fault: Option<String>,
    /// The setting that the names of a tenant would have passed.
    pub bound: Option<&'static str>,
    /// Its account, or its address, held its share already.
    pub is_over_share: bool,
}

/// Something that happened to the listener.
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
    /// Something happened to the listener.
    Notice(Notice),
}

type Noted = oneshot::Sender<()>;
type Queued = (Event, Option<Noted>);

/// Events on their way to whoever notes them.
pub(crate) struct Events {
    sender: mpsc::Sender<Queued>,
    receiver: Mutex<(mpsc::Receiver<Queued>, Vec<Noted>)>,
}

impl Events {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        Self { sender, receiver: Mutex::new((receiver, Vec::new())) }
    }

    /// Has the end of a call noted, and waits until it is: what a client has been told is counted.
    pub(crate) async fn note(&self, ended: EndedCall) {
        let (noted, waiting) = oneshot::channel();
        if self.sender.send((Event::Ended(Box::new(ended)), Some(noted))).await.is_ok() {
            drop(waiting.await); // nobody notes any more when the process ends
        }
    }

    /// Tells of something, unless too much waits.
    pub(crate) fn tell(&self, notice: Notice) {
        drop(self.sender.try_send((Event::Notice(notice), None)));
    }

    /// Waits for the next events, those of the last call being noted; none if there is nothing after
    /// `patience`. To be called by one thread, not on the runtime.
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
