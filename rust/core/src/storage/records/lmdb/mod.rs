//! Records in LMDB: an environment in a folder, with a table for each space.
//!
//! An environment survives the loss or replacement of its files, and grows with its content. The
//! first use opens the environment, so a store may be made before a fork and used after it. Reads
//! never wait.

mod environment;

use std::fs::{DirBuilder, File, remove_dir_all, rename};
use std::io::ErrorKind;
use std::ops::Bound;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heed::{MdbError, RoTxn, WithoutTls};

use self::environment::{DATA_FILE, FORMAT, OWN, RecordEnvironment, problem};
use super::interface::{Changes, Item, RecordSnapshot, RecordStore, StateMark};
use super::view::only_reads;
use crate::model::error::{Error, Result};

/// Most attempts at a snapshot. Between attempts the environment is opened again.
const ATTEMPTS_MAX: u32 = 3;

/// The records in a folder.
pub struct LmdbRecords {
    folder: PathBuf,
    spaces: Vec<String>,
    format: Vec<u8>,
    opened: Mutex<Option<Arc<RecordEnvironment>>>,
}

impl LmdbRecords {
    /// Makes a store in `folder` with these spaces, whose format has the name `format`. No file is
    /// opened yet.
    #[must_use]
    pub fn new(folder: &Path, spaces: Vec<String>, format: &[u8]) -> Self {
        let (folder, format) = (folder.to_owned(), format.to_vec());
        Self { folder, spaces, format, opened: Mutex::new(None) }
    }

    /// Makes the folder and a store in it with these records. After a failure neither exists.
    ///
    /// # Errors
    /// Returns [`Error::Exists`] if the folder exists, and [`Error::Io`] or [`Error::DiskFull`] if
    /// a file cannot be written.
    pub fn create(&self, mut records: Changes) -> Result<()> {
        if self.folder.exists() {
            return Err(Error::exists(&self.folder));
        }
        let mut staged = self.folder.clone().into_os_string();
        staged.push(".new");
        let staged = PathBuf::from(staged);
        drop(remove_dir_all(&staged)); // a process that was killed here left it
        let failed = |error| Error::io("make", &self.folder, error);
        DirBuilder::new().recursive(true).mode(0o700).create(&staged).map_err(failed)?;
        let environment = RecordEnvironment::create(&staged, &self.spaces)?;
        let own = records.entry(OWN.to_owned()).or_default();
        own.insert(FORMAT.to_vec(), Some(self.format.clone()));
        change(&environment, None, &records)?;
        drop(environment);
        rename(&staged, &self.folder).map_err(failed)?;
        let parent = self.folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = File::open(parent.unwrap_or(Path::new(".")));
        parent.and_then(|parent| parent.sync_all()).map_err(failed)
    }

    /// Returns the environment of the current files, and the instant of their last change.
    fn environment(&self, writes: bool) -> Result<(Arc<RecordEnvironment>, i64)> {
        let mut opened = self.opened();
        if let Some(environment) = &*opened
            && let Some(changed_ns) = environment.changed_ns_if_of_use(writes)
        {
            return Ok((Arc::clone(environment), changed_ns));
        }
        let before = opened.take();
        let map_bytes_min = before.as_ref().map_or(0, |before| before.map_bytes_wanted());
        if let Some(before) = before {
            before.close();
        }
        let environment = Arc::new(RecordEnvironment::open(
            &self.folder,
            &self.spaces,
            &self.format,
            map_bytes_min,
        )?);
        *opened = Some(Arc::clone(&environment));
        let changed_ns = environment.changed_ns_if_of_use(false);
        Ok((environment, changed_ns.unwrap_or_default()))
    }

