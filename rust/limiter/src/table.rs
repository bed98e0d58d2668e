//! Slots of the clients in the file.

use std::fs::File;
use std::hash::BuildHasher;
use std::io;
use std::os::unix::fs::FileExt;

use foldhash::quality::FixedState;

use crate::client::Client;
use crate::layout::{FileLayout, HEAD_BYTES, WAYS};
use crate::ring::Ring;
use crate::rules::{LimiterRules, RATE_WINDOW_NS, SECOND_NS};

const BUCKET_BYTES: usize = WAYS * HEAD_BYTES;

/// The file while it is locked.
pub(crate) struct ClientTable<'f> {
    file: &'f File,
    layout: FileLayout,
    rules: LimiterRules,
}

/// The slot of a client.
#[derive(Clone, Copy)]
pub(crate) struct ClientSlot {
    index: u64,
    key: u128,
    locked_until_ns: u64,
    since_ns: u64,
}

impl ClientSlot {
    /// Returns the instant at which the client got this slot. Earlier instants in the rings belong
    /// to another client.
    pub(crate) fn since_ns(&self) -> u64 {
        self.since_ns
    }
}

impl<'f> ClientTable<'f> {
    pub(crate) fn new(file: &'f File, layout: FileLayout, rules: LimiterRules) -> Self {
        Self { file, layout, rules }
    }

    /// Returns the slot of `client`, if it has one.
    pub(crate) fn find(&self, client: Client) -> io::Result<Option<ClientSlot>> {
        Ok(self.bucket(client)?.into_iter().find(|slot| slot.key == client.key()))
    }

    /// Returns the slot of `client`. A new client gets an empty slot, or the slot of the client
    /// that was idle longest.
    pub(crate) fn find_or_claim(&self, client: Client, now_ns: u64) -> io::Result<ClientSlot> {
        let bucket = self.bucket(client)?;
        if let Some(slot) = bucket.iter().find(|slot| slot.key == client.key()) {
            return Ok(*slot);
        }
        let mut index = bucket.iter().find(|slot| slot.key == 0).map(|slot| slot.index);
        if index.is_none() {
            let mut oldest_ns = u64::MAX;
            for slot in &bucket {
                let active_ns = self.last_active_ns(slot, now_ns)?;
                if active_ns < oldest_ns {
                    (oldest_ns, index) = (active_ns, Some(slot.index));
                }
            }
        }
        let index = index.unwrap_or(bucket[0].index);
        let slot = ClientSlot { index, key: client.key(), locked_until_ns: 0, since_ns: now_ns };
        self.write_head(&slot)?;
        Ok(slot)
    }

    /// Returns the ring of admitted requests.
    pub(crate) fn admitted(&self, slot: &ClientSlot, now_ns: u64) -> Ring<'f> {
        let valid = slot.since_ns..=now_ns.saturating_add(RATE_WINDOW_NS);
        Ring::new(self.file, self.layout.rings_offset(slot.index), self.layout.admitted_len, valid)
    }

    /// Returns the ring of failures since the last lock.
    pub(crate) fn failed(&self, slot: &ClientSlot, now_ns: u64) -> Ring<'f> {
        let offset = self.layout.failed_offset(slot.index);
        let from_ns = slot.since_ns.max(slot.locked_until_ns);
        let window_ns = u64::from(self.rules.lockout_window_seconds) * SECOND_NS;
        let valid = from_ns..=now_ns.saturating_add(window_ns);
        Ring::new(self.file, offset, self.layout.failed_len, valid)
    }

    /// Returns the nanoseconds that the client stays locked out, or 0 if it is not locked out.
    pub(crate) fn locked_ns(&self, slot: &ClientSlot, now_ns: u64) -> u64 {
        let left_ns = slot.locked_until_ns.saturating_sub(now_ns);
        let longest_ns = u64::from(self.rules.lockout_seconds) * SECOND_NS;
        // More than the longest lock is damage. Half as much again leaves room for clocks read out
        // of turn.
        if left_ns > longest_ns + longest_ns / 2 { 0 } else { left_ns }
    }

    /// Locks a client out. Its failures lie before the end of the lock, so they no longer count.
    pub(crate) fn lock_until(&self, slot: &ClientSlot, until_ns: u64) -> io::Result<()> {
        self.write_head(&ClientSlot { locked_until_ns: until_ns, ..*slot })
    }

    /// Returns the last instant that matters to a client. For a locked client it lies in the
    /// future.
    fn last_active_ns(&self, slot: &ClientSlot, now_ns: u64) -> io::Result<u64> {
        let admitted_ns = self.admitted(slot, now_ns).cursor()?.newest_ns;
        let failed_ns = self.failed(slot, now_ns).cursor()?.newest_ns;
        let locked = self.locked_ns(slot, now_ns) > 0;
        Ok(admitted_ns.max(failed_ns).max(if locked { slot.locked_until_ns } else { 0 }))
    }

    fn bucket(&self, client: Client) -> io::Result<[ClientSlot; WAYS]> {
        let hash = FixedState::with_seed(self.layout.seed).hash_one(client.key());
        let first = hash % self.layout.buckets * WAYS as u64;
        let mut bytes = [0; BUCKET_BYTES];
        self.file.read_exact_at(&mut bytes, FileLayout::head_offset(first))?;
        let heads = bytes.as_chunks::<HEAD_BYTES>().0;
        let mut indexes = first..;
        Ok(std::array::from_fn(|way| read_head(&heads[way], indexes.next().unwrap_or(first))))
    }

    fn write_head(&self, slot: &ClientSlot) -> io::Result<()> {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..16].copy_from_slice(&slot.key.to_le_bytes());
        bytes[16..24].copy_from_slice(&slot.locked_until_ns.to_le_bytes());
        bytes[24..].copy_from_slice(&slot.since_ns.to_le_bytes());
        self.file.write_all_at(&bytes, FileLayout::head_offset(slot.index))
    }
}

fn read_head(bytes: &[u8; HEAD_BYTES], index: u64) -> ClientSlot {
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let key = u128::from(word(8)) << 64 | u128::from(word(0));
    ClientSlot { index, key, locked_until_ns: word(16), since_ns: word(24) }
}
