//! Open connections, found by their tokens and by the addresses of their clients.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::connection::Connection;
use crate::fair::Owner;

/// A slot for a connection. The generation keeps events of an earlier connection from the next.
#[derive(Default)]
struct ConnectionSlot {
    generation: u32,
    connection: Option<Arc<Connection>>,
}

/// The connections of one worker.
#[derive(Default)]
pub(crate) struct ConnectionTable {
    slots: Vec<ConnectionSlot>,
    free: Vec<u32>,
    /// Slots of each address, with the oldest connection first.
    addresses: HashMap<Owner, BTreeMap<u64, u32>, foldhash::fast::RandomState>,
    /// Sequence numbers of the connections' arrivals, by slot.
    arrivals: Vec<u64>,
    next_arrival: u64,
}

impl ConnectionTable {
    /// Open connections.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The token of the next connection.
    pub(crate) fn next_token(&mut self) -> u64 {
        let index = self.free.last().copied().unwrap_or_else(|| {
            self.slots.push(ConnectionSlot::default());
            self.arrivals.push(0);
            let index = u32::try_from(self.slots.len() - 1).expect("descriptors are fewer");
            self.free.push(index);
            index
        });
        u64::from(self.slots[index as usize].generation) << 32 | u64::from(index)
    }

    /// Adds a connection, whose token is the last that `next_token` returned.
    pub(crate) fn insert(&mut self, connection: Arc<Connection>) {
        let index = self.free.pop().expect("a token was given out");
        let address = connection.peer.address.clone();
        self.addresses.entry(address).or_default().insert(self.next_arrival, index);
        self.arrivals[index as usize] = self.next_arrival;
        self.next_arrival += 1;
        self.slots[index as usize].connection = Some(connection);
    }

    pub(crate) fn get(&self, token: u64) -> Option<&Arc<Connection>> {
        let slot = self.slots.get(index_of(token))?;
        if u64::from(slot.generation) != token >> 32 {
            return None;
        }
        slot.connection.as_ref()
    }

    pub(crate) fn remove(&mut self, token: u64) -> Option<Arc<Connection>> {
        self.get(token)?;
        let index = index_of(token);
        let connection = self.slots[index].connection.take()?;
        self.slots[index].generation = self.slots[index].generation.wrapping_add(1);
        self.free.push(u32::try_from(index).ok()?);
        if let Some(same) = self.addresses.get_mut(&connection.peer.address) {
            same.remove(&self.arrivals[index]);
            if same.is_empty() {
                self.addresses.remove(&connection.peer.address);
            }
        }
        Some(connection)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Connection>> {
        self.slots.iter().filter_map(|slot| slot.connection.as_ref())
    }

    /// Returns the oldest connection that may be closed, of the address with the most connections.
    pub(crate) fn least_needed(&self) -> Option<u64> {
        let mut addresses: Vec<&BTreeMap<u64, u32>> = self.addresses.values().collect();
        addresses.sort_by_key(|same| Reverse(same.len()));
        addresses.iter().flat_map(|same| same.values()).find_map(|index| {
            let connection = self.slots[*index as usize].connection.as_ref()?;
            connection.lock().phase().is_interruptible().then_some(connection.token)
        })
    }
}

fn index_of(token: u64) -> usize {
    usize::try_from(token & u64::from(u32::MAX)).unwrap_or(usize::MAX)
}
