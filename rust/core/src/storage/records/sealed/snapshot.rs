//! A snapshot whose records are opened and sealed.

use std::sync::Arc;

use super::context::SealContext;
use super::seal::RecordSeal;
use crate::model::error::Result;
use crate::storage::records::interface::{Changes, Item, RecordSnapshot};

pub(super) struct SealedSnapshot {
    pub(super) snapshot: Box<dyn RecordSnapshot>,
    pub(super) seal: Arc<RecordSeal>,
    pub(super) sealed: Arc<SealContext>,
}

impl RecordSnapshot for SealedSnapshot {
    fn version(&self) -> u64 {
        self.snapshot.version()
    }

    fn get_all(&mut self, space: &str, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let stored = self.snapshot.get_all(space, keys)?;
        let seal = &self.seal;
        let opened = keys
            .iter()
            .zip(stored)
            .map(|(key, sealed)| sealed.map(|sealed| seal.open(space, key, &sealed)).transpose());
        opened.collect()
    }

    fn under(
        &mut self,
        space: &str,
        prefix: &[u8],
        first: &[u8],
        limit: usize,
    ) -> Result<Vec<Item>> {
        let stored = self.snapshot.under(space, prefix, first, limit)?;
        let seal = &self.seal;
        let opened = stored.into_iter().map(|(key, sealed)| {
            let value = seal.open(space, &key, &sealed)?;
            Ok((key, value))
        });
        opened.collect()
    }

    fn count(&mut self, space: &str) -> Result<u64> {
        self.snapshot.count(space)
    }

    fn commit(self: Box<Self>, changes: &Changes) -> Result<()> {
        let Self { mut snapshot, seal, sealed } = *self;
        let mut head = sealed.head(&mut *snapshot, &seal)?;
        for (space, changed) in changes {
            let keys: Vec<&[u8]> = changed.keys().map(Vec::as_slice).collect();
            for (key, before) in keys.iter().zip(snapshot.get_all(space, &keys)?) {
                if let Some(before) = before {
                    head.toggle(seal.share(space, key, &before)?);
                }
            }
        }
        let mut stored = Changes::new();
        SealContext::seal_all(&seal, &mut head, changes, &mut stored)?;
        let counted = sealed.counted.as_ref();
        let is_counted = counted
            .is_some_and(|counted| changes.keys().any(|space| counted.spaces.contains(space)));
        head.revision += u64::from(is_counted);
        sealed.commit(snapshot, &seal, stored, &head, is_counted)
    }
}
