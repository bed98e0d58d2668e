//! Looks at every stored byte of a plane, and computes anew what follows from others.

use std::collections::HashSet;
use std::path::Path;

use super::follower::{ALWAYS_NS, MISSING, VIEWS_MAX};
use super::sealed;
use crate::codec::decode_block;
use crate::model::batch::{Block, Table};
use crate::model::catalog::Catalog;
use crate::model::error::{Error, Result};
use crate::model::names::NameReader;
use crate::query::latest::Latest;
use crate::storage::manifest::{Manifest, SegmentEntry};
use crate::storage::seal::{Kind, Sealer};
use crate::storage::segment::{Part, Representatives, Segment, day_of, statistics};
use crate::storage::store::{LmdbStore, NamesPage, Store};

/// What was looked at, and what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Blocks of the log.
    pub blocks: u64,
    /// Segments, the checkpoint not counted.
    pub segments: u64,
    /// Rows in both.
    pub rows: u64,
    /// Values in both.
    pub values: u64,
    /// A line for each damage; none where everything is sound.
    pub damages: Vec<String>,
}

/// One look at a plane.
struct Look {
    store: LmdbStore,
    sealer: Sealer,
    catalog: Catalog,
    found: Verified,
}

pub(super) fn verify(directory: &Path, master_key: &[u8; 32]) -> Result<Verified> {
    let (store, sealer) = match sealed::open(directory, master_key) {
        Ok(opened) => opened,
        Err(error @ Error::Corrupt { .. }) => {
            return Ok(Verified { damages: vec![error.to_string()], ..Verified::default() });
        }
        Err(error) => return Err(error),
    };
    let found = Verified::default();
    let mut look = Look { store, sealer, catalog: Catalog::default(), found };
    look.tables()?;
    look.content()?;
    Ok(look.found)
}

impl Look {
    fn damaged(&mut self, what: impl Into<String>) {
        self.found.damages.push(what.into());
    }

