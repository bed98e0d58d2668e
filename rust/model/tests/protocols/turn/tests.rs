//! The bounds, and the flaws that must be found within them.

use super::{Flaw, KEPT, ONCE, OPENS, Turn};
use crate::checking::{all_states, breaks, is_full};

fn model() -> Turn {
    Turn { turns: 2, losses: 1, pauses: 1, flaw: None }
}

#[test]
fn no_bytes_come_under_a_key_that_is_dropped() {
    let (turns, pauses) = if is_full() { (3, 2) } else { (2, 1) };
    all_states("turn of a data key", Turn { turns, pauses, ..model() });
}

#[test]
fn each_check_that_is_left_out_is_missed() {
    let flaws = [
        (Flaw::AppendUnasked, OPENS),
        (Flaw::AppendBySlot, OPENS),
        (Flaw::PageUnasked, OPENS),
        (Flaw::RefusedIsAbsent, ONCE),
        (Flaw::LostIsStored, KEPT),
        (Flaw::KeysBeforeLease, OPENS),
        (Flaw::TurnWithoutCompare, OPENS),
        (Flaw::RewrapOpens, OPENS),
        (Flaw::ClosedByDrop, OPENS),
        (Flaw::CloseWithoutFence, OPENS),
        (Flaw::ManifestWithoutFence, OPENS),
        (Flaw::PageWithoutFence, OPENS),
        (Flaw::DropBySlot, OPENS),
    ];
    for (flaw, promise) in flaws {
        // A slot is taken again in the second turn, and is old again in the third.
        let turns = if flaw == Flaw::DropBySlot { 3 } else { 2 };
        let losses = (promise != OPENS).into();
        let flawed = Turn { turns, losses, flaw: Some(flaw), ..model() };
        assert!(breaks(flawed, promise), "{flaw:?} breaks no promise: {promise}");
    }
}
