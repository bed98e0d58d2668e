//! Requests of one worker that wait for a thread, and the parts of it that their tenants hold.
//!
//! Owners take turns at the threads. A request beyond its owner's share is not dropped: it has a
//! turn of its own, in which the application refuses it, with all that an answer needs.
//!
//! Answers that clients have not taken are bounded as well. A read waits as long as its answer would
//! take its tenant past the bound, and is refused where that lasts; clients that read make room
//! before. How large an answer will be is guessed from the last one, so that small reads go on
//! beside large ones that nobody takes.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::connection::{Connection, Long, LongBody};
use crate::fair::{self, FairQueue, KeyOwners, Owner, Starts};
use crate::head::{RequestHead, field_name};
use crate::holding::Holding;
use crate::message::{Asked, Message};
use crate::shared::{Amount, Shared};

/// Owns the turns in which requests are refused; no account, no address.
const OVER_SHARE: &str = "over share";
const SMALL_BYTES_MAX: u64 = 1 << 20;
/// Answers whose size is remembered.
const SIZES_MAX: usize = 65_536;

/// Lanes of one owner.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Kind {
    Write,
    SmallRead,
    LargeRead,
    /// Parts of answers that have begun.
    Rest,
    /// Refusals that this owner gets.
    Refused(Owner),
}

pub(crate) type Lane = fair::Lane<Kind>;

/// A request on its way to a thread.
pub(crate) struct Waiting {
    pub(crate) connection: Arc<Connection>,
    pub(crate) message: Box<Message>,
    pub(crate) under_way: Option<Holding>,
    pub(crate) unsent_held: Option<Holding>,
    /// The body of its answer, if that has begun.
    pub(crate) long: Option<Box<LongBody>>,
    queued_at: Instant,
}

type Sizes = HashMap<u64, u64, foldhash::fast::RandomState>;

/// Expectations of how large answers will be.
struct Expected {
    shared: Arc<Shared>,
    sizes: Mutex<Sizes>,
}

impl Expected {
    /// The size of the last answer to the same; two unknown ones are all that is let in.
    fn bytes(&self, message: &Message) -> u64 {
        let sizes = self.sizes();
        let known = sizes.get(&question(&sizes, message)).copied();
        drop(sizes);
        known.unwrap_or_else(|| self.shared.limits().unsent_bytes_per_tenant_max / 2)
    }

    /// Remembers how large an answer has become. A larger one before is not forgotten at once: the
    /// same path may be asked for less.
    fn note(&self, message: &Message, size_bytes: u64) {
        let mut sizes = self.sizes();
        if sizes.len() >= SIZES_MAX {
            sizes.clear();
        }
        let question = question(&sizes, message);
        let size = sizes.entry(question).or_default();
        *size = size_bytes.max(*size / 4 * 3);
    }

    fn fits(&self, message: &Message) -> bool {
        let held = self.shared.share(Amount::Unsent).held(&message.owner);
        let bound = self.shared.limits().unsent_bytes_per_tenant_max;
        held == 0 || held + self.bytes(message) <= bound
    }

    fn sizes(&self) -> MutexGuard<'_, Sizes> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Starts<Kind, Waiting> for Expected {
    /// Lets an answer be made, or not yet; a large one is counted from then on.
    fn starts(&self, lane: &Lane, waiting: &mut Waiting) -> bool {
        match lane.kind {
            Kind::Write | Kind::Rest | Kind::Refused(_) => return true,
            _ if !self.fits(&waiting.message) => return false,
            Kind::SmallRead => {}
            Kind::LargeRead => {
                let bytes = self.bytes(&waiting.message);
                let held = Holding::add(&self.shared, Amount::Unsent, &lane.owner, bytes);
                waiting.unsent_held = Some(held);
            }
        }
        true
    }
}

/// The queue between the loop and `2 * threads` threads.
pub(crate) struct RequestQueue {
    shared: Arc<Shared>,
    queue: FairQueue<Kind, Waiting, Expected>,
    over_share: Owner,
    /// Requests that threads have taken.
    taken: AtomicU64,
    owners: KeyOwners,
    /// Fields that a key may stand in, the first of which decides, by the names that heads have.
    key_fields: Box<[String]>,
}

