//! Address of the database: its hosts, and the proof of their identity.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fleetcast_core::model::error::{Error, Result};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Time without a sign of life after which a connection counts as lost.
const SILENT_MAX: Duration = Duration::from_secs(3);

/// Copies of a commit that an acknowledgement stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The copies of the primary and of a standby that `synchronous_standby_names` requires. This
    /// is checked with every commit.
    #[default]
    Quorum,
    /// The copies that a provider makes below PostgreSQL, which cannot be checked.
    Managed,
}

/// The hosts of a database, each with its complete connection settings.
pub(crate) struct DatabaseAddress {
    pub(crate) hosts: Vec<Config>,
    pub(crate) tls: MakeRustlsConnect,
}

impl DatabaseAddress {
    /// Parses `postgresql://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE`. Servers are verified by
    /// the certificates of this machine, or by the certificates of `sslrootcert`. `sslmode=disable`
    /// turns TLS off, and so does a loopback address if the URL does not say.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`], which does not repeat the URL.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let (plain, tls) = TlsOptions::taken_from(url)?;
        let whole: Config =
            plain.parse().map_err(|_| invalid("is not postgresql://USER@HOST:PORT/DATABASE"))?;
        if whole.get_hosts().is_empty() {
            return Err(invalid("names no host"));
        }
        let hosts = (0..whole.get_hosts().len()).map(|at| host_of(&whole, at, &tls)).collect();
        Ok(Self { hosts, tls: tls.connector()? })
    }
}

/// Options of TLS with the names of libpq. The client library knows fewer.
#[derive(Default)]
struct TlsOptions {
    mode: Option<SslMode>,
    roots: Option<PathBuf>,
}

impl TlsOptions {
    /// Returns the options of `url`, and the URL without them.
    fn taken_from(url: &str) -> Result<(String, Self)> {
        if !url.starts_with("postgresql://") && !url.starts_with("postgres://") {
            return Err(invalid("does not begin with postgresql://"));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut options = Self::default();
        let mut others = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=').unwrap_or((option, "")) {
                ("sslmode", "disable") => options.mode = Some(SslMode::Disable),
                // The certificate and its name are always verified.
                ("sslmode", "require" | "verify-ca" | "verify-full") => {
                    options.mode = Some(SslMode::Require);
                }
                ("sslmode", _) => {
                    return Err(invalid("has an sslmode other than disable or verify-full"));
                }
                ("sslrootcert", path) => options.roots = Some(path.into()),
                // All hosts are asked, and each has two seconds.
                ("target_session_attrs" | "connect_timeout" | "load_balance_hosts", _) => {}
                _ => others.push(option),
            }
        }
        let separator = if others.is_empty() { "" } else { "?" };
        Ok((format!("{base}{separator}{}", others.join("&")), options))
    }

    fn connector(&self) -> Result<MakeRustlsConnect> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = &self.roots {
            let found = CertificateDer::pem_file_iter(path)
                .map_err(|_| invalid("has an sslrootcert that cannot be read"))?;
            for certificate in found.flatten() {
                roots
                    .add(certificate)
                    .map_err(|_| invalid("has an sslrootcert that holds no certificate"))?;
            }
        } else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Invalid { message: error.to_string() })?;
        Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
    }
}

fn host_of(whole: &Config, at: usize, tls: &TlsOptions) -> Config {
    let mut one = Config::new();
    let host = &whole.get_hosts()[at];
    let is_local = match host {
        Host::Tcp(name) => {
            one.host(name);
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
        Host::Unix(path) => {
            one.host_path(path);
            true
        }
    };
    let ports = whole.get_ports();
    one.port(ports.get(at).or(ports.first()).copied().unwrap_or(5432));
    if let Some(user) = whole.get_user() {
        one.user(user);
    }
    if let Some(password) = whole.get_password() {
        one.password(password);
    }
    if let Some(name) = whole.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = whole.get_options() {
        one.options(options);
    }
    one.application_name("fleetcast");
    // A host that vanished sends no answer, not even a refusal.
    one.tcp_user_timeout(SILENT_MAX)
        .keepalives_idle(SILENT_MAX)
        .keepalives_interval(SILENT_MAX / 3);
    one.ssl_mode(tls.mode.unwrap_or(if is_local { SslMode::Disable } else { SslMode::Require }));
    one
}

fn invalid(fault: &str) -> Error {
    Error::Invalid { message: format!("store.database {fault}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_is_asked_by_itself_and_verified_unless_it_is_this_one() {
        let url = "postgresql://fleet:secret@127.0.0.1:5001,db.example:5002/fleet?target_session_attrs=read-write";
        let address = DatabaseAddress::parse(url).unwrap();
        let [local, remote] = &address.hosts[..] else { panic!("{}", address.hosts.len()) };
        assert_eq!((local.get_ports(), remote.get_ports()), (&[5001][..], &[5002][..]));
        assert_eq!(local.get_ssl_mode(), SslMode::Disable);
        assert_eq!(remote.get_ssl_mode(), SslMode::Require);
        assert_eq!(remote.get_password(), Some(b"secret".as_slice()));
    }

    #[test]
    fn no_error_repeats_the_password() {
        let urls = [
            "postgresql://fleet:secret@db/fleet?sslmode=prefer",
            "postgresql://fleet:secret@db/fleet?sslrootcert=/nowhere",
            "postgresql://fleet:secret@db/fleet?secret=1",
            "mysql://fleet:secret@db/fleet",
            "postgresql:///fleet?user=secret",
        ];
        for url in urls {
            let message = DatabaseAddress::parse(url).err().unwrap().to_string();
            assert!(
                message.starts_with("store.database") && !message.contains("secret"),
                "{message}"
            );
        }
    }
}
