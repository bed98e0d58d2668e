//! Verification of a plane: reads every stored byte, and computes all derived data again.

mod segments;

use std::collections::HashSet;

use super::follower::VIEWS_MAX;
use super::sealed;
use crate::codec::decode_block;
use crate::model::batch::Block;
use crate::model::catalog::Catalog;
use crate::model::error::{Error, Result};
use crate::model::names::{FieldId, NameReader};
use crate::storage::manifest::Manifest;
use crate::storage::seal::{BlobKind, Sealer, unwrap};
use crate::storage::store::{LogView, NamesPage, Planes, Store};

/// Counts of what was read, and the damages found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerificationReport {
    /// Blocks of the log.
    pub blocks: u64,
    /// Number of segments, without the checkpoint.
    pub segments: u64,
    /// Rows in the log and the segments.
    pub rows: u64,
    /// Values in the log and the segments.
    pub values: u64,
    /// A line for each damage, empty if the plane is sound.
    pub damages: Vec<String>,
}

/// A plane under verification, the names read so far, and the findings.
struct Verification<'p> {
    store: Box<dyn Store>,
    /// Reads the key file: a key may turn meanwhile.
    again: &'p dyn Fn() -> Result<Sealer>,
    sealer: Sealer,
    catalog: Catalog,
    found: VerificationReport,
}

pub(super) fn verify(
    planes: &dyn Planes,
    plane: &str,
    master_key: &[u8; 32],
) -> Result<VerificationReport> {
    let (store, sealer) = match sealed::open(planes, plane, master_key) {
        Ok(opened) => opened,
        Err(error @ (Error::Corrupt { .. } | Error::Foreign { .. })) => {
            return Ok(VerificationReport {
                damages: vec![error.to_string()],
                ..VerificationReport::default()
            });
        }
        Err(error) => return Err(error),
    };
    let found = VerificationReport::default();
    let again = || {
        let (plane_id, keys) = unwrap(master_key, plane, &planes.wrapped_key(plane)?)?;
        Ok(Sealer::of(&keys, plane_id))
    };
    let catalog = Catalog::default();
    let mut verification = Verification { store, again: &again, sealer, catalog, found };
    verification.tables()?;
    verification.content()?;
    Ok(verification.found)
}

/// Returns the field of a column of rows.
const FIELD_ITSELF: fn(FieldId) -> FieldId = |column| column;

impl Verification<'_> {
    fn damaged(&mut self, what: impl Into<String>) {
        self.found.damages.push(what.into());
    }

    /// Returns the result of `open`. If the bytes do not open, tries again with the keys that are in
    /// the key file by now.
    fn opened<R>(&mut self, open: impl Fn(&Sealer, &dyn Store) -> Result<R>) -> Result<R> {
        match open(&self.sealer, &*self.store) {
            Err(error @ Error::Corrupt { .. }) => match (self.again)() {
                Ok(sealer) if !sealer.is_same(&self.sealer) => {
                    self.sealer = sealer;
                    open(&self.sealer, &*self.store)
                }
                _ => Err(error),
            },
            outcome => outcome,
        }
    }

    /// Records a damage to a part of the plane. Passes values and other errors on.
    fn note<T>(&mut self, part: &str, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(error @ (Error::Corrupt { .. } | Error::Foreign { .. })) => {
                self.damaged(format!("{part}: {error}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn tables(&mut self) -> Result<()> {
        let damages = self.store.verify()?;
        self.found.damages.extend(damages);
        Ok(())
    }

    fn names(&mut self) -> Result<()> {
        let mut after = 0;
        loop {
            let pages = self.store.names_after(after);
            let part = format!("names after page {after}");
            let Some(pages) = self.note(&part, pages)? else { return Ok(()) };
            let Some(last) = pages.last().map(|page| page.sequence) else { return Ok(()) };
            for page in &pages {
                let outcome = self.names_page(page);
                self.note(&format!("page {} of names", page.sequence), outcome)?;
            }
            after = last;
        }
    }

    /// Checks that a page opens, and that each of its names and ids belongs to exactly one id and
    /// name.
    fn names_page(&mut self, page: &NamesPage) -> Result<()> {
        const WRONG: Error = Error::Corrupt { what: "an id of a name" };
        let plain = self.opened(|sealer, _| sealed::open_names(sealer, page))?;
        let mut reader = NameReader::new(&plain);
        let mut agree = true;
        for id in &page.series {
            let name = reader.series()?;
            self.catalog.insert_series(*id, name);
            agree &= self.catalog.find_series(name, &name.parts()) == Some(*id);
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

    /// Verifies names, manifest, segments and log of one view. Starts again if compaction overtakes
    /// the view.
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
        let head = self.store.head()?;
        // The names of every row up to the view were registered before the row.
        self.names()?;
        let Some(view) = view else { return Ok(()) };
        if let Some(sealed) = &view.manifest {
            let opened = self.opened(|sealer, _| sealer.open(BlobKind::Manifest, sealed));
            let manifest = opened.and_then(|plain| Manifest::decode(&plain));
            if let Some(manifest) = self.note("the manifest", manifest)? {
                if (manifest.generation, manifest.compacted) != (view.generation, view.compacted) {
                    self.damaged("the manifest: it does not belong to the head record");
                }
                self.segments(&manifest)?;
            }
        }
        self.log(view, head)
    }

    /// Verifies the blocks of the log from the blocks of `view` up to position `head`.
    fn log(&mut self, mut view: LogView, head: u64) -> Result<()> {
        while let Some(last) = view.entries.last().map(|entry| entry.sequence) {
            for entry in view.entries.iter().filter(|entry| entry.sequence <= head) {
                let plain = self.opened(|sealer, _| sealer.open(BlobKind::LogBlock, &entry.sealed));
                let block = plain.and_then(|plain| decode_block(&plain));
                let part = format!("block {} of the log", entry.sequence);
                if let Some(block) = self.note(&part, block)? {
                    self.found.blocks += 1;
                    self.block(&part, &block, FIELD_ITSELF);
                }
            }
            let next = self.store.view(last, view.generation);
            let Some(next) = self.note("the log", next)? else { return Ok(()) };
            if next.generation != view.generation {
                return Err(Error::Stale);
            }
            if last >= head {
                return Ok(());
            }
            view = next;
        }
        Ok(())
    }

    /// Records rows without a known name, and values whose type differs from the type of their
    /// field. `field_of` returns the field that a column holds values of.
    fn block(&mut self, part: &str, block: &Block, field_of: fn(FieldId) -> FieldId) {
        for table in &block.tables {
            self.found.rows += table.row_count() as u64;
            let distinct: HashSet<u32> = table.series.iter().copied().collect();
            if let Some(id) = distinct.into_iter().find(|id| self.catalog.series(*id).is_none()) {
                self.damaged(format!("{part}: series {id} has no name"));
            }
            for column in &table.columns {
                self.found.values += column.values.len() as u64;
                let field = field_of(column.field);
                let known = self.catalog.field(field).map(|field| field.field_type);
                if known != Some(column.values.field_type()) {
                    self.damaged(format!("{part}: field {field} is not its own"));
                }
            }
        }
    }
}
