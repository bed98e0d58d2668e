//! Names of a directory: the durable names, and changes that may be lost.

use std::collections::BTreeMap;

use super::change::Node;
use super::fate::Fate;
use crate::dice::Dice;

#[derive(Clone, Default)]
pub(super) struct Directory {
    durable: BTreeMap<String, Node>,
    /// Changes with their times, in the order of the times.
    pending: Vec<(u64, Entry)>,
}

#[derive(Clone)]
enum Entry {
    Is(String, Node),
    Moved(String, String, Node),
    Gone(String),
}

impl Directory {
    /// Adds a durable name.
    pub(super) fn put(&mut self, name: &str, node: Node) {
        self.durable.insert(name.to_owned(), node);
    }

    pub(super) fn make(&mut self, time: u64, name: &str, node: Node) {
        self.pending.push((time, Entry::Is(name.to_owned(), node)));
    }

    pub(super) fn rename(&mut self, time: u64, from: &str, to: &str) {
        let node = self.now()[from];
        self.pending.push((time, Entry::Moved(from.to_owned(), to.to_owned(), node)));
    }

    pub(super) fn remove(&mut self, time: u64, name: &str) {
        self.pending.push((time, Entry::Gone(name.to_owned())));
    }

    /// Returns the names that programs see.
    pub(super) fn now(&self) -> BTreeMap<String, Node> {
        let mut names = self.durable.clone();
        self.pending.iter().for_each(|(_, entry)| entry.apply(&mut names));
        names
    }

    /// Returns the times of the changes that are not durable.
    pub(super) fn pending(&self) -> impl Iterator<Item = u64> {
        self.pending.iter().map(|(time, _)| *time)
    }

    pub(super) fn sync(&mut self) {
        self.durable = self.now();
        self.pending.clear();
    }

    /// Returns the names that exist after a cut.
    pub(super) fn cut(&self, fate: &Fate, dice: &mut Dice) -> BTreeMap<String, Node> {
        let mut names = self.durable.clone();
        for (time, entry) in &self.pending {
            let is_kept = match fate {
                Fate::Nothing => false,
                Fate::Everything => true,
                Fate::Until(until, _) => time <= until,
                Fate::Chosen(times) => times.contains(time),
                Fate::Each { percent, .. } => dice.below(100) < *percent,
            };
            if is_kept {
                entry.apply(&mut names);
            }
        }
        names
    }
}

impl Entry {
    fn apply(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            Self::Is(name, node) => {
                names.insert(name.clone(), *node);
            }
            Self::Moved(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
            Self::Gone(name) => {
                names.remove(name);
            }
        }
    }
}
