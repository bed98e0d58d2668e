//! Segments as objects `PREFIX/PLANE/SEGMENT`, written once and read by ranges.

mod answers;
mod url;

mod marker;
mod probe;

use std::sync::Arc;

use fleetcast_core::model::error::{Error, Result};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::time::timeout;

use self::answers::{READ_TIMEOUT, answer_of, in_time, unavailable};
use crate::identity::Id;

/// Size of the parts in which an object is written, if it is at least this large.
const PART_BYTES: usize = 8 << 20;

/// The object store of an installation.
#[derive(Clone)]
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl Objects {
    /// Opens the objects below a URL (see [`url::parse`]).
    ///
    /// # Errors
    /// Returns [`Error::Invalid`], which does not repeat the URL.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let (store, prefix) = url::parse(url)?;
        Ok(Self { store, prefix })
    }

    fn path(&self, plane: Id, segment: Id) -> Path {
        self.prefix.clone().join(plane.hex()).join(segment.hex())
    }

    /// Begins an object.
    pub(crate) fn begin(&self, plane: Id, segment: Id) -> Upload {
        Upload {
            objects: self.clone(),
            path: self.path(plane, segment),
            bytes: Vec::new(),
            parts: None,
            length: 0,
        }
    }

    /// Returns the bytes of an object from `from` up to `to`, or fewer if the object ends before.
    pub(crate) async fn read(&self, plane: Id, segment: Id, from: u64, to: u64) -> Result<Vec<u8>> {
        let path = self.path(plane, segment);
        let bytes = timeout(READ_TIMEOUT, self.store.get_range(&path, from..to)).await;
        Ok(answer_of("read a segment", bytes)?.into())
    }

    /// Length of an object.
    pub(crate) async fn length(&self, plane: Id, segment: Id) -> Result<u64> {
        let path = self.path(plane, segment);
        Ok(in_time("look at a segment", self.store.head(&path)).await?.size)
    }

    /// Deletes an object if it exists.
    pub(crate) async fn delete(&self, plane: Id, segment: Id) -> Result<()> {
        let path = self.path(plane, segment);
        match in_time("delete a segment", self.store.delete(&path)).await {
            Err(Error::Stale) => Ok(()),
            other => other,
        }
    }
}

/// An object that is being written. It appears as a whole when it is finished.
pub(crate) struct Upload {
    objects: Objects,
    path: Path,
    bytes: Vec<u8>,
    /// Parts of a large object.
    parts: Option<Box<dyn MultipartUpload>>,
    length: u64,
}

impl Upload {
    pub(crate) async fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        self.length += bytes.len() as u64;
        if self.bytes.len() < PART_BYTES {
            return Ok(());
        }
        self.put_part().await
    }

    async fn put_part(&mut self) -> Result<()> {
        let payload = PutPayload::from(std::mem::take(&mut self.bytes));
        let parts = if let Some(parts) = &mut self.parts {
            parts
        } else {
            let begun = in_time(WRITING, self.objects.store.put_multipart(&self.path)).await?;
            self.parts.insert(begun)
        };
        in_time(WRITING, parts.put_part(payload)).await
    }

    /// Writes the remaining bytes, and returns the length of the stored object.
    pub(crate) async fn finish(mut self) -> Result<u64> {
        if self.parts.is_none() {
            let payload = PutPayload::from(std::mem::take(&mut self.bytes));
            in_time(WRITING, self.objects.store.put(&self.path, payload)).await?;
        } else {
            self.put_part().await?;
            if let Some(parts) = &mut self.parts {
                in_time(WRITING, parts.complete()).await?;
            }
        }
        match in_time(WRITING, self.objects.store.head(&self.path)).await {
            Ok(stored) if stored.size == self.length => Ok(self.length),
            Ok(_) => Err(unavailable(WRITING, "it has another length now")),
            Err(Error::Stale) => Err(unavailable(WRITING, "it is not there, but was said to be")),
            Err(error) => Err(error),
        }
    }

    /// Ends the upload without an object.
    pub(crate) async fn abort(mut self) {
        if let Some(parts) = &mut self.parts {
            drop(in_time(WRITING, parts.abort()).await);
        }
    }
}

const WRITING: &str = "write a segment";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_repeats_a_key() {
        for url in
            ["s3:secret", "ftp://secret/x", "s3://fleet?secret_name=secret", "az://fleet?x=secret"]
        {
            let message = Objects::parse(url).err().unwrap().to_string();
            assert!(
                message.starts_with("store.objects") && !message.contains("secret"),
                "{message}"
            );
        }
    }
}
