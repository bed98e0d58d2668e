//! Requests of one worker that wait for a thread, and the parts of the worker that tenants hold.
//!
//! Owners take turns at the threads. A request beyond its owner's share is not dropped. It gets a
//! turn of its own, in which the application refuses it with a complete answer.
//!
//! Answers that clients have not taken are bounded as well. A read waits while its answer would
//! take its tenant past the bound, and is refused if it waits too long. Clients that read their
//! answers make room before then. The size of an answer is guessed from the last answer to the same
//! path. Small reads thus go on while clients do not take their large answers.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::connection::{Connection, LongBody, LongRequest};
use crate::fair::{self, FairQueue, KeyOwners, Owner, StartCheck, thread_time};
use crate::head::{RequestHead, field_name};
use crate::holding::SharePermit;
use crate::message::{IncomingRequest, ParsedRequest};
use crate::shared::{Amount, WorkerState};

/// Owns the turns in which requests are refused. It is neither an account nor an address.
const OVER_SHARE: &str = "over share";
const SMALL_BYTES_MAX: u64 = 1 << 20;
/// Bound on the count of answers whose size is remembered.
const SIZES_MAX: usize = 65_536;

/// Lanes of one owner.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum LaneKind {
    Write,
    SmallRead,
    LargeRead,
    /// Parts of answers that have begun.
    Rest,
    /// Refusals for this owner.
    Refused(Owner),
}

pub(crate) type RequestLane = fair::Lane<LaneKind>;

/// A request on its way to a thread.
pub(crate) struct WaitingRequest {
    pub(crate) connection: Arc<Connection>,
    pub(crate) message: Box<IncomingRequest>,
    pub(crate) under_way: Option<SharePermit>,
    pub(crate) unsent_held: Option<SharePermit>,
    /// The body of the answer; `None` if the answer has not begun.
    pub(crate) long: Option<Box<LongBody>>,
    /// True if the request must leave cores to other owners.
    pub(crate) is_heavy: bool,
    queued_at: Instant,
}

type Sizes = HashMap<u64, u64, foldhash::fast::RandomState>;

/// Expected sizes of answers.
struct ExpectedSizes {
    shared: Arc<WorkerState>,
    sizes: Mutex<Sizes>,
}

impl ExpectedSizes {
    /// Returns the size of the last answer to the same path. An unknown answer counts for half of
    /// the tenant's bound, so at most two of them start.
    fn bytes(&self, message: &IncomingRequest) -> u64 {
        let sizes = self.sizes();
        let known = sizes.get(&question(&sizes, message)).copied();
        drop(sizes);
        known.unwrap_or_else(|| self.shared.limits().unsent_bytes_per_tenant_max / 2)
    }

    /// Remembers the size of an answer. A larger earlier size shrinks by a quarter at a time,
    /// because the same path may be asked for less. Example: after 8 MB, an answer of 1 MB leaves 6
    /// MB.
    fn note(&self, message: &IncomingRequest, size_bytes: u64) {
        let mut sizes = self.sizes();
        if sizes.len() >= SIZES_MAX {
            sizes.clear();
        }
        let question = question(&sizes, message);
        let size = sizes.entry(question).or_default();
        *size = size_bytes.max(*size / 4 * 3);
    }

    fn fits(&self, message: &IncomingRequest) -> bool {
        let held = self.shared.share(Amount::Unsent).held(&message.owner);
        let bound = self.shared.limits().unsent_bytes_per_tenant_max;
        held == 0 || held + self.bytes(message) <= bound
    }

    fn sizes(&self) -> MutexGuard<'_, Sizes> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StartCheck<LaneKind, WaitingRequest> for ExpectedSizes {
    /// Returns true if the answer may be made now. A large answer is counted from then on.
    fn starts(&self, lane: &RequestLane, waiting: &mut WaitingRequest, is_heavy: bool) -> bool {
        waiting.is_heavy = is_heavy;
        match lane.kind {
            LaneKind::Write | LaneKind::Rest | LaneKind::Refused(_) => return true,
            _ if !self.fits(&waiting.message) => return false,
            LaneKind::SmallRead => {}
            LaneKind::LargeRead => {
                let bytes = self.bytes(&waiting.message);
                let held = SharePermit::add(&self.shared, Amount::Unsent, &lane.owner, bytes);
                waiting.unsent_held = Some(held);
            }
        }
        true
    }

