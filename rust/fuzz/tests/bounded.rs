//! A bounded run of all targets, the same each time; `make fuzz` goes on for as long as asked.

use fleetcast_fuzz::engine::{Budget, fuzz};
use fleetcast_fuzz::targets::TARGETS;

const EXECUTIONS: u64 = 20_000;

#[test]
fn no_target_has_a_finding() {
    for target in TARGETS {
        let report = fuzz(target, Budget::Executions(EXECUTIONS), 7);
        assert!(report.findings.is_empty(), "{}: {:#?}", target.name, report.findings);
    }
}
