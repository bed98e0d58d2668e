//! Segments as objects `PREFIX/PLANE/SEGMENT`, written once and read by ranges.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fleetcast_core::model::error::{Error, Result};
use fleetcast_core::storage::seal::random_plane_id;
use futures_util::StreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    ClientOptions, MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig,
};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::identity::Id;

/// Time for a connection to the object store, repeated attempts included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for an answer that a request waits for, which is told within two seconds.
const READ_TIMEOUT: Duration = Duration::from_millis(1_750);

/// Time for any other answer with its body.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of an object from which on it is written in parts of so many.
const PART_BYTES: usize = 8 << 20;

/// The object store of an installation.
#[derive(Clone)]
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl Objects {
    /// The objects below a URL: `s3://BUCKET/PREFIX`, `gs://`, `az://`, `file:///DIRECTORY`, or
    /// `memory:///`, which ends with the process. Options stand behind a `?`, by the names of
    /// the client library, `endpoint`, `access_key` and `secret_key` as well; else the environment
    /// has them, as those clouds name them.
    ///
    /// # Errors
    /// [`Error::Invalid`], which does not repeat the URL.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, rest) = base.split_once("://").ok_or_else(|| invalid("is no URL"))?;
        let options: Vec<_> =
            query.split('&').filter_map(|option| option.split_once('=')).collect();
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = |path: &str| {
            Path::parse(path.trim_matches('/')).map_err(|_| invalid("has a strange path"))
        };
        let built: object_store::Result<Arc<dyn ObjectStore>> = match scheme {
            "s3" => s3(bucket, &options)?,
            "gs" => gcs(bucket, &options)?,
            "az" => azure(bucket, &options)?,
            "memory" => Ok(Arc::new(InMemory::new())),
            "file" => {
                let directory = PathBuf::from(format!("/{}", path.trim_matches('/')));
                std::fs::create_dir_all(&directory)
                    .map_err(|error| Error::io("make", &directory, error))?;
                let files = LocalFileSystem::new_with_prefix(&directory);
                let store =
                    files.map(|files| Arc::new(files.with_fsync(true)) as Arc<dyn ObjectStore>);
                let store = store.map_err(|_| invalid("names no directory"))?;
                return Ok(Self { store, prefix: Path::default() });
            }
            _ => return Err(invalid("is none of s3://, gs://, az:// and file:///")),
        };
        let store = built.map_err(|_| invalid("lacks a bucket, a region or credentials"))?;
        Ok(Self { store, prefix: prefix(path)? })
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

    /// Bytes of an object from `from` up to `to`, fewer where it ends before.
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

    /// Deletes an object, if it is there.
    pub(crate) async fn delete(&self, plane: Id, segment: Id) -> Result<()> {
        let path = self.path(plane, segment);
        match in_time("delete a segment", self.store.delete(&path)).await {
            Err(Error::Stale) => Ok(()),
            other => other,
        }
    }
}

/// Steps of [`Objects::probe`].
const PROBING: [&str; 3] = ["write a probe", "read a probe", "delete a probe"];

impl Objects {
    /// Writes an object of a random name, reads it, looks for it in a list, deletes it and sees that
    /// it is gone. False where the list is refused.
    ///
    /// # Errors
    /// [`Error::Unavailable`], which says what cannot be done.
    pub(crate) async fn probe(&self) -> Result<bool> {
        let content = random_plane_id()?;
        let folder = self.prefix.clone().join("probe");
        let path = folder.clone().join(Id(content).hex());
        let [writing, reading, deleting] = PROBING;
        let gone = |error| match error {
            Error::Stale => unavailable(reading, "it is not there once it is written"),
            other => other,
        };
        let missing = |error| match error {
            Error::Stale => unavailable(writing, "there is no such bucket"),
            other => other,
        };
        let put = self.store.put(&path, PutPayload::from(content.to_vec()));
        in_time(writing, put).await.map_err(missing)?;
        let range = self.store.get_range(&path, 0..content.len() as u64);
        let read = in_time(reading, range).await.map_err(gone);
        let mut list = self.store.list(Some(&folder));
        let mut is_listed: object_store::Result<bool> = Ok(false);
        while let Ok(Some(found)) = timeout(ANSWER_TIMEOUT, list.next()).await {
            is_listed = is_listed.and_then(|listed| Ok(listed || found?.location == path));
        }
        let deleted = in_time(deleting, self.store.delete(&path)).await;
        if read?[..] != content {
            return Err(unavailable(reading, "it has another content"));
        }
        deleted?;
        match in_time(deleting, self.store.head(&path)).await {
            Err(Error::Stale) => Ok(is_listed.unwrap_or(false)),
            Err(error) => Err(error),
            Ok(_) => Err(unavailable(deleting, "it is there still")),
        }
    }
}