impl RequestQueue {
    /// `key_fields` are those that a key may stand in, by the names that clients give them.
    pub(crate) fn new(threads: usize, shared: &Arc<Shared>, key_fields: &[String]) -> Arc<Self> {
        let expected = Expected { shared: Arc::clone(shared), sizes: Mutex::default() };
        let this = Arc::new(Self {
            shared: Arc::clone(shared),
            queue: FairQueue::with_starts(threads, expected),
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

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Requests that wait for a thread.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn threads_max(&self) -> usize {
        self.queue.threads_max()
    }

    /// Queues a request whose head is whole.
    pub(crate) fn put(&self, connection: Arc<Connection>, message: Box<Message>) {
        let queued_at = Instant::now();
        let waiting = Waiting {
            connection,
            message,
            under_way: None,
            unsent_held: None,
            long: None,
            queued_at,
        };
        self.enqueue(waiting);
    }

    /// Queues a request whose client has taken all that was made of its answer.
    pub(crate) fn put_long(&self, connection: Arc<Connection>, long: Long) {
        let Long { message, under_way, unsent_held, body } = long;
        let owner = message.owner.clone();
        let (long, queued_at) = (Some(Box::new(body)), Instant::now());
        let waiting = Waiting { connection, message, under_way, unsent_held, long, queued_at };
        self.queue.put(Lane { owner, kind: Kind::Rest }, waiting);
    }

    /// Queues a write once more that a thread had already.
    pub(crate) fn put_back(&self, waiting: Waiting) {
        let owner = waiting.message.owner.clone();
        self.queue.put(Lane { owner, kind: Kind::Write }, waiting);
    }

    /// Ends a thread's last turn, of the owner that it was for, and waits for its next; `None` ends
    /// the thread.
    pub(crate) fn next(&self, last: Option<&Lane>) -> Option<(Lane, Waiting)> {
        let next = match last {
            Some(lane) => self.queue.done_and_get(&lane.owner),
            None => self.queue.get(),
        };
        self.taken.fetch_add(1, Ordering::Relaxed);
        next
    }

    /// Count of the requests that threads have taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Ends a thread's turn.
    pub(crate) fn done(&self, lane: &Lane) {
        self.queue.done(&lane.owner);
    }

    /// Has every thread end as soon as nothing waits.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// Counts a request for the account that its key is of; false where that is too much.
    ///
    /// A key that is new counted for its address so far, and so does what waits beside it: that is
    /// queued anew, as there may be more of the account.
    pub(crate) fn claim(&self, waiting: &mut Waiting, lane: &mut Lane, account: &Owner) -> bool {
        waiting.message.owner = account.clone();
        if lane.owner == *account || lane.owner == self.over_share {
            return true;
        }
        let key = waiting.message.head().and_then(|head| self.key(head));
        if key.is_some_and(|key| self.owners.learn(key, account)) {
            for kind in [Kind::Write, Kind::SmallRead, Kind::LargeRead] {
                let beside = Lane { owner: lane.owner.clone(), kind };
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

    /// Remembers how large an answer has become. A large one counts before any of it is sent: its
    /// first byte may be followed by the next request.
    pub(crate) fn note_size(&self, waiting: &mut Waiting, size_bytes: u64) {
        if waiting.message.over_share {
            return;
        }
        self.queue.starts().note(&waiting.message, size_bytes);
        if size_bytes > SMALL_BYTES_MAX {
            let owner = &waiting.message.owner;
            let held = Holding::add(&self.shared, Amount::Unsent, owner, size_bytes);
            drop(waiting.unsent_held.replace(held));
        }
    }

    /// Refuses reads that have waited too long.
    pub(crate) fn refuse_overdue(&self, now: Instant) {
        let patience = self.shared.limits().unsent_wait;
        for lane in self.queue.lanes() {
            if matches!(lane.kind, Kind::SmallRead | Kind::LargeRead) {
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

    fn enqueue(&self, mut waiting: Waiting) {
        waiting.under_way = None;
        let message = &mut waiting.message;
        let Asked::Whole { head, .. } = &message.asked else {
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
        waiting.under_way = Holding::take(&self.shared, Amount::Requests, &owner, 1, bound);
        if waiting.under_way.is_none() {
            return self.refuse(waiting);
        }
        let kind = if writes {
            Kind::Write
        } else if self.queue.starts().bytes(message) <= SMALL_BYTES_MAX {
            Kind::SmallRead
        } else {
            Kind::LargeRead
        };
        self.queue.put(Lane { owner, kind }, waiting);
    }

    /// The text that came in the field that decides about the key.
    fn key<'h>(&self, head: &'h RequestHead) -> Option<&'h [u8]> {
        self.key_fields.iter().find_map(|name| head.field(name))
    }

    fn refuse(&self, mut waiting: Waiting) {
        waiting.under_way = None;
        waiting.message.over_share = true;
        self.put_refusal(waiting);
    }

    fn put_refusal(&self, waiting: Waiting) {
        let kind = Kind::Refused(waiting.message.owner.clone());
        self.queue.put(Lane { owner: self.over_share.clone(), kind }, waiting);
    }
}

/// A hash of the path and of its owner: a path may be long.
fn question(sizes: &Sizes, message: &Message) -> u64 {
    let path = message.head().map_or("", |head| head.path());
    sizes.hasher().hash_one((&message.owner, path))
}