    fn opened(&self) -> MutexGuard<'_, Option<Arc<RecordEnvironment>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the right to write, which ends with the file or the process.
    fn turn(&self) -> Result<File> {
        let path = self.folder.join(DATA_FILE);
        let failed = |error| Error::io("lock", &path, error);
        let file = File::open(&path).map_err(failed)?;
        loop {
            match file.lock() {
                Ok(()) => return Ok(file),
                // A signal interrupted the wait.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

impl RecordStore for LmdbRecords {
    fn place(&self) -> String {
        self.folder.display().to_string()
    }

    fn begin(&self, writes: bool) -> Result<Box<dyn RecordSnapshot>> {
        for _ in 0..ATTEMPTS_MAX {
            let turn = writes.then(|| self.turn()).transpose()?;
            let (environment, _) = self.environment(writes)?;
            if turn.as_ref().is_some_and(|turn| !environment.is_of(turn)) {
                continue; // the file was replaced during the wait
            }
            match environment.snapshot() {
                Ok(transaction) => {
                    return Ok(Box::new(LmdbSnapshot { transaction, environment, turn }));
                }
                // Another process has made the map larger.
                Err(heed::Error::Mdb(MdbError::MapResized)) => environment.outgrow(0),
                Err(error) => {
                    environment.outgrow(0);
                    return Err(problem(error));
                }
            }
        }
        let what = format!("the files in {} change again and again", self.folder.display());
        Err(Error::Unavailable { what })
    }

    fn mark(&self) -> Result<StateMark> {
        let (environment, changed_ns) = self.environment(false)?;
        Ok(StateMark { version: environment.version(), opening: environment.number, changed_ns })
    }

    fn close(&self) {
        if let Some(environment) = self.opened().take() {
            environment.close();
        }
    }
}

struct LmdbSnapshot {
    // The transaction is dropped first, because it belongs to the environment.
    transaction: RoTxn<'static, WithoutTls>,
    environment: Arc<RecordEnvironment>,
    turn: Option<File>,
}

impl RecordSnapshot for LmdbSnapshot {
    fn version(&self) -> u64 {
        self.transaction.id() as u64
    }

    fn get_all(&mut self, space: &str, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let table = self.environment.table(space)?;
        let value = |key: &&[u8]| Ok(table.get(&self.transaction, key)?.map(<[u8]>::to_vec));
        keys.iter().map(value).collect::<heed::Result<_>>().map_err(problem)
    }

    fn under(
        &mut self,
        space: &str,
        prefix: &[u8],
        first: &[u8],
        limit: usize,
    ) -> Result<Vec<Item>> {
        let table = self.environment.table(space)?;
        let first = prefix.max(first);
        let begin = if first.is_empty() { Bound::Unbounded } else { Bound::Included(first) };
        let range = (begin, Bound::Unbounded);
        let mut found = Vec::new();
        for item in table.range(&self.transaction, &range).map_err(problem)?.take(limit) {
            let (key, value) = item.map_err(problem)?;
            if !key.starts_with(prefix) {
                break;
            }
            found.push((key.to_vec(), value.to_vec()));
        }
        Ok(found)
    }

    fn count(&mut self, space: &str) -> Result<u64> {
        self.environment.table(space)?.len(&self.transaction).map_err(problem)
    }

    fn commit(self: Box<Self>, changes: &Changes) -> Result<()> {
        let Self { transaction, environment, turn } = *self;
        let _turn = turn.ok_or_else(only_reads)?;
        let version = transaction.id();
        drop(transaction);
        change(&environment, Some(version), changes)
    }
}

/// Makes the changes in one transaction. If `version` is given, fails unless `version` was the last
/// change.
fn change(
    environment: &RecordEnvironment,
    version: Option<usize>,
    changes: &Changes,
) -> Result<()> {
    let changed = || {
        let mut transaction = environment.writes()?;
        if version.is_some_and(|version| transaction.id() != version + 1) {
            return Ok(false);
        }
        for (space, changes) in changes {
            let Ok(table) = environment.table(space) else { return Ok(false) };
            for (key, value) in changes {
                match value {
                    Some(value) => table.put(&mut transaction, key, value)?,
                    None => drop(table.delete(&mut transaction, key)?),
                }
            }
        }
        transaction.commit()?;
        Ok(true)
    };
    match changed() {
        Ok(true) => Ok(()),
        Ok(false) => {
            let what = format!("{DATA_FILE} was changed by another program meanwhile");
            Err(Error::Unavailable { what })
        }
        Err(error) => {
            let is_full = matches!(error, heed::Error::Mdb(MdbError::MapFull));
            environment.outgrow(if is_full { environment.map_bytes() * 2 } else { 0 });
            Err(problem(error))
        }
    }
}

#[cfg(test)]
mod tests;
