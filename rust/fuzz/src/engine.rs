//! The loop: changes an input, runs it, and keeps it if it reached a new branch.

use std::collections::BTreeMap;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::allocations::peak_bytes;
use crate::cost::COST_PER_BYTE_MAX;
use crate::coverage::{self, Coverage};
use crate::mutate::{Random, mutated};
use crate::targets::Target;

const INPUT_BYTES_MAX: usize = 4_096;
const RUN_SECONDS_MAX: f64 = 2.0;
const FINDINGS_MAX: usize = 16;

/// Bytes that any input may cost, even the shortest, under the limits of the targets.
const COST_CONSTANT_BYTES: usize = 1 << 20;

/// The text of the last panic of any thread, since tasks and threads of a target catch their
/// panics.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// End of a run.
#[derive(Clone, Copy, Debug)]
pub enum Budget {
    /// Ends after this many inputs, which are the same on all machines.
    Executions(u64),
    /// Ends after this time, or a little later.
    Time(Duration),
}

/// Result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Inputs that ran.
    pub executions: u64,
    /// Inputs worth keeping, seeds included.
    pub corpus: usize,
    /// Branches that ran; 0 in a program without counters.
    pub branches: usize,
    /// Greatest memory, in bytes, that an input made its reader use at once.
    pub peak_bytes: usize,
    /// The shortest input for each fault.
    pub findings: BTreeMap<String, Vec<u8>>,
}

/// Turns panics of targets into findings instead of text on stderr. Call it once.
pub fn catch_panics() {
    std::panic::set_hook(Box::new(|info| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string();
    }));
}

/// Runs a target on its seeds and on changed seeds.
///
/// # Panics
/// Panics if a seed is longer than an input may be.
#[must_use]
pub fn fuzz(target: &Target, budget: Budget, seed: u64) -> Report {
    let mut random = Random(seed);
    let mut covered = Coverage::default();
    let mut report = Report::default();
    let mut corpus = (target.seeds)();
    for input in &corpus {
        assert!(input.len() <= INPUT_BYTES_MAX, "a seed of {} bytes", input.len());
        coverage::reset();
        run(target, input, &mut report);
        covered.add();
    }
    let began = Instant::now();
    while !is_spent(budget, &report, began) && report.findings.len() < FINDINGS_MAX {
        // New inputs lead to new branches more often than old inputs.
        let recent = corpus.len().saturating_sub(corpus.len() / 4 + 1);
        let first = if random.below(2) == 0 { recent } else { 0 };
        let parent = first + random.below(corpus.len() - first);
        let other = random.below(corpus.len());
        let mut input = mutated(&mut random, &corpus[parent], &corpus[other], target.words);
        input.truncate(INPUT_BYTES_MAX);
        coverage::reset();
        run(target, &input, &mut report);
        if covered.add() {
            corpus.push(input);
        }
    }
    report.corpus = corpus.len();
    report.branches = covered.branches();
    report
}

fn is_spent(budget: Budget, report: &Report, began: Instant) -> bool {
    match budget {
        Budget::Executions(count) => report.executions >= count,
        Budget::Time(time) => report.executions.is_multiple_of(64) && began.elapsed() >= time,
    }
}

fn run(target: &Target, input: &[u8], report: &mut Report) {
    report.executions += 1;
    let began = Instant::now();
    let mut outcome = Ok(());
    let bytes = peak_bytes(|| {
        outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    });
    report.peak_bytes = report.peak_bytes.max(bytes);
    let panic = mem::take(&mut *PANIC.lock().unwrap_or_else(PoisonError::into_inner));
    let has_panicked = outcome.is_err() || !panic.is_empty();
    let cost = target.cost.filter(|_| !has_panicked).map(|cost| cost(input));
    let cost_max = COST_PER_BYTE_MAX * input.len() + COST_CONSTANT_BYTES;
    let finding = if has_panicked {
        panic
    } else if bytes > target.memory_bytes_max {
        format!("more than {} bytes of memory", target.memory_bytes_max)
    } else if let Some(cost) = cost.filter(|cost| cost.max() > cost_max) {
        format!("more than {COST_PER_BYTE_MAX} times its bytes: {cost:?}")
    } else if is_long(began) && is_long_again(target, input) {
        format!("longer than {RUN_SECONDS_MAX} s")
    } else {
        return;
    };
    // Findings differ by the line of the panic, not by the values in its message.
    let line = finding.lines().next().unwrap_or_default().to_owned();
    let known = report.findings.entry(line).or_insert_with(|| input.to_vec());
    if input.len() < known.len() {
        *known = input.to_vec();
    }
}

fn is_long(began: Instant) -> bool {
    began.elapsed().as_secs_f64() > RUN_SECONDS_MAX
}

/// Runs the input again: the first time, the machine may have been busy with other work.
fn is_long_again(target: &Target, input: &[u8]) -> bool {
    (0..3).all(|_| {
        let began = Instant::now();
        (target.run)(input);
        is_long(began)
    })
}