/// An object that is being written. It is there whole once it is finished.
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

    /// Writes the rest, and looks at what is there.
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
        let stored = in_time(WRITING, self.objects.store.head(&self.path)).await?.size;
        if stored == self.length {
            return Ok(stored);
        }
        Err(unavailable(WRITING, "it has another length now"))
    }

    /// Ends it without an object.
    pub(crate) async fn abort(mut self) {
        if let Some(parts) = &mut self.parts {
            drop(in_time(WRITING, parts.abort()).await);
        }
    }
}

const WRITING: &str = "write a segment";

fn s3(
    bucket: &str,
    options: &[(&str, &str)],
) -> Result<object_store::Result<Arc<dyn ObjectStore>>> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry());
    let is_plain =
        options.iter().any(|(key, value)| *key == "endpoint" && value.starts_with("http://"));
    builder = builder.with_client_options(client(is_plain));
    for (key, value) in options {
        let key: AmazonS3ConfigKey = match *key {
            "access_key" => AmazonS3ConfigKey::AccessKeyId,
            "secret_key" => AmazonS3ConfigKey::SecretAccessKey,
            other => {
                other.parse().map_err(|_| invalid("has an option that its client does not know"))?
            }
        };
        builder = builder.with_config(key, *value);
    }
    Ok(builder.build().map(|store| Arc::new(store) as _))
}

fn gcs(
    bucket: &str,
    options: &[(&str, &str)],
) -> Result<object_store::Result<Arc<dyn ObjectStore>>> {
    let mut builder =
        GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket).with_retry(retry());
    builder = builder.with_client_options(client(false));
    for (key, value) in options {
        let key: GoogleConfigKey =
            key.parse().map_err(|_| invalid("has an option that its client does not know"))?;
        builder = builder.with_config(key, *value);
    }
    Ok(builder.build().map(|store| Arc::new(store) as _))
}

fn azure(
    bucket: &str,
    options: &[(&str, &str)],
) -> Result<object_store::Result<Arc<dyn ObjectStore>>> {
    let mut builder =
        MicrosoftAzureBuilder::from_env().with_container_name(bucket).with_retry(retry());
    builder = builder.with_client_options(client(false));
    for (key, value) in options {
        let key: AzureConfigKey =
            key.parse().map_err(|_| invalid("has an option that its client does not know"))?;
        builder = builder.with_config(key, *value);
    }
    Ok(builder.build().map(|store| Arc::new(store) as _))
}

fn client(allows_plain: bool) -> ClientOptions {
    // The HTTP client takes the provider of the process.
    drop(rustls::crypto::ring::default_provider().install_default());
    let options =
        ClientOptions::new().with_connect_timeout(CONNECT_TIMEOUT).with_timeout(ANSWER_TIMEOUT);
    options.with_allow_http(allows_plain)
}

fn retry() -> RetryConfig {
    RetryConfig { max_retries: 2, retry_timeout: CONNECT_TIMEOUT, ..RetryConfig::default() }
}

/// Outcome of `work` within [`ANSWER_TIMEOUT`]; [`Error::Stale`] for an object that is not there.
async fn in_time<R>(
    what: &'static str,
    work: impl Future<Output = object_store::Result<R>>,
) -> Result<R> {
    answer_of(what, timeout(ANSWER_TIMEOUT, work).await)
}

/// The value of an answer that came in time.
fn answer_of<R>(
    what: &'static str,
    answer: std::result::Result<object_store::Result<R>, Elapsed>,
) -> Result<R> {
    match answer {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(object_store::Error::NotFound { .. })) => Err(Error::Stale),
        // Its text may hold a URL, and this a signature.
        Ok(Err(error)) => Err(unavailable(what, kind_of(&error))),
        Err(_) => Err(unavailable(what, "no answer in time")),
    }
}

fn kind_of(error: &object_store::Error) -> &'static str {
    match error {
        object_store::Error::PermissionDenied { .. } => "permission denied",
        object_store::Error::Unauthenticated { .. } => "the credentials are refused",
        object_store::Error::NotSupported { .. } | object_store::Error::NotImplemented { .. } => {
            "the server does not know how"
        }
        _ => "no sound answer",
    }
}

fn unavailable(what: &'static str, cause: &str) -> Error {
    Error::Unavailable { what: format!("the object store cannot {what}: {cause}") }
}

fn invalid(fault: &str) -> Error {
    Error::Invalid { message: format!("store.objects {fault}") }
}

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
