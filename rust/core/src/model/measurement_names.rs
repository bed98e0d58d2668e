//! The names of measurements, each with a dense number.

use std::collections::HashMap;

use foldhash::quality::RandomState;

/// Dense number of a measurement within one process.
///
/// Example: the first measurement that a catalog sees has index 0.
pub type MeasurementIndex = u32;

/// Names of measurements, in the order in which they were interned.
#[derive(Default)]
pub(super) struct MeasurementNames {
    names: Vec<Box<str>>,
    index_of: HashMap<Box<str>, MeasurementIndex, RandomState>,
    /// Measurement that was interned last. It is usually the next one as well.
    last: MeasurementIndex,
}

impl MeasurementNames {
    /// Returns the measurement with this name, or `None` if it is not known.
    pub(super) fn find(&self, name: &str) -> Option<MeasurementIndex> {
        if self.names.get(self.last as usize).is_some_and(|known| **known == *name) {
            return Some(self.last);
        }
        self.index_of.get(name).copied()
    }

    /// Returns the name of a measurement.
    pub(super) fn name(&self, measurement: MeasurementIndex) -> &str {
        &self.names[measurement as usize]
    }

    /// Returns all measurements in byte order of their names.
    pub(super) fn by_name(&self) -> Vec<MeasurementIndex> {
        let mut order: Vec<_> = (0..).take(self.names.len()).collect();
        order.sort_unstable_by_key(|at| self.name(*at));
        order
    }

    /// Returns the measurement with this name. Adds the name if it is not known.
    pub(super) fn intern(&mut self, name: &str) -> MeasurementIndex {
        if let Some(known) = self.find(name) {
            self.last = known;
            return known;
        }
        let new = u32::try_from(self.names.len()).expect("names have far less than 4 GiB");
        self.names.push(name.into());
        self.index_of.insert(name.into(), new);
        new
    }
}
