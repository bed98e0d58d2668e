//! The bounds, and the flaws that must be found within them.

use super::state::Job::{self, Append, Read};
use super::{FORK, Failover, Fault, Flaw, LOST, STALE, TAKEN_BACK, TWICE};
use crate::checking::{all_states, breaks, is_full};

type Jobs = [&'static [Job]; 2];

const WRITES: Jobs = [&[Append(0), Append(1)], &[Append(2), Read]];
const FEW: Jobs = [&[Append(0)], &[Append(1), Read]];
/// The second process reads what the first one writes.
const READS: Jobs = [&[Append(0)], &[Read, Read]];

const CRASHES: &[Fault] = &[Fault::Promote, Fault::Freeze, Fault::Restart];
const RELOADS: &[Fault] = &[Fault::Promote, Fault::Reload];

/// Returns a model in which one fault happens beside the promotion, or none.
fn model(jobs: Jobs, kinds: &'static [Fault], cuts: u8) -> Failover {
    let faults = if is_full() { 2 } else { 1 };
    Failover { jobs, kinds, faults, cuts, flaw: None }
}

#[test]
fn three_batches_survive_a_primary_that_lives_on() {
    all_states("failover, three batches", model(WRITES, CRASHES, is_full().into()));
}

#[test]
fn two_batches_are_stored_once_although_an_answer_is_lost() {
    all_states("failover, an answer lost", model(FEW, CRASHES, 1));
}

#[test]
fn a_reload_loses_no_acknowledged_batch() {
    all_states("failover, a reload", model(FEW, RELOADS, 1));
}

#[test]
fn each_check_that_is_left_out_is_missed() {
    let flaws = [
        (Flaw::TimelineAtConnectOnly, WRITES, CRASHES, 0, LOST),
        (Flaw::TimelineAtConnectOnly, READS, CRASHES, 0, STALE),
        (Flaw::SettingsAtConnectOnly, WRITES, RELOADS, 0, LOST),
        (Flaw::NoBarrier, WRITES, CRASHES, 0, TAKEN_BACK),
        (Flaw::ReloadIgnored, WRITES, RELOADS, 0, LOST),
        (Flaw::DuplicateIsProof, FEW, RELOADS, 1, LOST),
        (Flaw::NewIds, FEW, CRASHES, 1, TWICE),
        (Flaw::NoWatermark, READS, CRASHES, 0, FORK),
        (Flaw::HistoryNotCompared, RESENT, &[Fault::Promote], 0, FORK),
    ];
    for (flaw, jobs, kinds, cuts, promise) in flaws {
        let flawed = Failover { flaw: Some(flaw), ..model(jobs, kinds, cuts) };
        assert!(breaks(flawed, promise), "{flaw:?} breaks no promise: {promise}");
    }
}

/// A batch that is sent again may get the place on the new primary that it had on the old one. Its
/// id does not tell that the batch before it is another.
const RESENT: Jobs = [&[Append(0), Append(1)], &[Read, Append(2), Read]];

#[test]
fn a_batch_that_keeps_its_place_hides_no_fork_before_it() {
    all_states("failover, a batch that keeps its place", model(RESENT, &[Fault::Promote], 0));
}
