//! Connections of this process, bounded in total and by address.
//!
//! At a bound, the oldest connection of the address without a valid key makes room. After a flood,
//! the next connections of the address wait before they shake hands.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fleetcast_front::fair::Owner;
use tokio::sync::{Notify, Semaphore};
use tokio::time::sleep;

const CONNECTIONS_MAX: usize = 65_536;
const ADDRESS_CONNECTIONS_MAX: usize = 2_048;
/// Bound on refused calls in a row; then the connection ends.
const REFUSALS_MAX: u32 = 10;
/// Bound on calls in a row that are reset at once (CVE-2023-44487); then the connection ends.
const RESETS_MAX: u32 = 200;
/// Time for which an address shakes no hands after a flood.
const FLOOD_PAUSE: Duration = Duration::from_secs(1);
const IPV6_PREFIX_BITS: u32 = 64;

/// All connections of clients of this process.
pub struct Connections {
    total_max: usize,
    address_max: usize,
    /// Permits one handshake of all addresses to be computed at a time.
    pub(crate) handshakes: Semaphore,
    state: Mutex<ConnectionCounts>,
}

#[derive(Default)]
struct ConnectionCounts {
    total: usize,
    addresses: HashMap<Owner, AddressSlots>,
}

struct AddressSlots {
    seats: VecDeque<Arc<ConnectionSeat>>,
    /// Permits one connection of the address to shake hands next.
    handshakes: Arc<Semaphore>,
}

/// The conduct of a connection, and a signal to end it.
#[derive(Debug, Default)]
pub(crate) struct ConnectionSeat {
    /// True once a call with a valid key came over the connection.
    is_used: AtomicBool,
    used: Notify,
    refusals: AtomicU32,
    resets: AtomicU32,
    is_ending: AtomicBool,
    end: Notify,
    /// True once the client sent more than any sound client sends.
    is_flooding: AtomicBool,
    flood: Notify,
}

/// A connection that is counted until this value is dropped.
pub struct ConnectionGuard {
    connections: Arc<Connections>,
    pub(crate) address: Owner,
    pub(crate) handshakes: Arc<Semaphore>,
    pub(crate) seat: Arc<ConnectionSeat>,
}

impl Connections {
    /// Makes the bounds for a process with this many descriptors. Half of them are for files of
    /// stores. Example: 16 descriptors allow 8 connections, and 4 for each address.
    #[must_use]
    pub fn new(descriptors_max: usize) -> Arc<Self> {
        let total_max = (descriptors_max / 2).clamp(2, CONNECTIONS_MAX);
        let address_max = ADDRESS_CONNECTIONS_MAX.min(total_max / 2);
        let handshakes = Semaphore::new(1);
        Arc::new(Self { total_max, address_max, handshakes, state: Mutex::default() })
    }

    /// Counts a connection of `peer`. Returns `None` if there is no room for the connection.
    pub fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionGuard> {
        let address = owner(peer);
        let mut state = self.state();
        let held = state.addresses.get(&address).map_or(0, |address| address.seats.len());
        if held >= self.address_max {
            state.make_room(&address)?;
        } else if state.total >= self.total_max {
            let most = state.addresses.iter().max_by_key(|(_, address)| address.seats.len());
            let most = most.map(|(owner, _)| owner.clone())?;
            state.make_room(&most)?;
        }
        state.total += 1;
        let entry = state.addresses.entry(address.clone()).or_insert_with(|| AddressSlots {
            seats: VecDeque::new(),
            handshakes: Arc::new(Semaphore::new(1)),
        });
        let seat = Arc::new(ConnectionSeat::default());
        entry.seats.push_back(Arc::clone(&seat));
        let handshakes = Arc::clone(&entry.handshakes);
        Some(ConnectionGuard { connections: Arc::clone(self), address, handshakes, seat })
    }

    /// Count of the connections.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.state().total
    }

    fn state(&self) -> MutexGuard<'_, ConnectionCounts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionCounts {
    /// Ends the oldest unused connection of an address. Returns `None` if all of them are in use.
    fn make_room(&mut self, address: &Owner) -> Option<()> {
        let seats = &self.addresses.get(address)?.seats;
        let unused = seats.iter().find(|seat| !seat.is_used())?;
        let unused = Arc::clone(unused);
        unused.end();
        self.remove(address, &unused);
        Some(())
    }

    fn remove(&mut self, owner: &Owner, seat: &Arc<ConnectionSeat>) {
        let Some(address) = self.addresses.get_mut(owner) else { return };
        let before = address.seats.len();
        address.seats.retain(|each| !Arc::ptr_eq(each, seat));
        self.total -= before - address.seats.len();
        if address.seats.is_empty() {
            self.addresses.remove(owner);
        }
    }
}

impl ConnectionGuard {
    /// Lets no other connection of the address shake hands for a while, if this connection has
    /// flooded. Floods of an address at the same time share a pause, so that other clients of the
    /// address wait for a second and not for each flood.
    pub(crate) async fn pause_after_flood(&self) {
        if self.seat.is_flooding.load(Ordering::Acquire)
            && let Ok(_turn) = self.handshakes.try_acquire()
        {
            sleep(FLOOD_PAUSE).await;
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.connections.state().remove(&self.address, &self.seat);
    }
}

impl ConnectionSeat {
    /// Notes a call whose key was valid.
    pub(crate) fn note_accepted(&self) {
        if !self.is_used.swap(true, Ordering::Relaxed) {
            self.used.notify_one();
        }
        self.refusals.store(0, Ordering::Relaxed);
        self.resets.store(0, Ordering::Relaxed);
    }

