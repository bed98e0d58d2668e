//! Names of other protocols, and the names that the store gives them.

use std::sync::Arc;

use pyo3::prelude::*;

use fleetcast_core::wire::{NameRules, Rule};

/// Measurement, prefix of fields and tag of the entity.
type RuleParts = (Option<String>, String, Option<String>);

#[pyclass(frozen, module = "fleetcast._core")]
pub(crate) struct NameMapping {
    mapping: Arc<NameRules>,
}

impl NameMapping {
    pub(crate) fn shared(&self) -> Arc<NameRules> {
        Arc::clone(&self.mapping)
    }
}

#[pymethods]
impl NameMapping {
    #[new]
    #[pyo3(signature = (rules, others))]
    fn new(rules: Vec<(String, RuleParts)>, others: RuleParts) -> Self {
        let rules = rules.into_iter().map(|(source, parts)| (source, rule_of(parts)));
        Self { mapping: Arc::new(NameRules::new(rules, rule_of(others))) }
    }
}

fn rule_of((measurement, prefix, entity): RuleParts) -> Rule {
    Rule { measurement, prefix, entity }
}
