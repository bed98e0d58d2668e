//! The in-memory twin: the promises of [`Store`] in their simplest form, for tests to compare with.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{
    Counts, LogEntry, NameHash, NamesPage, NewBlock, READ_BYTES_MAX, Registered, Registration,
    Store,
};
use crate::batch::{FieldId, FieldType, SeriesId};
use crate::error::{Error, Result};

/// A store that lives and dies with the process.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    series: HashMap<NameHash, SeriesId>,
    fields: HashMap<NameHash, (FieldId, FieldType)>,
    names: Vec<NamesPage>,
    log: Vec<Vec<u8>>,
    counts: Counts,
}

impl MemoryStore {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is complete before anything can panic, so a poisoned lock is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next_id(taken: usize) -> u32 {
    u32::try_from(taken).expect("fewer than 2^32 names fit in memory")
}

impl Store for MemoryStore {
    fn register(&self, names: &Registration) -> Result<Registered> {
        let mut state = self.state();
        let conflicts = names.fields.iter().any(|(hash, field_type)| {
            state.fields.get(hash).is_some_and(|(_, winner)| winner != field_type)
        });
        if conflicts {
            let fields = names.fields.iter().map(|(hash, _)| state.fields.get(hash).copied());
            return Ok(Registered { series: Vec::new(), fields: fields.collect() });
        }
        let taken = (state.series.len(), state.fields.len());
        let mut series = Vec::with_capacity(names.series.len());
        for hash in &names.series {
            let fresh = next_id(state.series.len());
            series.push(*state.series.entry(*hash).or_insert(fresh));
        }
        let mut fields = Vec::with_capacity(names.fields.len());
        for (hash, field_type) in &names.fields {
            let fresh = (next_id(state.fields.len()), *field_type);
            fields.push(*state.fields.entry(*hash).or_insert(fresh));
        }
        if taken != (state.series.len(), state.fields.len()) {
            let page = NamesPage {
                sequence: state.names.len() as u64 + 1,
                series: series.clone(),
                fields: fields.clone(),
                sealed_names: names.sealed_names.clone(),
            };
            state.names.push(page);
        }
        Ok(Registered { series, fields: fields.into_iter().map(Some).collect() })
    }

    fn names_after(&self, after: u64) -> Result<Vec<NamesPage>> {
        Ok(self.state().names.iter().filter(|page| page.sequence > after).cloned().collect())
    }

    fn append(&self, blocks: Vec<NewBlock>) -> Result<()> {
        let mut state = self.state();
        for block in blocks {
            let log_bytes = block.sealed.len() as u64;
            state.counts.add(&Counts { log_bytes, ..block.counts });
            if !block.sealed.is_empty() {
                state.log.push(block.sealed);
            }
        }
        Ok(())
    }

    fn log_after(&self, after: u64) -> Result<Vec<LogEntry>> {
        let mut bytes = 0;
        let state = self.state();
        let entries = (1..).zip(&state.log).filter(|(sequence, _)| *sequence > after);
        let chunk = entries.take_while(|(_, sealed)| {
            let fits = bytes < READ_BYTES_MAX;
            bytes += sealed.len();
            fits
        });
        Ok(chunk.map(|(sequence, sealed)| LogEntry { sequence, sealed: sealed.clone() }).collect())
    }

    fn log_get(&self, sequences: &[u64]) -> Result<Vec<LogEntry>> {
        let state = self.state();
        let get = |&sequence: &u64| {
            let index = usize::try_from(sequence).ok().and_then(|at| at.checked_sub(1));
            let sealed = index.and_then(|at| state.log.get(at)).cloned();
            let sealed = sealed.ok_or(Error::Corrupt { what: "the log" })?;
            Ok(LogEntry { sequence, sealed })
        };
        sequences.iter().map(get).collect()
    }

    fn head(&self) -> Result<u64> {
        Ok(self.state().log.len() as u64)
    }

    fn counts(&self) -> Result<Counts> {
        Ok(self.state().counts)
    }

    fn stored_bytes(&self) -> Result<u64> {
        Ok(self.state().counts.log_bytes)
    }
}
