//! The promises of [`Store`] as a property. Any store and the store in memory make the same steps
//! and must agree.

use std::collections::HashSet;
use std::fmt::Debug;
use std::result::Result;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::{Cursor, LogEntry, MemoryStore, NamesPage, NewBlock, NewNames, Store, StoreCounts};
use crate::model::batch::FieldType;

/// A store that is compared, and its permitted differences from the store in memory.
pub trait Subject {
    /// True if the next read shows a batch that was left. Otherwise no read shows it.
    const SHOWS_LEFT: bool;
    /// True if a removed segment can still be read for some time. Its id must not be used again.
    const READS_REMOVED: bool;

    /// Returns the store.
    fn store(&self) -> &dyn Store;

    /// Closes the store and opens it again.
    fn reopen(&mut self);
}

/// A call, or a few calls, of both stores.
#[derive(Clone, Debug)]
pub enum StoreOperation {
    /// Replaces the manifest of the current generation, or of another generation, up to a position.
    Compact(bool, u64),
    /// Sets the retention.
    Retain(u64),
    /// Writes a segment.
    Segment(u8, Vec<u8>),
    /// Removes a segment.
    RemoveSegment(u8),
    /// Appends names after the last page, or after another page.
    Names(bool, u32, Vec<FieldType>),
    /// Appends a block, or counts alone.
    Append(Vec<u8>),
    /// Appends a block of an import, which moves its cursor or removes it.
    Import(u8, Vec<u8>),
    /// Appends blocks one by one, and then syncs them or gives up on them.
    AppendUnsynced(u8, bool),
    /// Reads log and names after a position.
    Follow(u64),
    /// Closes the store and opens it again.
    Reopen,
    /// Replaces pages of names by pages with the same ids.
    ReplaceNames,
}

/// Generates up to 24 steps.
pub fn steps() -> impl Strategy<Value = Vec<StoreOperation>> {
    prop::collection::vec(step(), 1..24)
}

fn step() -> impl Strategy<Value = StoreOperation> {
    let kind = prop_oneof![4 => Just(FieldType::Float), 1 => Just(FieldType::Bool), 1 => Just(FieldType::Text)];
    let names = (prop::bool::weighted(0.7), 0..5_u32, prop::collection::vec(kind, 0..4))
        .prop_map(|(is_last, series, fields)| StoreOperation::Names(is_last, series, fields));
    let import = (0..20_u8, prop::collection::vec(any::<u8>(), 0..9))
        .prop_map(|(key, position)| StoreOperation::Import(key, position));
    prop_oneof![
        3 => names,
        3 => prop::collection::vec(any::<u8>(), 0..9_000).prop_map(StoreOperation::Append),
        2 => import,
        1 => (1..4_u8, any::<bool>()).prop_map(|(count, is_left)| StoreOperation::AppendUnsynced(count, is_left)),
        2 => (0..8_u64).prop_map(StoreOperation::Follow),
        1 => Just(StoreOperation::Reopen),
        1 => Just(StoreOperation::ReplaceNames),
        2 => (any::<bool>(), 0..8_u64).prop_map(|(current, upto)| StoreOperation::Compact(current, upto)),
        1 => (0..9_u64).prop_map(StoreOperation::Retain),
        1 => (0..3_u8, prop::collection::vec(any::<u8>(), 1..99)).prop_map(|(id, bytes)| StoreOperation::Segment(id, bytes)),
        1 => (0..3_u8).prop_map(StoreOperation::RemoveSegment),
    ]
}

/// Makes bytes that begin as sealed bytes do, each time with a new id.
#[derive(Default)]
struct SealedBytes(u64);

impl SealedBytes {
    fn of(&mut self, content: &[u8]) -> Vec<u8> {
        self.0 += 1;
        [&[1, 1], self.0.to_le_bytes().as_slice(), &[0; 8], content].concat()
    }

    fn block(&mut self, content: &[u8]) -> NewBlock {
        let counts = StoreCounts { rows: 3, values: 5, rejected: 1, batches: 1, log_bytes: 0 };
        let sealed = if content.is_empty() { Vec::new() } else { self.of(content) };
        NewBlock { sealed, counts, cursor: None }
    }
}

/// Makes the steps with `subject`, an empty store, and with the store in memory. Compares all
/// answers and all content.
///
/// # Errors
/// Returns the first difference.
///
/// # Panics
/// If a call fails.
pub fn answer_alike(subject: &mut impl Subject, steps: Vec<StoreOperation>) -> TestCaseResult {
    let mut pair = Pair {
        subject,
        twin: MemoryStore::default(),
        sealed: SealedBytes::default(),
        removed: HashSet::new(),
    };
    for step in steps {
        pair.take(step)?;
        pair.compare()?;
    }
    prop_assert_eq!(whole_log(pair.subject.store()), whole_log(&pair.twin));
    prop_assert_eq!(all_names(pair.subject.store()), all_names(&pair.twin));
    let snapshot = pair.subject.store().snapshot().expect("it is open");
    prop_assert_eq!(snapshot, pair.twin.snapshot().expect("it is open"));
    Ok(())
}

struct Pair<'s, S> {
    subject: &'s mut S,
    twin: MemoryStore,
    sealed: SealedBytes,
    removed: HashSet<u8>,
}

