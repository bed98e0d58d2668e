//! The store of one tenant, with the key of its bytes and the caches of what was read. The layers
//! above read and write stored bytes through it.

mod key_file;

mod keys;

mod turning;

mod segments;

use std::sync::Arc;

pub use self::key_file::KeyFile;
use self::keys::HeldKeys;
pub(super) use self::keys::open;

use super::caches::Caches;
use crate::codec::decode_block;
use crate::model::batch::Block;
use crate::model::error::{Error, Result};
use crate::model::names;
use crate::storage::manifest::SegmentEntry;
use crate::storage::seal::{self, BlobKind, DataKey, Sealer, random_plane_id};
use crate::storage::segment::Segment;
use crate::storage::store::{
    CURSOR_BYTES_MAX, Cursor, LogEntry, MemoryStore, NamesPage, Planes, Store,
};

/// Blocks per read: bounds the time that a read transaction stays open.
const BLOCKS_PER_READ: usize = 256;

/// Sealed bytes per read, unless a single block has more: bounds memory.
const BYTES_PER_READ: usize = 1 << 20;

/// A store, the sealer of its bytes, and the tenant that owns them. No call takes a lock of another
/// part, so a thread that holds such a lock may call it.
pub(super) struct SealedStore {
    pub(super) tenant_key: String,
    pub(super) store: Box<dyn Store>,
    keys: HeldKeys,
    pub(super) caches: Arc<Caches>,
}

/// Makes an empty plane with a new data key, which `master_key` wraps.
pub(super) fn create(planes: &dyn Planes, plane: &str, master_key: &[u8; 32]) -> Result<()> {
    let data_keys = DataKey::random()?.into();
    let wrapped = seal::wrap(master_key, plane, &random_plane_id()?, &data_keys)?;
    planes.create(plane, &wrapped, &mut |_| Ok(()))
}

/// Seals a cursor for the store.
pub(super) fn seal_cursor(sealer: &Sealer, cursor: Cursor) -> Result<Cursor> {
    let Cursor { key, position } = cursor;
    if position.len() > CURSOR_BYTES_MAX {
        let message = format!("a cursor has at most {CURSOR_BYTES_MAX} bytes");
        return Err(Error::Invalid { message });
    }
    Ok(Cursor { key, position: sealer.seal(BlobKind::Beside, &position)? })
}

/// Seals `names`, which stand one after another, for the place of their page.
pub(super) fn seal_names(sealer: &Sealer, place: &[u8], names: &[u8]) -> Result<Vec<u8>> {
    sealer.seal_at(BlobKind::Names, place, &names::pack(names))
}

/// Returns the names of a page.
pub(super) fn open_names(sealer: &Sealer, page: &NamesPage) -> Result<Vec<u8>> {
    names::unpack(sealer.open_at(BlobKind::Names, &page.place(), &page.sealed_names)?)
}

impl SealedStore {
    pub(super) fn open(
        planes: &dyn Planes,
        plane: &str,
        master_key: &[u8; 32],
        tenant_key: &str,
    ) -> Result<Self> {
        let (store, sealer) = open(planes, plane, master_key)?;
        Ok(Self::new(tenant_key, store, sealer))
    }

    /// Makes a store in memory that ends with the process, sealed like any other.
    pub(super) fn in_memory(tenant_key: &str) -> Result<Self> {
        let sealer = Sealer::new(&DataKey::random()?, random_plane_id()?);
        Ok(Self::new(tenant_key, Box::<MemoryStore>::default(), sealer))
    }

    /// Makes a store in memory with the same names, which keeps no row.
    pub(super) fn trial(&self) -> Result<Self> {
        Ok(Self {
            tenant_key: self.tenant_key.clone(),
            store: Box::new(MemoryStore::forgetful(&*self.store)?),
            keys: HeldKeys::new(self.sealer()),
            caches: Caches::new(),
        })
    }

    fn new(tenant_key: &str, store: Box<dyn Store>, sealer: Sealer) -> Self {
        let keys = HeldKeys::new(Arc::new(sealer));
        Self { tenant_key: tenant_key.to_owned(), store, keys, caches: Caches::new() }
    }

    /// Returns the content of a blob.
    pub(super) fn open_blob(&self, kind: BlobKind, sealed: &[u8]) -> Result<Vec<u8>> {
        self.opened(|sealer| sealer.open(kind, sealed))
    }

    /// Returns the content of a block of the log.
    pub(super) fn open_block(&self, entry: &LogEntry) -> Result<Block> {
        decode_block(&self.open_blob(BlobKind::LogBlock, &entry.sealed)?)
    }

    /// Calls `visit` for these blocks of the log in order, with position and encoded content. If
    /// the store is closed, it ends at the next block.
    pub(super) fn visit_log(
        &self,
        sequences: &[u64],
        mut visit: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut count = 1;
        let mut rest = sequences;
        while !rest.is_empty() {
            let (chunk, later) = rest.split_at(count.min(rest.len()));
            let entries = self.store.log_get(chunk)?;
            // Blocks are about as long as the blocks before them.
            let bytes: usize = entries.iter().map(|entry| entry.sealed.len()).sum();
            let fitting = BYTES_PER_READ * chunk.len() / bytes.max(1);
            count = fitting.min(2 * chunk.len()).clamp(1, BLOCKS_PER_READ);
            rest = later;
            for entry in entries {
                self.store.check_open()?;
                visit(entry.sequence, &self.open_blob(BlobKind::LogBlock, &entry.sealed)?)?;
            }
        }
        Ok(())
    }

    /// Opens the segment of an entry of the manifest. Its index is read again.
    pub(super) fn open_segment(&self, entry: &SegmentEntry) -> Result<Segment> {
        self.opened(|sealer| Segment::open(&*self.store, sealer, &entry.id, entry.bytes))
    }
}
