//! The promises of a store of records as a property. A store and the store in memory make the same
//! steps and must agree.

use std::fmt::Debug;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::{Item, MemoryRecords, RecordStore, RecordTransaction};

/// Spaces of the steps.
pub const SPACES: [&str; 2] = ["a", "b"];

/// A question or a change of a transaction.
#[derive(Clone, Debug)]
pub enum RecordsOperation {
    /// Adds or replaces a record.
    Put(usize, Vec<u8>, Vec<u8>),
    /// Deletes a record.
    Delete(usize, Vec<u8>),
    /// Compares a value.
    Get(usize, Vec<u8>),
    /// Compares the records under a prefix from a key on, a page at a time.
    Under(usize, Vec<u8>, Vec<u8>, usize),
    /// Compares the number of records.
    Count(usize),
}

/// Generates steps of transactions, and a flag for each transaction: true to commit it.
pub fn transactions() -> impl Strategy<Value = Vec<(Vec<RecordsOperation>, bool)>> {
    prop::collection::vec((prop::collection::vec(step(), 0..12), any::<bool>()), 1..8)
}

fn step() -> impl Strategy<Value = RecordsOperation> {
    let space = 0..SPACES.len();
    let key = || prop::collection::vec(prop_oneof![Just(0), Just(b'k'), Just(0xff)], 1..4);
    let part = || prop::collection::vec(prop_oneof![Just(0), Just(b'k'), Just(0xff)], 0..3);
    let value = prop::collection::vec(any::<u8>(), 0..9);
    prop_oneof![
        4 => (space.clone(), key(), value).prop_map(|(at, key, value)| RecordsOperation::Put(at, key, value)),
        2 => (space.clone(), key()).prop_map(|(at, key)| RecordsOperation::Delete(at, key)),
        2 => (space.clone(), key()).prop_map(|(at, key)| RecordsOperation::Get(at, key)),
        2 => (space.clone(), part(), part(), 1..4_usize)
            .prop_map(|(at, prefix, first, limit)| RecordsOperation::Under(at, prefix, first, limit)),
        1 => space.prop_map(RecordsOperation::Count),
    ]
}

/// Runs transactions on `store`, which is empty, and on the store in memory.
///
/// # Errors
/// Returns the first difference.
///
/// # Panics
/// If the store fails.
pub fn agrees(
    store: &dyn RecordStore,
    transactions: &[(Vec<RecordsOperation>, bool)],
) -> TestCaseResult {
    let twin = MemoryRecords::default();
    for (steps, is_committed) in transactions {
        let mut ours = RecordTransaction::new(store.begin(true).expect("it begins"));
        let mut theirs = RecordTransaction::new(twin.begin(true).expect("it begins"));
        let before = (ours.version(), content(&mut theirs));
        for step in steps {
            let answers = (step.of(&mut ours), step.of(&mut theirs));
            prop_assert_eq!(answers.0, answers.1, "{:?}", step);
        }
        if *is_committed {
            ours.commit().expect("it commits");
            theirs.commit().expect("it commits");
        } else {
            drop((ours, theirs));
        }
        let mut ours = RecordTransaction::new(store.begin(false).expect("it begins"));
        let mut theirs = RecordTransaction::new(twin.begin(false).expect("it begins"));
        // A store may skip a change to the same value, or the deletion of a missing record.
        let is_same = content(&mut theirs) == before.1;
        prop_assert!(ours.version() > before.0 || is_same);
        prop_assert!(ours.version() == before.0 || *is_committed);
        prop_assert_eq!(content(&mut ours), content(&mut theirs));
    }
    Ok(())
}

impl RecordsOperation {
    /// Returns the answer of a view as text.
    pub(crate) fn of(&self, view: &mut RecordTransaction) -> String {
        let text = |answer: &dyn Debug| format!("{answer:?}");
        match self {
            Self::Put(at, key, value) => text(&view.put(SPACES[*at], key, value)),
            Self::Delete(at, key) => text(&view.delete(SPACES[*at], key)),
            Self::Get(at, key) => text(&view.get(SPACES[*at], key).expect("it reads")),
            Self::Under(at, prefix, first, limit) => {
                text(&all(view, SPACES[*at], prefix, first, *limit))
            }
            Self::Count(at) => text(&view.count(SPACES[*at]).expect("it counts")),
        }
    }
}

/// Returns all records.
fn content(view: &mut RecordTransaction) -> Vec<Vec<Item>> {
    SPACES.iter().map(|space| all(view, space, b"", b"", 2)).collect()
}

/// Returns records under a prefix, page by page.
fn all(
    view: &mut RecordTransaction,
    space: &str,
    prefix: &[u8],
    first: &[u8],
    limit: usize,
) -> Vec<Item> {
    let (mut found, mut next) = (Vec::new(), Some(first.to_vec()));
    while let Some(first) = next {
        let page = view.under(space, prefix, &first, limit).expect("it reads");
        found.extend(page.0);
        next = page.1;
    }
    found
}
