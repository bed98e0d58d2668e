//! Runs of the checker.

use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model};

/// Visits all states of a model. Prints their count.
///
/// # Panics
/// Panics if a state breaks a promise, or if the goal of the model is never reached.
pub(crate) fn all_states<M>(name: &str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let checker = model.checker().spawn_dfs().join();
    eprintln!("{name}: {} states, all visited", checker.unique_state_count());
    checker.assert_properties();
}

/// Returns true if a state breaks this promise. Ends the search at the first one.
pub(crate) fn breaks<M>(model: M, promise: &'static str) -> bool
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let first = HasDiscoveries::AnyOf([promise].into());
    model.checker().finish_when(first).spawn_bfs().join().discovery(promise).is_some()
}

/// Returns true if `FAULTS=full` asks for the larger bounds, as `make faults` does.
pub(crate) fn is_full() -> bool {
    std::env::var("FAULTS").is_ok_and(|faults| faults == "full")
}
