//! The floor of a call over gRPC: tonic as it comes, and a service that answers from memory.

use std::convert::Infallible;
use std::task::{Context, Poll};

use anabranch_server::proto::deriva::{GetRequest, GetResponse};
use bytes::Bytes;
use futures_util::future::{Ready, ready};
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::{Body, BoxFuture, Service, StdError, http};
use tonic::server::{Grpc, NamedService, ServerStreamingService, UnaryService};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

/// Answers each call with the same bytes, so many times over.
#[derive(Clone)]
pub(super) struct Echo {
    pub(super) chunk: Bytes,
    /// How many messages a stream has.
    pub(super) count: usize,
}

const UNARY: &str = "/echo.Echo/Unary";
const STREAM: &str = "/echo.Echo/Stream";

impl NamedService for Echo {
    const NAME: &'static str = "echo.Echo";
}

impl<B> Service<http::Request<B>> for Echo
where
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let echo = self.clone();
        let mut grpc = Grpc::new(ProstCodec::<GetResponse, GetRequest>::default());
        match request.uri().path() {
            UNARY => Box::pin(async move { Ok(grpc.unary(One(echo), request).await) }),
            _ => Box::pin(async move { Ok(grpc.server_streaming(Many(echo), request).await) }),
        }
    }
}

struct One(Echo);

impl UnaryService<GetRequest> for One {
    type Response = GetResponse;
    type Future = Ready<Result<Response<GetResponse>, Status>>;

    fn call(&mut self, _: Request<GetRequest>) -> Self::Future {
        ready(Ok(Response::new(GetResponse { chunk: self.0.chunk.clone() })))
    }
}

struct Many(Echo);

impl ServerStreamingService<GetRequest> for Many {
    type Response = GetResponse;
    type ResponseStream = BoxStream<'static, Result<GetResponse, Status>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, _: Request<GetRequest>) -> Self::Future {
        let Echo { chunk, count } = self.0.clone();
        let messages = (0..count).map(move |_| Ok(GetResponse { chunk: chunk.clone() }));
        ready(Ok(Response::new(stream::iter(messages).boxed())))
    }
}

/// How many bytes a unary call brings.
pub(super) async fn unary(channel: Channel, address: Bytes) -> u64 {
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.expect("the server is there");
    let codec = ProstCodec::<GetRequest, GetResponse>::default();
    let request = Request::new(GetRequest { addr: address });
    let answer = grpc.unary(request, PathAndQuery::from_static(UNARY), codec).await;
    answer.expect("the server answers").into_inner().chunk.len() as u64
}

/// How many bytes a stream brings.
pub(super) async fn streamed(channel: Channel, address: Bytes) -> u64 {
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.expect("the server is there");
    let codec = ProstCodec::<GetRequest, GetResponse>::default();
    let request = Request::new(GetRequest { addr: address });
    let answer = grpc.server_streaming(request, PathAndQuery::from_static(STREAM), codec).await;
    let messages = answer.expect("the server answers").into_inner();
    let sum = messages.try_fold(0, |sum, message| ready(Ok(sum + message.chunk.len() as u64)));
    sum.await.expect("the stream ends well")
}
