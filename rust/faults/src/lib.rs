//! The core with faults, each behind a switch that is off. The build script copies the sources and
//! edits the copy. The core itself has no such switch.
#![allow(
    clippy::pedantic,
    clippy::non_minimal_cfg,
    clippy::style,
    clippy::complexity,
    unfulfilled_lint_expectations,
    unused_parens,
    reason = "the sources are those of the core, which are looked at there"
)]

use std::sync::atomic::{AtomicU64, Ordering};

include!(concat!(env!("OUT_DIR"), "/core.rs"));

static PLANTED: AtomicU64 = AtomicU64::new(0);

/// Plants a flaw in the whole process from now on.
///
/// # Panics
/// If `flaw` is not in [`FLAWS`].
pub fn plant(flaw: &str) {
    let number = FLAWS.iter().position(|name| *name == flaw).expect("there is no such flaw");
    PLANTED.fetch_or(1 << number, Ordering::Relaxed);
}

fn is_planted(number: usize) -> bool {
    PLANTED.load(Ordering::Relaxed) & 1 << number != 0
}
