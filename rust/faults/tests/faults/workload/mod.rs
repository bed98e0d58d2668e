//! A client and an operator at work on one plane. They report each promise, and when they got it.

mod client;
mod steps;

pub(crate) use self::client::Client;
pub(crate) use self::steps::{Step, steps};
use super::batches::{Event, Expected};

pub(crate) const MASTER_KEY: [u8; 32] = [7; 32];

/// Most calls that fail one after another.
pub(crate) const CALLS_FAIL_MAX: u64 = 5;

/// Returns the state that a machine must show after it stopped with `position` changes made.
pub(crate) fn expected_at(
    before: &Expected,
    events: &[(usize, Event)],
    position: usize,
) -> Expected {
    let mut expected = before.clone();
    for (_, event) in events.iter().filter(|(at, _)| *at <= position) {
        expected.note(*event);
    }
    expected
}
