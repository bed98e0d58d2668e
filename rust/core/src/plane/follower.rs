//! Following the log: names first seen elsewhere, then the blocks that use them.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Cursor, LogBlock, MISSING, Plane, State};
use crate::codec::decode_block;
use crate::model::batch::Block;
use crate::model::error::{Error, Result};
use crate::model::names::NameReader;
use crate::storage::manifest::Manifest;
use crate::storage::seal::Kind;
use crate::storage::segment::day_of;
use crate::storage::store::{LogEntry, NamesPage, View};

impl Plane {
    /// Applies everything committed by any process so far.
    ///
    /// # Errors
    /// The store's, and [`Error::Corrupt`] for bytes that do not open; what was applied before
    /// stays, and the next call goes on from there.
    pub fn follow(&self) -> Result<()> {
        self.follow_log()?;
        self.caches.settle();
        Ok(())
    }

    fn follow_log(&self) -> Result<()> {
        let mut cursor = self.cursor();
        let mut overtaken = None;
        loop {
            let view = self.store.view(cursor.log, cursor.generation)?;
            if self.state().retention_seconds != view.retention_seconds {
                self.state_mut().retention_seconds = view.retention_seconds;
            }
            match self.apply_manifest(&mut cursor, &view) {
                // A segment was replaced before it was read: the next view has the newer one.
                Err(Error::Stale) if overtaken == Some(view.generation) => return Err(MISSING),
                Err(Error::Stale) => {
                    overtaken = Some(view.generation);
                    continue;
                }
                outcome => outcome?,
            }
            if view.entries.is_empty() {
                return Ok(());
            }
            self.apply_entries(&mut cursor, &view.entries)?;
        }
    }

    fn apply_manifest(&self, cursor: &mut Cursor, view: &View) -> Result<()> {
        let Some(sealed) = &view.manifest else { return Ok(()) };
        let manifest = Manifest::decode(&self.sealer.open(Kind::Manifest, sealed)?)?;
        if (manifest.generation, manifest.compacted) != (view.generation, view.compacted) {
            return Err(Error::Corrupt { what: "the manifest" });
        }
        let mut checkpoint = None;
        if cursor.log < manifest.compacted {
            // Blocks that were not applied here are gone from the log: their rows are in segments.
            self.follow_new_names()?;
            checkpoint = Some(self.load_checkpoint(&manifest)?);
        }
        let names = self.names();
        let mut state = self.state_mut();
        if let Some(latest) = checkpoint {
            state.latest = latest;
            state.latest.sort(&names.catalog);
            state.last_ingest_ns = state.last_ingest_ns.max(Some(manifest.last_ingest_ns));
            cursor.log = manifest.compacted;
        }
        state.log.retain(|block| block.sequence > manifest.compacted);
        self.caches.recent().forget_until(manifest.compacted);
        state.forget_dropped(&manifest);
        state.manifest = Arc::new(manifest);
        cursor.generation = view.generation;
        Ok(())
    }

    fn apply_entries(&self, cursor: &mut Cursor, entries: &[LogEntry]) -> Result<()> {
        let last = entries.last().map(|entry| entry.sequence);
        // The names of a block were registered before it, so they are there by now.
        self.follow_new_names()?;
        let blocks = self.open_blocks(entries)?;
        let names = self.names();
        let mut state = self.state_mut();
        for (sequence, block) in blocks {
            for table in &block.tables {
                state.latest.apply(table, &super::ALWAYS_NS, &names.catalog);
            }
            let times_ns = || block.tables.iter().flat_map(|table| &table.times_ns);
            if let (Some(min), Some(max)) = (times_ns().min(), times_ns().max()) {
                let (min_time_ns, max_time_ns, ingest_ns) = (*min, *max, block.ingest_ns);
                state.log.push(LogBlock { sequence, ingest_ns, min_time_ns, max_time_ns });
            }
            state.last_ingest_ns = state.last_ingest_ns.max(Some(block.ingest_ns));
            self.caches.recent().push(sequence, block);
        }
        state.latest.sort(&names.catalog);
        cursor.log = last.unwrap_or(cursor.log);
        Ok(())
    }

    fn follow_new_names(&self) -> Result<()> {
        let _order = self.naming();
        self.follow_names()
    }

    /// Applies the pages of names that are not known here. The caller holds [`Self::naming`].
    pub(super) fn follow_names(&self) -> Result<()> {
        loop {
            let after = self.names().pages;
            let pages = self.store.names_after(after)?;
            if pages.is_empty() {
                return Ok(());
            }
            pages.iter().try_for_each(|page| self.apply_names(page))?;
        }
    }

    fn apply_names(&self, page: &NamesPage) -> Result<()> {
        let plain = self.sealer.open(Kind::Names, &page.sealed_names)?;
        let mut reader = NameReader::new(&plain);
        let mut names = self.names_mut();
        for id in &page.series {
            names.catalog.insert_series(*id, reader.series()?);
        }
        let mut measurement = None;
        for (id, field_type) in &page.fields {
            let (another, field) = reader.field()?;
            measurement =
                another.map(|name| names.catalog.intern_measurement(name)).or(measurement);
            let measurement = measurement.ok_or(Error::Corrupt { what: "a page of names" })?;
            names.catalog.insert_field(*id, measurement, field, *field_type);
        }
        names.pages = page.sequence;
        Ok(())
    }

    fn open_blocks(&self, entries: &[LogEntry]) -> Result<Vec<(u64, Block)>> {
        entries.iter().map(|entry| Ok((entry.sequence, self.open_block(entry)?))).collect()
    }

    pub(super) fn open_block(&self, entry: &LogEntry) -> Result<Block> {
        decode_block(&self.sealer.open(Kind::LogBlock, &entry.sealed)?)
    }
}

impl State {
    /// Forgets the newest samples of days that retention removed: what is gone for a process that
    /// opens the store now is gone for this one. Those that may be in the log stay.
    fn forget_dropped(&mut self, manifest: &Manifest) {
        let days: HashSet<i64> = manifest.segments.iter().map(|entry| entry.day).collect();
        let first_ns = self.log.iter().map(|block| block.min_time_ns).min();
        let last_ns = self.log.iter().map(|block| block.max_time_ns).max();
        let logged = first_ns.zip(last_ns).map(|(first_ns, last_ns)| first_ns..=last_ns);
        let is_logged = |time_ns| logged.as_ref().is_some_and(|times| times.contains(&time_ns));
        self.latest.retain(|time_ns| days.contains(&day_of(time_ns)) || is_logged(time_ns));
    }
}
