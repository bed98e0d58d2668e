//! The certificate of the listener. It is read again when its files change.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::event::Notice;

/// Inode, size, and instant of change of a file; `None` if it cannot be examined.
type Signature = Option<(u64, u64, i64, i64)>;

/// Files of a certificate and of its key, in PEM.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The certificate, and the certificates of its issuers.
    pub certificate: PathBuf,
    /// The private key.
    pub private_key: PathBuf,
}

/// The certificate in force.
pub(crate) struct Certificate {
    files: CertificateFiles,
    current: Mutex<([Signature; 2], Arc<ServerConfig>)>,
}

impl Certificate {
    /// # Errors
    /// Returns an error that names the file, if a file cannot be read or the key does not fit the
    /// certificate.
    pub(crate) fn open(files: CertificateFiles) -> io::Result<Self> {
        let signatures = files.signatures();
        let config = files.config()?;
        Ok(Self { files, current: Mutex::new((signatures, config)) })
    }

    /// Returns the configuration of the next handshake. Also returns a notice if the certificate
    /// has changed, or if changed files cannot be used.
    pub(crate) fn current(&self) -> (Arc<ServerConfig>, Option<Notice>) {
        let signatures = self.files.signatures();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 == signatures {
            return (Arc::clone(&current.1), None);
        }
        let renewed = self.files.config();
        let notice = match &renewed {
            // The files were replaced in the meantime: the next handshake looks again.
            Ok(_) if self.files.signatures() != signatures => None,
            Ok(_) => Some(Notice::new("certificate renewed", None)),
            Err(error) => Some(Notice::new("certificate not renewed", Some(error.to_string()))),
        };
        if notice.is_some() {
            current.0 = signatures; // the same files are not tried again, even if they failed
        }
        if let (Ok(config), Some(_)) = (renewed, &notice) {
            current.1 = config;
        }
        (Arc::clone(&current.1), notice)
    }
}

impl CertificateFiles {
    fn signatures(&self) -> [Signature; 2] {
        [&self.certificate, &self.private_key].map(|path| signature(path))
    }

    fn config(&self) -> io::Result<Arc<ServerConfig>> {
        let chain = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect)
            .map_err(|error| faulty(&self.certificate, &error))?;
        let key = PrivateKeyDer::from_pem_file(&self.private_key)
            .map_err(|error| faulty(&self.private_key, &error))?;
        let provider = Arc::new(ring::default_provider());
        let certified = CertifiedKey::from_der(chain, key, &provider)
            .map_err(|error| faulty(&self.private_key, &error))?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }
}

fn signature(path: &Path) -> Signature {
    let found = path.metadata().ok()?;
    Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
}

fn faulty(path: &Path, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
}
