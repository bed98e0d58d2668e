//! Following the log: names first seen elsewhere, then the blocks that use them.

use super::{LogBlock, Plane};
use crate::batch::Block;
use crate::column::decode_block;
use crate::error::Result;
use crate::names::NameReader;
use crate::seal::Kind;
use crate::store::{LogEntry, NamesPage};

/// Every instant: nothing is filtered out of the newest samples.
const ALWAYS_NS: std::ops::Range<i64> = i64::MIN..i64::MAX;

impl Plane {
    /// Applies everything committed by any process so far.
    ///
    /// # Errors
    /// The store's, and [`crate::error::Error::Corrupt`] for bytes that do not open; what was
    /// applied before stays, and the next call goes on from there.
    pub fn follow(&self) -> Result<()> {
        let mut cursor = self.cursor();
        loop {
            let entries = self.store.log_after(cursor.log)?;
            let Some(last) = entries.last().map(|entry| entry.sequence) else { return Ok(()) };
            // The names of a block were registered before it, so they are there by now.
            cursor.names = self.follow_names(cursor.names)?;
            let blocks = self.open_blocks(entries)?;
            let names = self.names();
            let mut state = self.state_mut();
            for (sequence, block) in blocks {
                for table in &block.tables {
                    state.latest.apply(table, &ALWAYS_NS, &names.catalog);
                }
                let times_ns = || block.tables.iter().flat_map(|table| &table.times_ns);
                if let (Some(min), Some(max)) = (times_ns().min(), times_ns().max()) {
                    let (min_time_ns, max_time_ns) = (*min, *max);
                    state.log.push(LogBlock { sequence, min_time_ns, max_time_ns });
                }
                state.last_ingest_ns = state.last_ingest_ns.max(Some(block.ingest_ns));
                state.recent.push(sequence, block);
            }
            state.latest.sort(&names.catalog);
            cursor.log = last;
        }
    }

    fn follow_names(&self, after: u64) -> Result<u64> {
        let mut last = after;
        loop {
            let pages = self.store.names_after(last)?;
            if pages.is_empty() {
                return Ok(last);
            }
            for page in pages {
                self.apply_names(&page)?;
                last = page.sequence;
            }
        }
    }

    fn apply_names(&self, page: &NamesPage) -> Result<()> {
        let plain = self.sealer.open(Kind::Names, &page.sealed_names)?;
        let mut reader = NameReader::new(&plain);
        let mut names = self.names_mut();
        for id in &page.series {
            names.catalog.insert_series(*id, reader.series()?);
        }
        for (id, field_type) in &page.fields {
            let (measurement, field) = reader.field()?;
            names.catalog.insert_field(*id, &measurement, &field, *field_type);
        }
        Ok(())
    }

    fn open_blocks(&self, entries: Vec<LogEntry>) -> Result<Vec<(u64, Block)>> {
        let open = |entry: LogEntry| {
            let plain = self.sealer.open(Kind::LogBlock, &entry.sealed)?;
            Ok((entry.sequence, decode_block(&plain)?))
        };
        entries.into_iter().map(open).collect()
    }
}
