//! TLS, with certificates that can be replaced while the server runs.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tracing::{info, warn};

/// Errors of certificates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("{}: {cause}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// A file has malformed content.
    #[error("{}: {problem}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// The problem.
        problem: String,
    },
}

/// The files of a server's certificate and key.
#[derive(Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    current: Mutex<CurrentConfig>,
}

#[derive(Debug)]
struct CurrentConfig {
    config: Arc<ServerConfig>,
    versions: Versions,
    looked: Option<Instant>,
}

/// The inode and time of each file. They change whenever a file is replaced.
type Versions = [Option<(u64, i64, i64)>; 2];

/// The interval at which the files are checked.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The largest file that is read.
const BYTES_MOST: u64 = 1 << 20;

/// The protocols that clients may choose, in order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

impl Tls {
    /// Reads a certificate chain and its key, both PEM.
    ///
    /// # Errors
    /// If a file cannot be read, or the key does not belong to the certificate.
    pub fn open(certificate: &Path, key: &Path) -> Result<Tls, Error> {
        let versions = versions(certificate, key);
        let config = read(certificate, key)?;
        let current = Mutex::new(CurrentConfig { config, versions, looked: None });
        Ok(Tls { certificate: certificate.to_owned(), key: key.to_owned(), current })
    }

    /// The current certificate. Changed files are read again. If they are invalid, the old certificate stays.
    pub(crate) fn config(&self, clock: &dyn Clock) -> Arc<ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock.now();
        if current.looked.is_some_and(|looked| now.saturating_duration_since(looked) < LOOK_EVERY) {
            return Arc::clone(&current.config);
        }
        current.looked = Some(now);
        let versions = versions(&self.certificate, &self.key);
        if versions != current.versions {
            // Even an invalid file is not read again until it changes.
            current.versions = versions;
            match read(&self.certificate, &self.key) {
                Ok(config) => {
                    current.config = config;
                    info!(certificate = %self.certificate.display(), "the TLS certificate was replaced");
                }
                Err(error) => warn!(%error, "the new TLS certificate is not used"),
            }
        }
        Arc::clone(&current.config)
    }
}

fn versions(certificate: &Path, key: &Path) -> Versions {
    [certificate, key].map(|file| {
        let found = fs::metadata(file).ok()?;
        Some((found.ino(), found.mtime(), found.mtime_nsec()))
    })
}

fn bytes(file: &Path) -> Result<Vec<u8>, Error> {
    let failed = |cause| Error::File { file: file.to_owned(), cause };
    if fs::metadata(file).map_err(failed)?.len() > BYTES_MOST {
        return Err(wrong(file, "the file has more than 1 MiB"));
    }
    fs::read(file).map_err(failed)
}

fn wrong(file: &Path, problem: impl Into<String>) -> Error {
    Error::Content { file: file.to_owned(), problem: problem.into() }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes(file)?).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(wrong(file, "expected `-----BEGIN CERTIFICATE-----`, found no certificate")),
        Err(error) => Err(wrong(file, format!("not certificates as PEM: {error}"))),
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Error> {
    let chain = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_slice(&bytes(key)?)
        .map_err(|error| wrong(key, format!("not a private key as PEM, without a password: {error}")))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(certificate, error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| wrong(key, format!("does not fit the certificate: {error}")))?;
    config.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}

pub(crate) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The authorities of a PEM file.
pub(crate) fn authorities(file: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| wrong(file, error.to_string()))?;
    }
    Ok(roots)
}