    /// A mebibyte of an answer takes some milliseconds.
    fn is_costly(&self, lane: &RequestLane) -> bool {
        matches!(lane.kind, LaneKind::LargeRead | LaneKind::Rest)
    }
}

/// The queue between the loop and `2 * threads` threads.
pub(crate) struct RequestQueue {
    shared: Arc<WorkerState>,
    queue: FairQueue<LaneKind, WaitingRequest, ExpectedSizes>,
    over_share: Owner,
    /// Count of the requests that threads have taken.
    taken: AtomicU64,
    owners: KeyOwners,
    /// Fields that may carry a key, by the names that heads store. The first field that is present
    /// decides.
    key_fields: Box<[String]>,
}

impl RequestQueue {
    /// Makes the queue of one of `processes` processes that share the cores. `key_fields` are the
    /// fields that may carry a key, by the names that clients use.
    pub(crate) fn new(
        threads: usize,
        processes: usize,
        shared: &Arc<WorkerState>,
        key_fields: &[String],
    ) -> Arc<Self> {
        let expected = ExpectedSizes { shared: Arc::clone(shared), sizes: Mutex::default() };
        let this = Arc::new(Self {
            shared: Arc::clone(shared),
            queue: FairQueue::with_starts(threads, processes, expected),
            over_share: OVER_SHARE.into(),
            taken: AtomicU64::new(0),
            owners: KeyOwners::default(),
            key_fields: key_fields.iter().map(|name| field_name(name)).collect(),
        });
        let weak = Arc::downgrade(&this);
        shared.when_room_is_made(Box::new(move || {
            if let Some(this) = weak.upgrade() {
                this.queue.retry();
            }
        }));
        this
    }

    pub(crate) fn shared(&self) -> &Arc<WorkerState> {
        &self.shared
    }

