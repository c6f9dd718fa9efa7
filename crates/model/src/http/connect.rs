//! Connections to servers: direct, through a proxy's tunnel, or to a proxy that forwards requests.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tower_service::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Opens the connection that a server's TLS, if it has any, runs in.
#[derive(Clone)]
pub(super) struct Dial {
    direct: HttpConnector,
    /// Proxies may have their own TLS. Only HTTP/1.1 is used, because `CONNECT` is sent in it.
    to_proxy: HttpsConnector<HttpConnector>,
    proxies: Arc<Matcher>,
}

impl Dial {
    pub(super) fn new(connect_timeout: Duration, tls: &ClientConfig, proxies: Arc<Matcher>) -> Dial {
        let mut direct = HttpConnector::new();
        direct.enforce_http(false);
        direct.set_nodelay(true);
        direct.set_connect_timeout(Some(connect_timeout));
        direct.set_keepalive(Some(Duration::from_secs(30)));
        let to_proxy = HttpsConnectorBuilder::new()
            .with_tls_config(tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(direct.clone());
        Dial { direct, to_proxy, proxies }
    }
}

impl Service<Uri> for Dial {
    type Response = Link;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Link, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let Some(proxy) = self.proxies.intercept(&server) else {
            let connect = self.direct.call(server);
            return Box::pin(async move {
                Ok(Link { stream: MaybeHttpsStream::Http(connect.await?), forwarded: false })
            });
        };
        if server.scheme_str() == Some("https") {
            let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy.clone());
            if let Some(auth) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(auth.clone());
            }
            return Box::pin(async move {
                let stream = tunnel.call(server).await.map_err(|error| format!("proxy: {error}"))?;
                Ok(Link { stream, forwarded: false })
            });
        }
        let connect = self.to_proxy.call(proxy.uri().clone());
        Box::pin(async move {
            let stream = connect.await.map_err(|error| format!("proxy: {error}"))?;
            Ok(Link { stream, forwarded: true })
        })
    }
}

/// A connection to a server or a proxy.
pub(super) struct Link {
    stream: MaybeHttpsStream<TokioIo<tokio::net::TcpStream>>,
    /// A proxy reads the requests, so they name the whole URL.
    forwarded: bool,
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.forwarded)
    }
}

impl Read for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}
