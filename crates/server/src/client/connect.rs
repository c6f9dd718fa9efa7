//! Connecting over TCP: with or without TLS, with or without a token.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::Service;
use tonic::codegen::http::{HeaderValue, Uri};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::Endpoint;
use tonic::{Request, Status};

use super::{Client, Error, configured};
use crate::access::Token;
use crate::tls;

/// The address of a server, and the credentials for it.
#[derive(Clone, Debug)]
pub struct ServerAddress {
    /// `http://host:port` or `https://host:port`.
    pub url: String,
    /// The token to send.
    pub token: Option<Token>,
    /// A PEM file of the authorities to trust instead of the system's.
    pub authorities: Option<PathBuf>,
}

impl ServerAddress {
    /// A server that needs no token.
    pub fn new(url: &str) -> ServerAddress {
        ServerAddress { url: url.to_owned(), token: None, authorities: None }
    }
}

impl Client {
    /// Connects to a server.
    pub async fn connect_to(server: &ServerAddress) -> Result<Client, Error> {
        let url = &server.url;
        let failed = |cause| Error::Connect { url: url.clone(), cause: Arc::new(cause) };
        let wrong = |problem: String| Error::Address { url: url.clone(), problem };
        let bearer = Bearer::of(server.token.as_ref());
        let endpoint = configured(Endpoint::from_shared(url.clone()).map_err(failed)?);
        if !url.starts_with("https://") {
            return Ok(Client::on(endpoint.connect().await.map_err(failed)?, bearer));
        }
        let uri = endpoint.uri().clone();
        let host = uri.host().ok_or_else(|| wrong("the address has no host".to_owned()))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(|error| wrong(error.to_string()))?;
        let config = config(server.authorities.as_ref()).map_err(|error| wrong(error.to_string()))?;
        let connector = Dial { address: (host.to_owned(), uri.port_u16().unwrap_or(443)), name, config };
        let channel = endpoint.connect_with_connector(connector).await.map_err(failed)?;
        Ok(Client::on(channel, bearer))
    }
}

fn config(authorities: Option<&PathBuf>) -> Result<Arc<ClientConfig>, tls::Error> {
    let roots = match authorities {
        Some(file) => tls::authorities(file)?,
        None => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots
        }
    };
    let mut config = ClientConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .expect("the provider has what the protocols need")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

/// A connector with TLS.
#[derive(Clone)]
struct Dial {
    address: (String, u16),
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

type DialFuture = Pin<Box<dyn Future<Output = io::Result<TokioIo<TlsStream<TcpStream>>>> + Send>>;

impl Service<Uri> for Dial {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = DialFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> DialFuture {
        let Dial { address, name, config } = self.clone();
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            let _ = stream.set_nodelay(true);
            Ok(TokioIo::new(TlsConnector::from(config).connect(name, stream).await?))
        })
    }
}

/// Sends a token with every call.
#[derive(Clone, Debug, Default)]
pub(super) struct Bearer(Option<MetadataValue<Ascii>>);

impl Bearer {
    fn of(token: Option<&Token>) -> Bearer {
        Bearer(token.map(|token| {
            let text = format!("Bearer {}", token.as_str());
            let mut value: MetadataValue<Ascii> = text.parse().expect("tokens are visible ASCII");
            value.set_sensitive(true);
            value
        }))
    }

    /// The header of HTTP requests other than gRPC.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_bytes(self.0.as_ref()?.as_bytes()).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}