    /// Count of the requests that wait for a thread.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn threads_max(&self) -> usize {
        self.queue.threads_max()
    }

    /// Queues a request whose head is whole.
    pub(crate) fn put(&self, connection: Arc<Connection>, message: Box<IncomingRequest>) {
        let queued_at = Instant::now();
        let waiting = WaitingRequest {
            connection,
            message,
            under_way: None,
            unsent_held: None,
            long: None,
            is_heavy: false,
            queued_at,
        };
        self.enqueue(waiting);
    }

    /// Queues a request whose client has taken every part of its answer that was made.
    pub(crate) fn put_long(&self, connection: Arc<Connection>, long: LongRequest) {
        let LongRequest { message, under_way, unsent_held, body } = long;
        let owner = message.owner.clone();
        let (long, queued_at) = (Some(Box::new(body)), Instant::now());
        let waiting = WaitingRequest {
            connection,
            message,
            under_way,
            unsent_held,
            long,
            is_heavy: false,
            queued_at,
        };
        self.queue.put(RequestLane { owner, kind: LaneKind::Rest }, waiting);
    }

    /// Queues a write again that a thread has put back.
    pub(crate) fn put_back(&self, waiting: WaitingRequest) {
        let owner = waiting.message.owner.clone();
        self.queue.put(RequestLane { owner, kind: LaneKind::Write }, waiting);
    }

    /// Ends a thread's last turn, which was for the owner of `last` and used that much CPU time.
    /// Waits for its next request. Returns `None` if the thread must end.
    pub(crate) fn next(
        &self,
        last: Option<(&RequestLane, Duration)>,
    ) -> Option<(RequestLane, WaitingRequest)> {
        let next = match last {
            Some((lane, used)) => self.queue.done_and_get(&lane.owner, used),
            None => self.queue.get(),
        };
        thread_time::begin();
        self.taken.fetch_add(1, Ordering::Relaxed);
        next
    }

    /// Count of the requests that threads have taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Ends a thread's turn.
    pub(crate) fn done(&self, lane: &RequestLane) {
        self.queue.done(&lane.owner);
    }

    /// Closes the queue: every thread ends when no request waits.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Counts a request for the account of its key. Returns false if that exceeds the account's
    /// share.
    ///
    /// A request with a new key has counted for its address, and so have the requests that wait
    /// with it. The waiting requests are queued again, because some may belong to the account.
    pub(crate) fn claim(
        &self,
        waiting: &mut WaitingRequest,
        lane: &mut RequestLane,
        account: &Owner,
    ) -> bool {
        waiting.message.owner = account.clone();
        if lane.owner == *account || lane.owner == self.over_share {
            return true;
        }
        let key = waiting.message.head().and_then(|head| self.key(head));
        if key.is_some_and(|key| self.owners.learn(key, account)) {
            for kind in [LaneKind::Write, LaneKind::SmallRead, LaneKind::LargeRead] {
                let beside = RequestLane { owner: lane.owner.clone(), kind };
                for each in self.queue.withdraw(&beside, |_| true) {
                    self.enqueue(each);
                }
            }
        }
        if !self.queue.move_to(&lane.owner, account) {
            return false;
        }
        lane.owner = account.clone();
        if let Some(under_way) = &mut waiting.under_way {
            under_way.move_to(account);
        }
        if let Some(held) = &mut waiting.unsent_held {
            held.move_to(account);
        }
        true
    }

    /// Remembers the size of an answer. A large answer counts before any of it is sent, because the
    /// client may send its next request after the first byte.
    pub(crate) fn note_size(&self, waiting: &mut WaitingRequest, size_bytes: u64) {
        if waiting.message.over_share {
            return;
        }
        self.queue.starts().note(&waiting.message, size_bytes);
        if size_bytes > SMALL_BYTES_MAX {
            let owner = &waiting.message.owner;
            let held = SharePermit::add(&self.shared, Amount::Unsent, owner, size_bytes);
            drop(waiting.unsent_held.replace(held));
        }
    }

    /// Refuses reads that have waited too long.
    pub(crate) fn refuse_overdue(&self, now: Instant) {
        let patience = self.shared.limits().unsent_wait;
        for lane in self.queue.lanes() {
            if matches!(lane.kind, LaneKind::SmallRead | LaneKind::LargeRead) {
                let late = self.queue.withdraw(&lane, |each| {
                    each.queued_at + patience <= now && !self.queue.starts().fits(&each.message)
                });
                for each in late {
                    self.refuse(each);
                }
            }
        }
        self.queue.retry();
    }

    fn enqueue(&self, mut waiting: WaitingRequest) {
        waiting.under_way = None;
        let message = &mut waiting.message;
        let ParsedRequest::Whole { head, .. } = &message.asked else {
            return self.put_refusal(waiting);
        };
        if message.over_share {
            return self.put_refusal(waiting);
        }
        let writes = matches!(head.method(), "POST" | "PUT" | "PATCH");
        let address = &waiting.connection.peer.address;
        let owner = self.owners.of(self.key(head), address);
        message.owner = owner.clone();
        let bound = message.limits.connections_max;
        waiting.under_way = SharePermit::take(&self.shared, Amount::Requests, &owner, 1, bound);
        if waiting.under_way.is_none() {
            return self.refuse(waiting);
        }
        let kind = if writes {
            LaneKind::Write
        } else if self.queue.starts().bytes(message) <= SMALL_BYTES_MAX {
            LaneKind::SmallRead
        } else {
            LaneKind::LargeRead
        };
        self.queue.put(RequestLane { owner, kind }, waiting);
    }

    /// Returns the value of the field that decides about the key.
    fn key<'h>(&self, head: &'h RequestHead) -> Option<&'h [u8]> {
        self.key_fields.iter().find_map(|name| head.field(name))
    }

    fn refuse(&self, mut waiting: WaitingRequest) {
        waiting.under_way = None;
        waiting.message.over_share = true;
        self.put_refusal(waiting);
    }

    fn put_refusal(&self, waiting: WaitingRequest) {
        let kind = LaneKind::Refused(waiting.message.owner.clone());
        self.queue.put(RequestLane { owner: self.over_share.clone(), kind }, waiting);
    }
}

/// Hashes the path and the owner of a request, because a path may be long.
fn question(sizes: &Sizes, message: &IncomingRequest) -> u64 {
    let path = message.head().map_or("", |head| head.path());
    sizes.hasher().hash_one((&message.owner, path))
}
