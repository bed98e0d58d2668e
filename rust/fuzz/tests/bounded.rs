//! A bounded run of all targets, the same each time; `make fuzz` goes on for as long as asked.

use fleetcast_fuzz::engine::{Budget, catch_panics, fuzz};
use fleetcast_fuzz::targets::{TARGETS, Target};

const EXECUTIONS: u64 = 20_000;
/// Targets with connections, whose tasks and threads take turns.
const SLOW: [&str; 2] = ["calls", "frames"];
const SLOW_EXECUTIONS: u64 = 2_000;

#[test]
fn no_target_has_a_finding() {
    catch_panics();
    let run = |target: &Target| {
        let count = if SLOW.contains(&target.name) { SLOW_EXECUTIONS } else { EXECUTIONS };
        fuzz(target, Budget::Executions(count), 7)
    };
    let reports: Vec<_> = TARGETS.iter().map(run).collect();
    drop(std::panic::take_hook()); // the panic of this test is told
    for (target, report) in TARGETS.iter().zip(reports) {
        assert!(report.findings.is_empty(), "{}: {:#?}", target.name, report.findings);
    }
}