impl<S: Subject> Pair<'_, S> {
    fn both<R: Debug + PartialEq>(
        &self,
        call: impl Fn(&dyn Store) -> R,
    ) -> Result<R, TestCaseError> {
        let answer = call(self.subject.store());
        prop_assert_eq!(&answer, &call(&self.twin));
        Ok(answer)
    }

    fn take(&mut self, step: StoreOperation) -> TestCaseResult {
        match step {
            StoreOperation::Names(is_last, series, fields) => {
                self.append_names(is_last, series, fields)?;
            }
            StoreOperation::Append(content) => {
                let block = self.sealed.block(&content);
                self.append(&block)?;
            }
            StoreOperation::Import(key, position) => {
                let mut block = self.sealed.block(&position);
                block.cursor = Some(Cursor { key: [key; 16], position });
                self.append(&block)?;
            }
            StoreOperation::AppendUnsynced(count, is_left) => {
                self.append_unsynced(count, is_left)?;
            }
            StoreOperation::Follow(after) => {
                self.both(|store| store.log_after(after).expect("it is open"))?;
                self.both(|store| store.names_after(after).expect("it is open"))?;
                self.both(|store| store.log_get(&[after]).ok())?;
            }
            StoreOperation::Compact(is_current, upto) => {
                let generation = self.twin.view(0, 0).expect("it is open").generation;
                let generation = generation + u64::from(!is_current);
                let manifest = self.sealed.of(b"manifest");
                let replaced = self.both(|store| {
                    store.replace_manifest(generation, &manifest, upto).expect("it is open")
                })?;
                prop_assert_eq!(replaced, is_current);
            }
            StoreOperation::Retain(seconds) => {
                self.both(|store| store.set_retention(seconds).expect("it is open"))?;
            }
            StoreOperation::Segment(id, bytes) => self.write_segment(id, &bytes)?,
            StoreOperation::RemoveSegment(id) => {
                self.removed.insert(id);
                self.both(|store| store.remove_segment(&[id; 16]).expect("it is open"))?;
            }
            StoreOperation::Reopen => self.subject.reopen(),
            StoreOperation::ReplaceNames => self.replace_names()?,
        }
        Ok(())
    }

    fn append(&self, block: &NewBlock) -> TestCaseResult {
        self.both(|store| store.append(vec![block.clone()]).expect("it is open"))
    }

    fn append_names(
        &mut self,
        is_last: bool,
        series: u32,
        fields: Vec<FieldType>,
    ) -> TestCaseResult {
        let names = NewNames { series, fields, sealed_names: self.sealed.of(b"names") };
        let last = self.twin.names_after(0).expect("it is open").len() as u64;
        let after = if is_last { last } else { last + 1 };
        let first = self.both(|store| store.append_names(after, &names).expect("it is open"))?;
        prop_assert_eq!(first.is_some(), is_last);
        Ok(())
    }

    /// Seals all pages of names again.
    fn replace_names(&mut self) -> TestCaseResult {
        let mut pages = self.twin.names_after(0).expect("it is open");
        for page in &mut pages {
            page.sealed_names = self.sealed.of(b"others");
        }
        self.both(|store| store.replace_names(&pages).expect("it is open"))
    }

    fn append_unsynced(&mut self, count: u8, is_left: bool) -> TestCaseResult {
        let blocks: Vec<_> = (0..count).map(|at| self.sealed.block(&[at; 9])).collect();
        let with = |store: &dyn Store| {
            let append = |block: &NewBlock| store.append_unsynced(vec![block.clone()]);
            let ends: Vec<u64> =
                blocks.iter().map(|block| append(block).expect("it is open")).collect();
            if is_left {
                for end in ends {
                    store.leave(end);
                }
            } else {
                store.sync(*ends.last().expect("there is one")).expect("it is open");
            }
        };
        if S::SHOWS_LEFT || !is_left {
            return self.both(with);
        }
        with(self.subject.store());
        Ok(())
    }

    fn write_segment(&self, id: u8, bytes: &[u8]) -> TestCaseResult {
        if S::READS_REMOVED && self.removed.contains(&id) {
            return Ok(());
        }
        self.both(|store| {
            if store.read_segment(&[id; 16], 0, 0).is_err() {
                let mut new = store.create_segment(&[id; 16]).expect("it is open");
                new.append(bytes).expect("it is open");
                new.finish().expect("it is open");
            }
        })
    }

    /// Compares the states of both stores.
    fn compare(&self) -> TestCaseResult {
        self.both(|store| store.head().expect("it is open"))?;
        self.both(|store| store.counts().expect("it is open"))?;
        for (after, generation) in [(0, 0), (2, 1), (u64::MAX, 3)] {
            self.both(|store| store.view(after, generation).expect("it is open"))?;
        }
        for key in 0..20 {
            self.both(|store| store.cursor(&[key; 16]).expect("it is open"))?;
        }
        for id in (0..3).filter(|id| !S::READS_REMOVED || !self.removed.contains(id)) {
            self.both(|store| store.read_segment(&[id; 16], 0, 1).ok())?;
            self.both(|store| store.segment_bytes(&[id; 16]).ok())?;
        }
        let listed = |store: &dyn Store| {
            let mut ids = store.segments().expect("it is open");
            ids.sort_unstable();
            ids
        };
        self.both(listed).map(drop)
    }
}

/// Returns the log from the first block that is not compacted.
///
/// # Panics
/// If a call fails.
#[must_use]
pub fn whole_log(store: &dyn Store) -> Vec<LogEntry> {
    let mut log: Vec<LogEntry> = Vec::new();
    loop {
        let next =
            store.log_after(log.last().map_or(0, |entry| entry.sequence)).expect("it is open");
        if next.is_empty() {
            return log;
        }
        log.extend(next);
    }
}

/// Returns all pages of names.
///
/// # Panics
/// If a call fails.
#[must_use]
pub fn all_names(store: &dyn Store) -> Vec<NamesPage> {
    let mut pages: Vec<NamesPage> = Vec::new();
    loop {
        let next =
            store.names_after(pages.last().map_or(0, |page| page.sequence)).expect("it is open");
        if next.is_empty() {
            return pages;
        }
        pages.extend(next);
    }
}
