//! The bounds, and the flaws that must be found within them.

use super::{Flaw, LOST, NAMED, ONE_NAME, Plane, STALE, TRIMMED, TWICE};
use crate::checking::{all_states, breaks, is_full};

fn model() -> Plane {
    Plane { hours: 2, losses: 1, pauses: 1, damages: 1, flaw: None }
}

#[test]
fn compactors_that_oversleep_lose_nothing() {
    let hours = if is_full() { 2 } else { 0 };
    all_states("plane, a lease that ends", Plane { hours, losses: 0, damages: 0, ..model() });
}

#[test]
fn an_hour_is_removed_after_its_rows_are_in_objects() {
    let pauses = is_full().into();
    all_states("plane, an answer and an object lost", Plane { pauses, ..model() });
}

#[test]
fn each_check_that_is_left_out_is_missed() {
    let flaws = [
        (Flaw::NamesWithoutCompare, ONE_NAME),
        (Flaw::ManifestWithoutFence, NAMED),
        (Flaw::RetirementWithoutFence, NAMED),
        (Flaw::ViewInTwo, STALE),
        (Flaw::NeededTrim, LOST),
        (Flaw::UnseenTrim, TRIMMED),
        (Flaw::EarlyTrim, TWICE),
    ];
    for (flaw, promise) in flaws {
        let flawed = Plane { flaw: Some(flaw), ..model() };
        assert!(breaks(flawed, promise), "{flaw:?} breaks no promise: {promise}");
    }
}
