//! Head pages of LMDB. After a failed sync, reads may show a head page that is not on disk, or not
//! show a head page that is (`docs/decisions/0041-head-pages-in-doubt.md`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::commit_marks::{CommitMark, CommitMarks};
use super::file::{TRANSACTION_AT, WRITTEN_HEAD, u64_at};
use crate::model::error::{Error, Result};
use crate::storage::store::byte_locks::ByteLocks;
use crate::storage::store::log::MappedFile;

/// The head pages of one file. The head page of a transaction is at the transaction's number modulo
/// two.
pub(super) struct HeadPages {
    /// Marks of the transactions that are being committed.
    commits: CommitMarks,
    /// Has the transaction whose head page may differ from the page on disk.
    shared: Arc<MappedFile>,
    page_bytes: usize,
}

/// A commit whose head page is in doubt.
pub(super) struct DoubtfulCommit<'h> {
    shared: &'h MappedFile,
    transaction: u64,
    _mark: CommitMark<'h>,
}

impl HeadPages {
    pub(super) fn new(commits: CommitMarks, shared: Arc<MappedFile>, page_bytes: usize) -> Self {
        Self { commits, shared, page_bytes }
    }

    pub(super) fn byte_locks(&self) -> &Arc<ByteLocks> {
        self.commits.locks()
    }

    /// Returns true if a living process is committing `transaction`.
    pub(super) fn is_under_way(&self, transaction: usize) -> io::Result<bool> {
        self.commits.is_under_way(transaction)
    }

    /// Returns the transaction whose head page may differ from the page on disk.
    pub(super) fn in_doubt(&self) -> Option<u64> {
        self.shared.head_in_doubt()
    }

    /// Returns a transaction that may have to be settled. It is newer than `seen`, or `seen` shows
    /// it and it may not be on disk. LMDB has written `written` as its last transaction.
    pub(super) fn unsure(&self, seen: usize, written: usize) -> Option<usize> {
        let is_newer = written > seen;
        let in_doubt = || usize::try_from(self.in_doubt()?).ok();
        let newer = Some(written).filter(|_| is_newer);
        newer.or_else(|| in_doubt().filter(|number| *number <= seen))
    }

    /// Marks `transaction` as being committed, and its head page as in doubt.
    pub(super) fn begin_commit(&self, transaction: usize) -> io::Result<DoubtfulCommit<'_>> {
        let mark = self.commits.mark(transaction)?;
        let transaction = transaction as u64;
        self.shared.doubt_head(transaction);
        Ok(DoubtfulCommit { shared: &self.shared, transaction, _mark: mark })
    }

    /// Settles a head page in doubt: makes the published commit the newest commit on disk. The
    /// caller is in the write transaction `own`.
    ///
    /// If LMDB cannot sync its head page, it writes the old head page again, without a sync and not
    /// in every case. Two states may follow. Reads may show the new head page while the disk does
    /// not have it, and no later sync writes that page. Or the disk may have the new head page
    /// while reads do not show it. If power then fails before the next commit is complete, that
    /// page leads to pages of the next commit.
    ///
    /// So this writes the head page of the published commit to the place of the page in doubt, and
    /// syncs it. The head page before it is durable and lies at the other place.
    ///
    /// # Errors
    /// Returns the errors of the machine. The page then stays in doubt.
    pub(super) fn settle(&self, own: usize, file: &File, path: &Path) -> Result<()> {
        let Some(in_doubt) = self.in_doubt() else { return Ok(()) };
        let failed = |error| Error::io("write the head page of", path, error);
        let published = own as u64 - 1;
        // If the process that published the commit still runs, it has synced the page and is about
        // to say so.
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

impl DoubtfulCommit<'_> {
    /// Ends the commit. If `is_known`, the head page is on disk or was not written at all.
    /// Otherwise it stays in doubt.
    pub(super) fn end(self, is_known: bool) {
        if is_known {
            self.shared.trust_head(self.transaction);
        }
    }
}
