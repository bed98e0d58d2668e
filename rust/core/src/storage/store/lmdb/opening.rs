//! Makes and opens stores: database, tables and log. The order of the steps keeps a crash from
//! leaving a store that looks complete but is not.

use std::path::{Path, PathBuf};

use heed::types::Bytes;

use super::environment::PlaneEnvironment;
use super::records;
use super::store::LmdbStore;
use super::tables::PlaneTables;
use crate::model::error::{Error, Result};
use crate::storage::seal::fill_random;
use crate::storage::store::log::OpenPermit;

const TABLE_COUNT: u32 = 2;
/// Bytes of LMDB's two head pages, with the smallest page size.
const FILE_BYTES_MIN: u64 = 2 * 4_096;

impl LmdbStore {
    /// Makes an empty store in `directory`, which must exist.
    ///
    /// # Errors
    /// Returns [`Error::Exists`] if the directory has a store, and the errors of [`Self::open`].
    pub fn create(directory: &Path) -> Result<Self> {
        let path = plane_path(directory);
        if path.exists() {
            return Err(Error::exists(&path));
        }
        let opening = OpenPermit::begin(directory)?;
        let env = PlaneEnvironment::open(&path, TABLE_COUNT, &opening)?;
        let tables = env.create_tables(|open, txn| {
            let meta = open.create_database::<Bytes, Bytes>(txn, Some("meta"))?;
            Ok((meta, open.create_database(txn, Some("names"))?))
        })?;
        let (meta, names) = tables;
        Self::with_tables(directory, opening, env, PlaneTables { meta, names })
    }

    /// Opens the store in `directory`.
    ///
    /// # Errors
    /// Returns [`Error::Missing`] if there is no store, and [`Error::Corrupt`] if the file is not a
    /// store of this format. Returns [`Error::Database`] if this process has the store open
    /// already, and [`Error::Io`] if a file cannot be read.
    pub fn open(directory: &Path) -> Result<Self> {
        let path = plane_path(directory);
        let length = match path.metadata() {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::missing(&path));
            }
            Err(error) => return Err(Error::io("read", &path, error)),
        };
        // LMDB would make a new environment from an empty file. A tenant who lost all data would
        // then look like a tenant who never wrote.
        if length < FILE_BYTES_MIN {
            return Err(Error::Corrupt { what: "the store's database" });
        }
        let opening = OpenPermit::begin(directory)?;
        let (env, tables) = open_tables(&path, &opening)?;
        Self::with_tables(directory, opening, env, tables)
    }

    /// Opens the log next to the tables. Begins the log if the tables do not have its id.
    fn with_tables(
        directory: &Path,
        opening: OpenPermit,
        env: PlaneEnvironment,
        tables: PlaneTables,
    ) -> Result<Self> {
        // Refuses a file of another format before it is used.
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

/// Opens the database and its tables.
fn open_tables(path: &Path, opening: &OpenPermit) -> Result<(PlaneEnvironment, PlaneTables)> {
    let corrupt = Error::Corrupt { what: "the store's database" };
    let env = PlaneEnvironment::open(path, TABLE_COUNT, opening)?;
    if env.is_new() {
        return Err(corrupt);
    }
    let tables = env.open_tables(|open, txn| {
        let meta = open.open_database::<Bytes, Bytes>(txn, Some("meta"))?;
        Ok((meta, open.open_database(txn, Some("names"))?))
    })?;
    let (Some(meta), Some(names)) = tables else { return Err(corrupt) };
    Ok((env, PlaneTables { meta, names }))
}

/// Begins the log of a new store. The log is durable before the head has its id, and the head has
/// the id before the first append.
fn begin_log(
    opening: &OpenPermit,
    env: &PlaneEnvironment,
    tables: &PlaneTables,
) -> Result<records::HeadRecord> {
    let mut id = [0; 8];
    fill_random(&mut id)?;
    let id = u64::from_le_bytes(id);
    opening.create(id)?;
    env.write("begin the log", |txn| {
        let head = records::HeadRecord { log: Some(id), ..tables.head(txn)? };
        tables.put_head(txn, head)?;
        tables.head(txn)
    })
}

/// Returns the path of the database.
pub(super) fn plane_path(directory: &Path) -> PathBuf {
    directory.join("plane.mdb")
}