    /// Notes a call that was refused for its key. Many such calls in a row end the connection.
    pub(crate) fn note_refused(&self) {
        if self.refusals.fetch_add(1, Ordering::Relaxed) + 1 >= REFUSALS_MAX {
            self.end();
        }
    }

    /// Notes a call that its client reset at once. Many such calls in a row are a flood.
    pub(crate) fn note_reset(&self) {
        if self.resets.fetch_add(1, Ordering::Relaxed) + 1 >= RESETS_MAX {
            self.note_flood();
        }
    }

    /// Notes a flood. It ends the connection at once, whatever else is under way.
    pub(crate) fn note_flood(&self) {
        self.is_flooding.store(true, Ordering::Release);
        self.flood.notify_one();
    }

    /// Waits for a flood; once.
    pub(crate) async fn flooding(&self) {
        self.flood.notified().await;
    }

    /// Returns true once a call with a valid key came over the connection.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Waits for the first valid key; once.
    pub(crate) async fn in_use(&self) {
        self.used.notified().await;
    }

    /// Waits until the connection must end.
    pub(crate) async fn ending(&self) {
        if !self.is_ending.load(Ordering::Acquire) {
            self.end.notified().await;
        }
    }

    fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
        self.end.notify_one();
    }
}

/// Returns the owner of an address: the whole IPv4 address, or the first 64 bits of an IPv6
/// address, because one customer has all addresses under them.
pub(crate) fn owner(address: IpAddr) -> Owner {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string().into(),
        IpAddr::V6(address) => {
            let prefix = address.to_bits() >> (128 - IPV6_PREFIX_BITS);
            format!("{prefix:x}::/{IPV6_PREFIX_BITS}").into()
        }
    }
}

/// Returns the client in the form that log lines of gRPC use.
pub(crate) fn client(peer: SocketAddr) -> String {
    let port = peer.port();
    match peer.ip().to_canonical() {
        IpAddr::V4(address) => format!("ipv4:{address}:{port}"),
        IpAddr::V6(address) => format!("ipv6:%5B{address}%5D:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: &str = "192.0.2.1";
    const FAR: &str = "2001:db8::1";

    fn enter(connections: &Arc<Connections>, address: &str) -> Option<ConnectionGuard> {
        connections.enter(address.parse().unwrap())
    }

    fn is_ending(connected: &ConnectionGuard) -> bool {
        connected.seat.is_ending.load(Ordering::Relaxed)
    }

    #[test]
    fn o6_the_oldest_unused_connection_of_an_address_makes_room() {
        let connections = Connections::new(16); // 8 in total, 4 for each address
        let held: Vec<_> = (0..4).map(|_| enter(&connections, NEAR).unwrap()).collect();
        held[0].seat.note_accepted();
        let fifth = enter(&connections, NEAR).unwrap();
        assert_eq!(held.iter().map(is_ending).collect::<Vec<_>>(), [false, true, false, false]);
        for each in held.iter().chain([&fifth]) {
            each.seat.note_accepted();
        }
        assert!(enter(&connections, NEAR).is_none(), "all of them are in use");
        assert!(enter(&connections, FAR).is_some(), "others have room");
        drop(held);
        assert_eq!(connections.len(), 1);
        assert!(enter(&connections, NEAR).is_some());
    }

    #[test]
    fn o6_at_the_bound_of_all_the_address_with_most_makes_room() {
        let connections = Connections::new(8); // 4 in total, 2 for each address
        let near: Vec<_> = (0..2).map(|_| enter(&connections, NEAR).unwrap()).collect();
        let others: Vec<_> =
            ["192.0.2.2", "192.0.2.3"].map(|each| enter(&connections, each).unwrap()).into();
        let far = enter(&connections, FAR).unwrap();
        assert!(is_ending(&near[0]));
        assert!(!others.iter().chain([&far, &near[1]]).any(is_ending));
        assert_eq!(connections.len(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_flood_the_address_shakes_no_hands_for_a_second() {
        let connections = Connections::new(16);
        let (sound, next) =
            (enter(&connections, NEAR).unwrap(), enter(&connections, NEAR).unwrap());
        let flooding = enter(&connections, NEAR).unwrap();
        (0..RESETS_MAX - 1).for_each(|_| flooding.seat.note_reset());
        flooding.pause_after_flood().await; // one reset is missing
        flooding.seat.note_reset();
        let pause = tokio::spawn(async move { flooding.pause_after_flood().await });
        tokio::task::yield_now().await;
        assert!(next.handshakes.try_acquire().is_err());
        assert!(enter(&connections, FAR).unwrap().handshakes.try_acquire().is_ok());
        sound.pause_after_flood().await; // a connection that did not flood ends without a pause
        let began = tokio::time::Instant::now();
        drop(next.handshakes.acquire().await.unwrap());
        assert_eq!(began.elapsed(), FLOOD_PAUSE);
        pause.await.unwrap();
    }

    #[test]
    fn addresses_of_ipv6_count_by_their_network() {
        let of = |text: &str| owner(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
