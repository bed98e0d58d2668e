//! Head pages of LMDB, of which one may be seen and not be on disk, or be there and not be seen
//! (`docs/decisions/0041-head-pages-in-doubt.md`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::commit_marks::{CommitMarks, Mark};
use super::file::{TRANSACTION_AT, WRITTEN_HEAD, u64_at};
use crate::model::error::{Error, Result};
use crate::storage::store::byte_locks::ByteLocks;
use crate::storage::store::log::Shared;

/// The head pages of one file, a transaction's at its number modulo two.
pub(super) struct HeadPages {
    /// They tell who is committing.
    commits: CommitMarks,
    /// It tells whose head page may not be on disk as it is seen.
    shared: Arc<Shared>,
    page_bytes: usize,
}

/// A commit whose head page is in doubt.
pub(super) struct Commit<'h> {
    shared: &'h Shared,
    transaction: u64,
    _mark: Mark<'h>,
}

impl HeadPages {
    pub(super) fn new(commits: CommitMarks, shared: Arc<Shared>, page_bytes: usize) -> Self {
        Self { commits, shared, page_bytes }
    }

    pub(super) fn byte_locks(&self) -> &Arc<ByteLocks> {
        self.commits.locks()
    }

    /// True where a living process is committing `transaction`.
    pub(super) fn is_under_way(&self, transaction: usize) -> io::Result<bool> {
        self.commits.is_under_way(transaction)
    }

    /// The transaction whose head page may not be on disk as it is seen.
    pub(super) fn in_doubt(&self) -> Option<u64> {
        self.shared.head_in_doubt()
    }

    /// A transaction that is newer than `seen`, or is shown by it and may not be on disk. The last
    /// one that LMDB has written is `written`.
    pub(super) fn unsure(&self, seen: usize, written: usize) -> Option<usize> {
        let is_newer = written > seen;
        let in_doubt = || usize::try_from(self.in_doubt()?).ok();
        let newer = Some(written).filter(|_| is_newer);
        newer.or_else(|| in_doubt().filter(|number| *number <= seen))
    }

    /// Marks `transaction` as being committed, and its head page as in doubt.
    pub(super) fn begin_commit(&self, transaction: usize) -> io::Result<Commit<'_>> {
        let mark = self.commits.mark(transaction)?;
        let transaction = transaction as u64;
        self.shared.doubt_head(transaction);
        Ok(Commit { shared: &self.shared, transaction, _mark: mark })
    }

    /// Makes sure that the head page on disk that counts is that of the commit that LMDB has
    /// published, where another one is in doubt. The caller is in the write transaction `own`.
    ///
    /// When LMDB cannot sync its head page, it puts the old one back, unsynced and not always: then
    /// the new one may be seen and not be on disk, or be there and not be seen. No later sync mends
    /// the first, and the second would lead to the pages of the next commit if power failed before
    /// that is complete. So the published one is written there once more, or over it. The one before
    /// is durable and lies elsewhere.
    ///
    /// # Errors
    /// Those of the machine; the page stays in doubt.
    pub(super) fn settle(&self, own: usize, file: &File, path: &Path) -> Result<()> {
        let Some(in_doubt) = self.in_doubt() else { return Ok(()) };
        let failed = |error| Error::io("write the head page of", path, error);
        let published = own as u64 - 1;
        // Whoever has published it and lives has synced it, and is about to say so.
        let is_sure = in_doubt == published && self.is_under_way(own - 1).map_err(failed)?;
        if is_sure {
            return Ok(());
        }
        let place_of = |transaction: u64| (transaction % 2) * self.page_bytes as u64;
        let mut head = [0; WRITTEN_HEAD.end];
        file.read_exact_at(&mut head, place_of(published)).map_err(failed)?;
        let is_next = in_doubt == published || in_doubt == published + 1;
        if is_next && u64_at(&head, TRANSACTION_AT)? == published {
            let at = place_of(in_doubt) + WRITTEN_HEAD.start as u64;
            file.write_all_at(&head[WRITTEN_HEAD], at).map_err(failed)?;
        }
        file.sync_data().map_err(failed)?;
        self.shared.trust_head(in_doubt);
        Ok(())
    }
}

impl Commit<'_> {
    /// Ends the commit. Its head page stays in doubt unless `is_known`: it is on disk, or was not
    /// written at all.
    pub(super) fn end(self, is_known: bool) {
        if is_known {
            self.shared.trust_head(self.transaction);
        }
    }
}
