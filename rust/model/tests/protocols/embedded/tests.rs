//! The bounds, and the flaws that must be found within them.

use super::{Embedded, Flaw, KEPT, SURVIVES, WHOLE};
use crate::checking::{all_states, breaks, is_full};

fn model() -> Embedded {
    Embedded { kills: 1, cuts: 1, failing_syncs: 1, flaw: None }
}

#[test]
fn killed_writers_and_a_power_cut_take_nothing_back() {
    let kills = if is_full() { 2 } else { 1 };
    all_states("embedded, kills", Embedded { kills, failing_syncs: 0, ..model() });
}

#[test]
fn a_failed_sync_is_never_a_success() {
    all_states("embedded, a failed sync", model());
}

#[test]
fn each_step_that_is_left_out_is_missed() {
    let flaws = [
        (Flaw::AcknowledgedFirst, SURVIVES),
        (Flaw::LateTarget, SURVIVES),
        (Flaw::SyncOnceMore, SURVIVES),
        (Flaw::NoHealing, SURVIVES),
        (Flaw::SyncOnceMore, KEPT),
        (Flaw::NoTurn, SURVIVES),
        (Flaw::DoubtIgnored, KEPT),
        (Flaw::CutOffIgnored, SURVIVES),
        (Flaw::NoChecksum, WHOLE),
        (Flaw::DeadIgnored, WHOLE),
        (Flaw::OldEnd, WHOLE),
        (Flaw::NoReservation, WHOLE),
    ];
    for (flaw, promise) in flaws {
        let flawed = Embedded { flaw: Some(flaw), ..model() };
        assert!(breaks(flawed, promise), "{flaw:?} breaks no promise: {promise}");
    }
}
