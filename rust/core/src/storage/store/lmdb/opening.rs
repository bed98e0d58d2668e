//! Stores made and opened: database, tables and log, in the order that keeps a crash from showing
//! half of them.

use std::path::{Path, PathBuf};

use heed::types::Bytes;

use super::environment::Environment;
use super::records;
use super::store::LmdbStore;
use super::tables::Tables;
use crate::model::error::{Error, Result};
use crate::storage::seal::fill_random;
use crate::storage::store::log::Opening;

const TABLE_COUNT: u32 = 2;
/// LMDB's two head pages, of the smallest page there is.
const FILE_BYTES_MIN: u64 = 2 * 4_096;

impl LmdbStore {
    /// Makes an empty store in `directory`, which must exist.
    ///
    /// # Errors
    /// [`Error::Exists`] where there is one, and the errors of [`Self::open`].
    pub fn create(directory: &Path) -> Result<Self> {
        let path = plane_path(directory);
        if path.exists() {
            return Err(Error::exists(&path));
        }
        let opening = Opening::begin(directory)?;
        let env = Environment::open(&path, TABLE_COUNT, &opening)?;
        let tables = env.create_tables(|open, txn| {
            let meta = open.create_database::<Bytes, Bytes>(txn, Some("meta"))?;
            Ok((meta, open.create_database(txn, Some("names"))?))
        })?;
        let (meta, names) = tables;
        Self::with_tables(directory, opening, env, Tables { meta, names })
    }

    /// Opens the store in `directory`.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Corrupt`] for a file that is no store of this format,
    /// [`Error::Database`] where this process has it open already, [`Error::Io`].
    pub fn open(directory: &Path) -> Result<Self> {
        let path = plane_path(directory);
        let length = match path.metadata() {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::missing(&path));
            }
            Err(error) => return Err(Error::io("read", &path, error)),
        };
        // LMDB would make a new environment out of an empty file, and that of a tenant who has
        // lost everything would look like one who never wrote.
        if length < FILE_BYTES_MIN {
            return Err(Error::Corrupt { what: "the store's database" });
        }
        let opening = Opening::begin(directory)?;
        let (env, tables) = open_tables(&path, &opening)?;
        Self::with_tables(directory, opening, env, tables)
    }

    /// Opens the log beside the tables, and begins it where they know of none.
    fn with_tables(
        directory: &Path,
        opening: Opening,
        env: Environment,
        tables: Tables,
    ) -> Result<Self> {
        // Refuses a file of another format before anything of it is used.
        let mut head = env.read("open the store", |txn| tables.head(txn))?;
        if head.log.is_none() && opening.is_alone {
            env.read("open the store", |txn| tables.check_first_head(txn))?;
            head = begin_log(&opening, &env, &tables)?;
        }
        let id = head.log.ok_or(Error::Corrupt { what: "the store's head record" })?;
        let log = opening.finish(id, head.taken(), env.byte_locks())?;
        Ok(Self::new(log, env, tables, directory))
    }
}

/// Opens the database and those of its tables that there are.
fn open_tables(path: &Path, opening: &Opening) -> Result<(Environment, Tables)> {
    let corrupt = Error::Corrupt { what: "the store's database" };
    let env = Environment::open(path, TABLE_COUNT, opening)?;
    if env.is_new() {
        return Err(corrupt);
    }
    let tables = env.open_tables(|open, txn| {
        let meta = open.open_database::<Bytes, Bytes>(txn, Some("meta"))?;
        Ok((meta, open.open_database(txn, Some("names"))?))
    })?;
    let (Some(meta), Some(names)) = tables else { return Err(corrupt) };
    Ok((env, Tables { meta, names }))
}

/// Begins the log of a store that was just made. The log is durable before the head tells of it, and
/// only then anything is appended.
fn begin_log(opening: &Opening, env: &Environment, tables: &Tables) -> Result<records::Head> {
    let mut id = [0; 8];
    fill_random(&mut id)?;
    let id = u64::from_le_bytes(id);
    opening.create(id)?;
    env.write("begin the log", |txn| {
        let head = records::Head { log: Some(id), ..tables.head(txn)? };
        tables.put_head(txn, head)?;
        tables.head(txn)
    })
}

/// The file of the database.
pub(super) fn plane_path(directory: &Path) -> PathBuf {
    directory.join("plane.mdb")
}
