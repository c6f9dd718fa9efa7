//! Servers on this machine, and calls to them.

use std::future::pending;
use std::io;

use anabranch_recipe::{Address, Executor};
use anabranch_server::proto::deriva::GetRequest;
use anabranch_server::proto::deriva::deriva_client::DerivaClient;
use anabranch_server::proto::recipes;
use anabranch_server::proto::recipes::recipes_client::RecipesClient;
use anabranch_server::{Service, Settings};
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};

use super::echo::{self, Echo};

/// A server with threads of its own, gone with this.
pub(super) struct GrpcServer {
    url: String,
    runtime: Option<Runtime>,
}

/// As our own client has them: of one call and of one connection.
const WINDOWS: [u32; 2] = [1 << 20, 4 << 20];

impl GrpcServer {
    /// tonic alone.
    pub(super) fn echo(echo: Echo) -> io::Result<GrpcServer> {
        GrpcServer::start(|listener| async {
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            let served = Server::builder().add_service(echo).serve_with_incoming(incoming);
            served.await.expect("the floor serves");
        })
    }

    /// Recipes.
    pub(super) fn recipes(executor: Executor) -> io::Result<GrpcServer> {
        GrpcServer::start(|listener| async {
            let service = Service::new(executor, Settings::default());
            service.serve(listener, pending()).await;
        })
    }

    fn start<F>(serve: impl FnOnce(TcpListener) -> F) -> io::Result<GrpcServer>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let url = format!("http://{}", listener.local_addr()?);
        runtime.spawn(serve(listener));
        Ok(GrpcServer { url, runtime: Some(runtime) })
    }

    /// So many connections.
    pub(super) fn connect(&self, runtime: &Runtime, count: usize) -> Channels {
        let endpoint = Endpoint::from_shared(self.url.clone()).expect("it is a URL");
        let endpoint =
            endpoint.initial_stream_window_size(WINDOWS[0]).initial_connection_window_size(WINDOWS[1]);
        let connect = || runtime.block_on(endpoint.connect()).expect("the server is there");
        Channels((0..count).map(|_| connect()).collect())
    }
}

impl Drop for GrpcServer {
    fn drop(&mut self) {
        self.runtime.take().expect("it is dropped once").shutdown_background();
    }
}

/// Connections that calls take turns on.
#[derive(Clone)]
pub(super) struct Channels(std::sync::Arc<[Channel]>);

impl Channels {
    fn of(&self, number: u64) -> Channel {
        self.0[(number % self.0.len() as u64) as usize].clone()
    }
}

/// Ways to ask for a value; all answer how many bytes came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    EchoUnary,
    EchoStream,
    Deriva,
    Recipes,
}

impl Ask {
    pub(super) fn name(self) -> &'static str {
        match self {
            Ask::EchoUnary => "echo, unary",
            Ask::EchoStream => "echo, a stream",
            Ask::Deriva => "Deriva's Get",
            Ask::Recipes => "our Get",
        }
    }

    pub(super) async fn call(self, channels: &Channels, number: u64, address: Address) -> u64 {
        let channel = channels.of(number);
        let bytes = Bytes::copy_from_slice(address.as_bytes());
        match self {
            Ask::EchoUnary => echo::unary(channel, bytes).await,
            Ask::EchoStream => echo::streamed(channel, bytes).await,
            Ask::Deriva => {
                let answer = DerivaClient::new(channel).get(GetRequest { addr: bytes }).await;
                let (mut messages, mut sum) = (answer.expect("the server answers").into_inner(), 0);
                while let Some(message) = messages.message().await.expect("the stream ends well") {
                    sum += message.chunk.len() as u64;
                }
                sum
            }
            Ask::Recipes => {
                let target = Some(recipes::Target { of: Some(recipes::target::Of::Address(bytes)) });
                let request = recipes::GetRequest { target, start: 0, end: None };
                let answer = RecipesClient::new(channel).get(request).await;
                let (mut messages, mut sum) = (answer.expect("the server answers").into_inner(), 0);
                while let Some(message) = messages.message().await.expect("the stream ends well") {
                    sum += message.chunk.len() as u64;
                }
                sum
            }
        }
    }
}
