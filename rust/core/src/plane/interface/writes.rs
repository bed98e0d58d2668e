//! Writes of batches, whatever they come as, and the positions of imports.

use crate::model::error::Error;
use crate::model::limits::WriteLimits;
use crate::plane::Plane;
use crate::plane::failure::WriteError;
use crate::plane::writer::{Acknowledge, AdaptedBody, Input, Pending, Written};
use crate::storage::store::{Cursor, NewBlock};
use crate::wire::columnar::InputRows;
use crate::wire::{CsvColumns, Format};

/// Writes.
impl Plane {
    /// Writes one batch as of the instant `ingest_ns`.
    ///
    /// # Errors
    /// [`WriteError::Refused`] and nothing is stored; [`WriteError::Failed`] with the promises of
    /// [`crate::storage::store::Store::append`].
    pub fn write(
        &self,
        format: Format,
        body: &[u8],
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledge,
    ) -> Result<Written, WriteError> {
        Ok(self.append(format, body, limits, ingest_ns, acknowledge)?.wait()?)
    }

    /// The part of [`Self::write`] before the disk is waited for, which is left to the caller.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn append(
        &self,
        format: Format,
        body: &[u8],
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledge,
    ) -> Result<Pending, WriteError> {
        self.writer.append(Input::Body(format, body), limits, ingest_ns, acknowledge)
    }

    /// Appends a body of another protocol as one batch as of the instant `ingest_ns`, to be waited
    /// for as after [`Self::append`].
    ///
    /// # Errors
    /// As [`Self::write`]. [`Refusal::Dropped`](crate::model::fault::Refusal::Dropped) where a record
    /// is faulty and none is to be left out.
    pub fn append_adapted(
        &self,
        body: AdaptedBody<'_>,
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledge,
    ) -> Result<Pending, WriteError> {
        self.writer.append(Input::Adapted(body), limits, ingest_ns, acknowledge)
    }

    /// Writes rows of comma-separated values, less their header, as one batch as of the instant
    /// `ingest_ns`. The header learns the types of columns, whether the batch is refused or not.
    ///
    /// # Errors
    /// As [`Self::write`].
    ///
    /// # Panics
    /// As [`crate::wire::parse_csv`].
    pub fn write_csv(
        &self,
        header: &mut CsvColumns,
        body: &[u8],
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledge,
    ) -> Result<Written, WriteError> {
        Ok(self.writer.append(Input::Csv(header, body), limits, ingest_ns, acknowledge)?.wait()?)
    }

    /// Writes rows that come as columns, as one batch as of the instant `ingest_ns`.
    ///
    /// # Errors
    /// As [`Self::write`].
    ///
    /// # Panics
    /// As [`crate::wire::columnar::parse_rows`].
    pub fn write_rows(
        &self,
        rows: &InputRows<'_>,
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledge,
    ) -> Result<Written, WriteError> {
        Ok(self.writer.append(Input::Rows(rows), limits, ingest_ns, acknowledge)?.wait()?)
    }

    /// Makes durable what was acknowledged before it was.
    ///
    /// # Errors
    /// [`Error::DiskFull`], [`Error::Unavailable`]: everything still waits, to be tried again.
    /// [`Error::Lost`]: the store failed and what waited may not be stored.
    pub fn flush(&self) -> Result<(), Error> {
        self.writer.flush()
    }

    /// Position that the last batch of the import `key` was written with ([`Acknowledge::At`]).
    ///
    /// # Errors
    /// The store's, [`Error::Corrupt`].
    pub fn cursor(&self, key: &[u8; 16]) -> Result<Option<Vec<u8>>, Error> {
        let sealed = self.sealed.store.cursor(key)?;
        sealed.map(|sealed| self.unseal(&sealed)).transpose()
    }

    /// Forgets the import `key`, which has ended.
    ///
    /// # Errors
    /// The store's.
    pub fn forget_cursor(&self, key: &[u8; 16]) -> Result<(), Error> {
        let cursor = Some(Cursor { key: *key, position: Vec::new() });
        self.sealed.store.append(vec![NewBlock { cursor, ..NewBlock::default() }])
    }

    /// Sealed bytes that wait for [`Self::flush`].
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.writer.buffered_bytes()
    }
}
