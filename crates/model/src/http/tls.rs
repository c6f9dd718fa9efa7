//! The trusted certificates.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::error::Error;

/// Trusts the system's certificates and those of a PEM file.
///
/// A system without certificates is not an error here, because servers without TLS, and servers that the file covers,
/// can still be reached.
pub(super) fn config(ca_file: Option<&Path>) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let wrong = |what: String| Error::Setup(format!("the CA file `{}` {what}", path.display()));
        let certificates = CertificateDer::pem_file_iter(path)
            .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
            .map_err(|error| wrong(format!("cannot be read: {error}")))?;
        if certificates.is_empty() {
            return Err(wrong("contains no certificate; it should be in PEM form".to_owned()));
        }
        for certificate in certificates {
            roots.add(certificate).map_err(|error| wrong(format!("has a wrong certificate: {error}")))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Setup(format!("TLS cannot be set up: {error}")))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
