//! Clients of object stores, by the URLs that name them.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use fleetcast_core::model::error::{Error, Result};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, RetryConfig};

use super::answers::ANSWER_TIMEOUT;

/// Time for a connection to the object store, repeated attempts included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Names and values after the `?`.
type UrlOptions<'u> = [(&'u str, &'u str)];

/// Returns the object store of a URL, and the path of its objects.
///
/// A URL is `s3://BUCKET/PREFIX`, `gs://`, `az://`, `file:///DIRECTORY`, or `memory:///`, which
/// ends with the process. Options follow a `?`, under the names of the client library. `endpoint`,
/// `access_key` and `secret_key` are options too. Missing options come from the environment, under
/// the names that the clouds use. Example: `s3://telemetry/fleet?endpoint=https://10.0.0.5:9000`.
///
/// # Errors
/// Returns [`Error::Invalid`], which does not repeat the URL.
pub(super) fn parse(url: &str) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let (scheme, rest) = base.split_once("://").ok_or_else(|| invalid("is no URL"))?;
    let options: Vec<_> = query.split('&').filter_map(|option| option.split_once('=')).collect();
    let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
    let store: Arc<dyn ObjectStore> = match scheme {
        "s3" => s3(bucket, &options)?,
        "gs" => gcs(bucket, &options)?,
        "az" => azure(bucket, &options)?,
        "memory" => Arc::new(InMemory::new()),
        "file" => return Ok((directory(path)?, Path::default())),
        _ => return Err(invalid("is none of s3://, gs://, az:// and file:///")),
    };
    let prefix = Path::parse(path.trim_matches('/')).map_err(|_| invalid("has a strange path"))?;
    Ok((store, prefix))
}

fn directory(path: &str) -> Result<Arc<dyn ObjectStore>> {
    let directory = PathBuf::from(format!("/{}", path.trim_matches('/')));
    std::fs::create_dir_all(&directory).map_err(|error| Error::io("make", &directory, error))?;
    let files = LocalFileSystem::new_with_prefix(&directory);
    let files = files.map_err(|_| invalid("names no directory"))?;
    Ok(Arc::new(files.with_fsync(true)))
}

fn s3(bucket: &str, options: &UrlOptions<'_>) -> Result<Arc<dyn ObjectStore>> {
    let is_plain =
        options.iter().any(|(key, value)| *key == "endpoint" && value.starts_with("http://"));
    let builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let mut builder = builder.with_retry(retry()).with_client_options(client(is_plain));
    for (key, value) in options {
        let key = match *key {
            "access_key" => AmazonS3ConfigKey::AccessKeyId,
            "secret_key" => AmazonS3ConfigKey::SecretAccessKey,
            other => key_of(other)?,
        };
        builder = builder.with_config(key, *value);
    }
    built(builder.build())
}

fn gcs(bucket: &str, options: &UrlOptions<'_>) -> Result<Arc<dyn ObjectStore>> {
    let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
    let mut builder = builder.with_retry(retry()).with_client_options(client(false));
    for (key, value) in options {
        builder = builder.with_config(key_of::<GoogleConfigKey>(key)?, *value);
    }
    built(builder.build())
}

fn azure(bucket: &str, options: &UrlOptions<'_>) -> Result<Arc<dyn ObjectStore>> {
    let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket);
    let mut builder = builder.with_retry(retry()).with_client_options(client(false));
    for (key, value) in options {
        builder = builder.with_config(key_of::<AzureConfigKey>(key)?, *value);
    }
    built(builder.build())
}

fn key_of<K: FromStr>(name: &str) -> Result<K> {
    name.parse().map_err(|_| invalid("has an option that its client does not know"))
}

fn built(store: object_store::Result<impl ObjectStore>) -> Result<Arc<dyn ObjectStore>> {
    let store = store.map_err(|_| invalid("lacks a bucket, a region or credentials"))?;
    Ok(Arc::new(store))
}

fn client(allows_plain: bool) -> ClientOptions {
    // The HTTP client uses the crypto provider of the process.
    drop(rustls::crypto::ring::default_provider().install_default());
    let options =
        ClientOptions::new().with_connect_timeout(CONNECT_TIMEOUT).with_timeout(ANSWER_TIMEOUT);
    options.with_allow_http(allows_plain)
}

fn retry() -> RetryConfig {
    RetryConfig { max_retries: 2, retry_timeout: CONNECT_TIMEOUT, ..RetryConfig::default() }
}

fn invalid(fault: &str) -> Error {
    Error::Invalid { message: format!("store.objects {fault}") }
}
