//! Sockets to servers: TCP, with TLS if it is configured.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rustix::net::sockopt;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::config::RedisTls;

/// The idle time of a connection before the system probes the server.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);

/// The time between two such probes, of which three must fail.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// A stream of bytes to and from a server.
pub(super) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// Opens sockets: a trait, so that tests can replace the network.
pub(super) trait Dial: Send + Sync + 'static {
    /// A socket to this host and port.
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Socket>>>;
}

/// The network.
pub(super) struct Network {
    tls: Option<RedisTls>,
    connector: OnceLock<TlsConnector>,
    /// The time for which sent bytes may stay unacknowledged.
    unacknowledged: Duration,
}

impl Network {
    pub(super) fn new(tls: Option<RedisTls>, unacknowledged: Duration) -> Network {
        Network { tls, connector: OnceLock::new(), unacknowledged }
    }

    fn connector(&self, tls: &RedisTls) -> io::Result<&TlsConnector> {
        if let Some(connector) = self.connector.get() {
            return Ok(connector);
        }
        let made = connector(tls)?;
        Ok(self.connector.get_or_init(|| made))
    }

    /// Sets socket options. They are optional, so errors are ignored.
    fn set_options(&self, stream: &TcpStream) {
        let _ = stream.set_nodelay(true);
        let _ = sockopt::set_socket_keepalive(stream, true);
        let _ = sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE);
        let _ = sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL);
        let _ = sockopt::set_tcp_keepcnt(stream, 3);
        let millis = u32::try_from(self.unacknowledged.as_millis()).unwrap_or(u32::MAX);
        let _ = sockopt::set_tcp_user_timeout(stream, millis);
    }
}

impl Dial for Network {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            self.set_options(&stream);
            let Some(tls) = &self.tls else { return Ok(Box::new(stream) as Box<dyn Socket>) };
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            let stream = self.connector(tls)?.connect(name, stream).await?;
            Ok(Box::new(stream) as Box<dyn Socket>)
        })
    }
}

/// Trusts the authorities that are named, or else those of the machine.
fn connector(tls: &RedisTls) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    match &tls.authorities {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate
                    .map_err(|e| io::Error::other(format!("`authorities` has a broken certificate: {e}")))?;
                roots.add(certificate).map_err(io::Error::other)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(io::Error::other("there are no trusted certificates; name a PEM file as `authorities`"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
