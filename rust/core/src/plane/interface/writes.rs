//! Writes of batches in all formats, and the positions of imports.

use crate::model::error::Error;
use crate::model::limits::WriteLimits;
use crate::plane::Plane;
use crate::plane::failure::WriteError;
use crate::plane::writer::{Acknowledgement, AdaptedBody, PendingBatch, WriteInput, WriteReport};
use crate::storage::seal::BlobKind;
use crate::storage::store::{Cursor, NewBlock};
use crate::wire::columnar::InputRows;
use crate::wire::{CsvColumns, Format};

/// Writes.
impl Plane {
    /// Writes one batch with the ingest instant `ingest_ns`, and waits as `acknowledge` says. The
    /// example of [`Plane`] writes a record.
    ///
    /// # Errors
    /// Returns [`WriteError::Refused`] if the contract refuses the batch: no record is stored.
    /// Returns [`WriteError::Failed`] with the promises of
    /// [`crate::storage::store::Store::append`].
    pub fn write(
        &self,
        format: Format,
        body: &[u8],
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledgement,
    ) -> Result<WriteReport, WriteError> {
        Ok(self.append(format, body, limits, ingest_ns, acknowledge)?.wait()?)
    }

    /// Does the part of [`Self::write`] before waiting for the disk, and leaves the waiting to the
    /// caller. Example: a server appends the batches of many connections and then waits for one
    /// sync.
    ///
    /// # Errors
    /// Returns the errors of [`Self::write`].
    pub fn append(
        &self,
        format: Format,
        body: &[u8],
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledgement,
    ) -> Result<PendingBatch, WriteError> {
        self.writer.append(WriteInput::Body(format, body), limits, ingest_ns, acknowledge)
    }

    /// Appends a body of another protocol as one batch with the ingest instant `ingest_ns`. The
    /// caller waits as after [`Self::append`]. Example: an export request of OpenTelemetry becomes
    /// a batch.
    ///
    /// # Errors
    /// Returns the errors of [`Self::write`]. Returns
    /// [`BatchRefusal::Dropped`](crate::model::fault::BatchRefusal::Dropped) if a record is faulty
    /// and the body must not be written in part.
    pub fn append_adapted(
        &self,
        body: AdaptedBody<'_>,
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledgement,
    ) -> Result<PendingBatch, WriteError> {
        self.writer.append(WriteInput::Adapted(body), limits, ingest_ns, acknowledge)
    }

    /// Writes rows of comma-separated values, without their header, as one batch with the ingest
    /// instant `ingest_ns`. `header` learns the types of columns, even if the batch is refused.
    /// Example: an import reads the first line into `header` and writes the rest in chunks of
    /// lines.
    ///
    /// # Errors
    /// Returns the errors of [`Self::write`].
    ///
    /// # Panics
    /// Panics as [`crate::wire::parse_csv`] does.
    pub fn write_csv(
        &self,
        header: &mut CsvColumns,
        body: &[u8],
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledgement,
    ) -> Result<WriteReport, WriteError> {
        Ok(self
            .writer
            .append(WriteInput::Csv(header, body), limits, ingest_ns, acknowledge)?
            .wait()?)
    }

    /// Writes rows that come as columns, as one batch with the ingest instant `ingest_ns`. Example:
    /// a record batch of Arrow with the columns time, `entity_id` and `snr_db`.
    ///
    /// # Errors
    /// Returns the errors of [`Self::write`].
    ///
    /// # Panics
    /// Panics as [`crate::wire::columnar::parse_rows`] does.
    pub fn write_rows(
        &self,
        rows: &InputRows<'_>,
        limits: &WriteLimits,
        ingest_ns: i64,
        acknowledge: Acknowledgement,
    ) -> Result<WriteReport, WriteError> {
        Ok(self.writer.append(WriteInput::Rows(rows), limits, ingest_ns, acknowledge)?.wait()?)
    }

    /// Makes every batch durable that was acknowledged before it was durable. Example: call it once
    /// a second if writes use [`Acknowledgement::Buffered`].
    ///
    /// # Errors
    /// Returns [`Error::DiskFull`] or [`Error::Unavailable`] if the batches still wait: try again.
    /// Returns [`Error::Lost`] if the store failed and the batches may not be stored.
    pub fn flush(&self) -> Result<(), Error> {
        self.writer.flush()
    }

    /// Returns the position that the last batch of the import `key` was written with
    /// ([`Acknowledgement::At`]). Example: an import that was interrupted after line 5,000 finds
    /// 5,000 and continues there.
    ///
    /// # Errors
    /// Returns the errors of the store, or [`Error::Corrupt`].
    pub fn cursor(&self, key: &[u8; 16]) -> Result<Option<Vec<u8>>, Error> {
        let sealed = self.sealed.store.cursor(key)?;
        sealed.map(|sealed| self.sealed.open_blob(BlobKind::Beside, &sealed)).transpose()
    }

    /// Forgets the import `key`, which has ended. Afterwards [`Self::cursor`] no longer returns its
    /// position. Example: an import calls it after its last batch.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn forget_cursor(&self, key: &[u8; 16]) -> Result<(), Error> {
        let cursor = Some(Cursor { key: *key, position: Vec::new() });
        self.sealed.store.append(vec![NewBlock { cursor, ..NewBlock::default() }])
    }

    /// Returns the sealed bytes that wait for [`Self::flush`]. Example: 0 right after a flush.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.writer.buffered_bytes()
    }
}