    /// Notes a damage; passes on what is none.
    fn note<T>(&mut self, place: &str, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(error @ Error::Corrupt { .. }) => {
                self.damaged(format!("{place}: {error}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn tables(&mut self) -> Result<()> {
        let damages = self.store.verify_tables()?;
        self.found.damages.extend(damages);
        Ok(())
    }

    fn names(&mut self) -> Result<()> {
        let mut after = 0;
        loop {
            let pages = self.store.names_after(after);
            let place = format!("names after page {after}");
            let Some(pages) = self.note(&place, pages)? else { return Ok(()) };
            let Some(last) = pages.last().map(|page| page.sequence) else { return Ok(()) };
            for page in &pages {
                let outcome = self.names_page(page);
                self.note(&format!("page {} of names", page.sequence), outcome)?;
            }
            after = last;
        }
    }

    /// A page opens, and no name of it has another id elsewhere, or id another name.
    fn names_page(&mut self, page: &NamesPage) -> Result<()> {
        const WRONG: Error = Error::Corrupt { what: "an id of a name" };
        let plain = self.sealer.open(Kind::Names, &page.sealed_names)?;
        let mut reader = NameReader::new(&plain);
        let mut agree = true;
        for id in &page.series {
            let name = reader.series()?;
            self.catalog.insert_series(*id, name.clone());
            agree &= self.catalog.find_series(self.catalog.hash_of(&name), &name) == Some(*id);
        }
        let mut measurement = None;
        for (id, field_type) in &page.fields {
            let (another, field) = reader.field()?;
            measurement = another.map(|name| self.catalog.intern_measurement(name)).or(measurement);
            let measurement = measurement.ok_or(WRONG)?;
            self.catalog.insert_field(*id, measurement, field, *field_type);
            let found = self.catalog.find_field(measurement, field);
            agree &= found == Some((*id, *field_type));
        }
        if reader.is_empty() && agree { Ok(()) } else { Err(WRONG) }
    }

    /// Names, manifest, segments and log of one view; again from the start where compaction
    /// overtakes it.
    fn content(&mut self) -> Result<()> {
        for _ in 0..VIEWS_MAX {
            let before = self.found.clone();
            match self.view() {
                Err(Error::Stale) => self.found = before,
                outcome => return outcome,
            }
        }
        Err(Error::Stale)
    }

    fn view(&mut self) -> Result<()> {
        let view = self.store.view(0, 0);
        let view = self.note("the manifest and the log", view)?;
        let upto = self.store.head()?;
        // The names of every row up to there were registered before it.
        self.names()?;
        let Some(view) = view else { return Ok(()) };
        if let Some(sealed) = &view.manifest {
            let opened = self.sealer.open(Kind::Manifest, sealed);
            let manifest = opened.and_then(|plain| Manifest::decode(&plain));
            if let Some(manifest) = self.note("the manifest", manifest)? {
                if (manifest.generation, manifest.compacted) != (view.generation, view.compacted) {
                    self.damaged("the manifest: it does not belong to the head record");
                }
                self.segments(&manifest)?;
            }
        }
        let mut entries = view.entries;
        while let Some(last) = entries.last().map(|entry| entry.sequence) {
            for entry in entries.iter().filter(|entry| entry.sequence <= upto) {
                let plain = self.sealer.open(Kind::LogBlock, &entry.sealed);
                let block = plain.and_then(|plain| decode_block(&plain));
                let place = format!("block {} of the log", entry.sequence);
                if let Some(block) = self.note(&place, block)? {
                    self.found.blocks += 1;
                    self.block(&place, &block);
                }
            }
            let next = self.store.view(last, view.generation);
            let Some(next) = self.note("the log", next)? else { return Ok(()) };
            if next.generation != view.generation {
                return Err(Error::Stale);
            }
            entries = if last < upto { next.entries } else { Vec::new() };
        }
        Ok(())
    }

    /// Rows that nobody can name, or of another type than their field.
    fn block(&mut self, place: &str, block: &Block) {
        for table in &block.tables {
            self.found.rows += table.row_count() as u64;
            let distinct: HashSet<u32> = table.series.iter().copied().collect();
            if let Some(id) = distinct.into_iter().find(|id| self.catalog.series(*id).is_none()) {
                self.damaged(format!("{place}: series {id} has no name"));
            }
            for column in &table.columns {
                self.found.values += column.values.len() as u64;
                let known = self.catalog.field(column.field).map(|field| field.field_type);
                if known != Some(column.values.field_type()) {
                    self.damaged(format!("{place}: field {} is not its own", column.field));
                }
            }
        }
    }

    fn segments(&mut self, manifest: &Manifest) -> Result<()> {
        let representatives = Representatives::new(&self.catalog);
        let mut latest = Latest::default();
        let damages = self.found.damages.len();
        for entry in &manifest.segments {
            self.found.segments += 1;
            let place = format!("segment {}", name_of(entry));
            let outcome = self.segment(&place, entry, &representatives, &mut latest);
            let outcome = self.missing(outcome, manifest)?;
            self.note(&place, outcome)?;
        }
        let (rows, values) = (self.found.rows, self.found.values);
        let mut checkpoint = Latest::default();
        if manifest.checkpoint.bytes > 0 {
            let place = format!("checkpoint {}", name_of(&manifest.checkpoint));
            let entry = &manifest.checkpoint;
            let outcome = self.segment(&place, entry, &representatives, &mut checkpoint);
            let outcome = self.missing(outcome, manifest)?;
            self.note(&place, outcome)?;
        }
        (self.found.rows, self.found.values) = (rows, values);
        // What follows from damaged rows is no second damage.
        if damages == self.found.damages.len() && !latest.is_given_by(&checkpoint, &self.catalog) {
            self.damaged("checkpoint: it is not what the segments' newest rows give");
        }
        Ok(())
    }

    /// A file that is gone though the manifest still names it is a damage.
    fn missing(&self, outcome: Result<()>, manifest: &Manifest) -> Result<Result<()>> {
        match outcome {
            Err(Error::Stale) => {
                let now = self.store.view(u64::MAX, manifest.generation)?.generation;
                if now == manifest.generation { Ok(Err(MISSING)) } else { Err(Error::Stale) }
            }
            outcome => Ok(outcome),
        }
    }

    fn segment(
        &mut self,
        place: &str,
        entry: &SegmentEntry,
        representatives: &Representatives,
        latest: &mut Latest,
    ) -> Result<()> {
        if self.store.segment_bytes(&entry.id)? != entry.bytes {
            self.damaged(format!("{place}: the file has another length than the manifest says"));
            return Ok(());
        }
        let segment = Segment::open(&self.store, &self.sealer, &entry.id, entry.bytes)?;
        let (rows, values) = (self.found.rows, self.found.values);
        let damages = self.found.damages.len();
        let mut times_ns: Option<(i64, i64)> = None;
        let mut last_key = None;
        for (at, listed) in segment.blocks().iter().enumerate() {
            let place = format!("{place}, block {at}");
            let block = segment.block(&self.store, at);
            let Some(mut block) = self.note(&place, block)? else { continue };
            self.block(&place, &block);
            let table = block.tables.remove(0);
            let rank = representatives.rank(&table)?;
            let keys = table.series.iter().zip(&table.times_ns);
            let keys = keys.map(|(series, time_ns)| {
                Ok((rank, representatives.representative(*series)?, *time_ns))
            });
            let keys: Vec<_> = keys.collect::<Result<_>>()?;
            let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
                self.damaged(format!("{place}: it has no row"));
                continue;
            };
            let min_ns = keys.iter().map(|key| key.2).min().unwrap_or(first.2);
            let max_ns = keys.iter().map(|key| key.2).max().unwrap_or(last.2);
            let is_listed = listed.first == (first.1, first.2)
                && listed.last == (last.1, last.2)
                && (listed.min_ns, listed.max_ns) == (min_ns, max_ns);
            if !is_listed {
                self.damaged(format!("{place}: the index says otherwise"));
            }
            if !keys.is_sorted() || last_key.is_some_and(|before| before > *first) {
                self.damaged(format!("{place}: its rows are out of order"));
            }
            last_key = Some(*last);
            let (from, to) = times_ns.unwrap_or((min_ns, max_ns));
            times_ns = Some((from.min(min_ns), to.max(max_ns)));
            self.statistics(&place, &segment, at, &table, representatives)?;
            latest.apply(&table, &ALWAYS_NS, &self.catalog);
        }
        if damages < self.found.damages.len() {
            // What follows from damaged rows is no second damage.
            return Ok(());
        }
        let (rows, values) = (self.found.rows - rows, self.found.values - values);
        let (min_ns, max_ns) = times_ns.unwrap_or_default();
        let lies_in_day =
            entry.day == 0 || (day_of(min_ns), day_of(max_ns)) == (entry.day, entry.day);
        let told = (entry.rows, entry.values, entry.min_ns, entry.max_ns);
        if !lies_in_day || told != (rows, values, min_ns, max_ns) {
            self.damaged(format!("{place}: the manifest says otherwise"));
        }
        Ok(())
    }

    fn statistics(
        &mut self,
        place: &str,
        segment: &Segment,
        at: usize,
        table: &Table,
        representatives: &Representatives,
    ) -> Result<()> {
        let mut stored = None;
        if segment.blocks()[at].has_statistics() {
            let plain = segment.read(&self.store, Part::Statistics(at));
            let block = plain.and_then(|plain| decode_block(&plain));
            let place = format!("{place}, statistics");
            let Some(block) = self.note(&place, block)? else { return Ok(()) };
            stored = Some(block.tables);
        }
        if !statistics::agree(stored.as_deref(), table, representatives)? {
            self.damaged(format!("{place}, statistics: they are not those of its rows"));
        }
        Ok(())
    }
}

fn name_of(entry: &SegmentEntry) -> String {
    format!("{:032x}", u128::from_be_bytes(entry.id))
}
