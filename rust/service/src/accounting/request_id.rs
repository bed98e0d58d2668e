//! Ids of requests.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    /// State of this thread's generator. The hasher's keys are random and differ each time.
    static STATE: Cell<[u64; 2]> = Cell::new([(); 2].map(|()| RandomState::new().hash_one(0)));
}

/// Returns a new id: 128 random bits as 32 hexadecimal digits. It is not a secret, so the kernel is
/// not asked for random bytes.
#[must_use]
pub fn new_request_id() -> String {
    let [high, low] = STATE.get().map(|state| state.wrapping_add(0x9e37_79b9_7f4a_7c15));
    // Two generators step alike, each from its own start.
    STATE.set([high, low]);
    let bits = u128::from(mixed(high)) << 64 | u128::from(mixed(low));
    format!("{bits:032x}")
}

/// The output function of `SplitMix64`, by Sebastiano Vigna.
fn mixed(state: u64) -> u64 {
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
