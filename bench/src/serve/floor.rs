//! The floor: axum and tonic alone. They parse a request and answer bytes that they were given.

use std::io;
use std::path::Path;

use anabranch_server::proto::plans::plans_server::{self, PlansServer};
use anabranch_server::proto::plans::{
    DescribeRequest, DescribeResponse, ListRequest, ListResponse, ReloadRequest, ReloadResponse,
    RunManyResponse, RunRequest, RunResponse,
};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use futures_util::stream::BoxStream;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tonic::{Request, Response, Status, Streaming};

/// The answers of the floor, as files of one folder.
pub(super) const HTTP_ANSWER: &str = "answer.json";
pub(super) const GRPC_ANSWER: &str = "answer.pb";

/// `anabranch-bench serve floor FOLDER`: serves until it is killed, on as many workers as our own server has.
pub(crate) fn run(folder: &str) -> io::Result<()> {
    let answer = Bytes::from(std::fs::read(Path::new(folder).join(HTTP_ANSWER))?);
    let message = std::fs::read(Path::new(folder).join(GRPC_ANSWER))?;
    let message = RunResponse::decode(&message[..]).map_err(io::Error::other)?;
    let router = Router::new()
        .route("/v1/plans/{name}/run", post(reply))
        .with_state(answer)
        .route_service("/anabranch.plan.v1.Plans/{method}", PlansServer::new(Replies(message)));
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("listening on http://{}", listener.local_addr()?);
        // As our own server does: without it gRPC waits for delayed acknowledgements.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        axum::serve(listener, router).await
    })
}

async fn reply(State(answer): State<Bytes>, body: Bytes) -> impl IntoResponse {
    let request: serde_json::Value = serde_json::from_slice(&body).expect("the load generator sends JSON");
    assert!(request["user_id"].is_number());
    ([(CONTENT_TYPE, "application/json")], answer)
}

/// Answers each call of `Run` with the same message.
struct Replies(RunResponse);

#[tonic::async_trait]
impl plans_server::Plans for Replies {
    type RunManyStream = BoxStream<'static, Result<RunManyResponse, Status>>;

    async fn run(&self, request: Request<RunRequest>) -> Result<Response<RunResponse>, Status> {
        assert!(request.get_ref().user.is_some());
        Ok(Response::new(self.0.clone()))
    }

    async fn run_many(
        &self,
        _: Request<Streaming<RunRequest>>,
    ) -> Result<Response<Self::RunManyStream>, Status> {
        Err(Status::unimplemented("the floor answers `Run`"))
    }

    async fn list(&self, _: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        Err(Status::unimplemented("the floor answers `Run`"))
    }

    async fn describe(&self, _: Request<DescribeRequest>) -> Result<Response<DescribeResponse>, Status> {
        Err(Status::unimplemented("the floor answers `Run`"))
    }

    async fn reload(&self, _: Request<ReloadRequest>) -> Result<Response<ReloadResponse>, Status> {
        Err(Status::unimplemented("the floor answers `Run`"))
    }
}
