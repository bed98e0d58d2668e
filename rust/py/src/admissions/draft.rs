//! A verdict on its way in.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;

use fleetcast_front::admission::files::{FileState, PlaneFiles};
use fleetcast_limiter::Client;

use super::books::{Books, RequestIndexes, WriteIndexes};
use super::verdict::{Basis, Limited, Verdict};
use crate::adapted::{NameMapping, protocol_of};
use crate::arguments::BatchLimits;
use crate::limiter::Limiter;
use crate::plane::Plane;
use crate::unreadable::Source;

/// `http.remembering.WriteVerdict`, by the names that it has there.
#[derive(FromPyObject)]
pub(crate) struct Draft {
    plane: Py<Plane>,
    folder: String,
    files: Option<Files>,
    write_limits: BatchLimits,
    body_bytes_max: u64,
    account_id: String,
    control_transaction: u64,
    key_expires_at: Option<i64>,
    rates: Option<Py<Limiter>>,
    lockouts: Option<Py<Limiter>>,
    client: String,
    request_indexes: RequestIndexes,
    write_indexes: WriteIndexes,
    adapted: Option<(Py<NameMapping>, String)>,
    line: [String; 6],
    source: Source,
}

/// `slots.Files`.
#[derive(FromPyObject)]
pub(crate) struct Files {
    plane: Stat,
    key: Stat,
}

/// `os.stat_result`.
#[derive(FromPyObject)]
struct Stat {
    #[pyo3(attribute("st_dev"))]
    device: u64,
    #[pyo3(attribute("st_ino"))]
    inode: u64,
    #[pyo3(attribute("st_size"))]
    size: u64,
    #[pyo3(attribute("st_mtime_ns"))]
    modified_ns: i64,
}

impl From<Stat> for FileState {
    fn from(stat: Stat) -> Self {
        Self {
            device: stat.device,
            inode: stat.inode,
            size: stat.size,
            modified_ns: stat.modified_ns,
        }
    }
}

impl Files {
    /// Those of the plane in `folder`.
    pub(crate) fn of_plane(self, folder: &Path) -> PlaneFiles {
        PlaneFiles::new(folder, self.plane.into(), self.key.into())
    }
}

impl Draft {
    /// The verdict, now that the answer has its `fields`; `None` where what it rests on has changed
    /// already, or cannot be known.
    pub(super) fn complete(
        self,
        bounds: &Arc<[f64]>,
        basis: &Basis,
        fields: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Option<Verdict> {
        let control = basis.control.filter(|span| span.has(self.control_transaction))?;
        let adapted = match self.adapted {
            Some((mapping, name)) => Some((mapping.get().shared(), protocol_of(&name).ok()?)),
            None => None,
        };
        let limited = Limited {
            rates: self.rates.map(|limiter| limiter.get().shared()),
            lockouts: self.lockouts.map(|limiter| limiter.get().shared()),
            client: Client::of(&self.client),
        };
        Some(Verdict {
            control,
            settings: basis.settings,
            expires_at: self.key_expires_at,
            files: self.files.map(|files| files.of_plane(Path::new(&self.folder))),
            plane: self.plane.get().downgraded(),
            limits: self.write_limits,
            adapted,
            body_bytes_max: self.body_bytes_max,
            account: self.account_id.into(),
            limited,
            fields,
            books: Books::new(
                self.request_indexes,
                self.write_indexes,
                bounds,
                (self.line, self.source),
            ),
        })
    }
}
