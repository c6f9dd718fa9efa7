//! The floor: axum alone, which parses a request and answers bytes that it was given.

use std::io;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// `anabranch-bench serve floor ANSWER`: serves until it is killed, on as many workers as our own server has.
pub(crate) fn run(answer: &str) -> io::Result<()> {
    let answer = Bytes::from(std::fs::read(answer)?);
    let router = Router::new().route("/v1/plans/{name}/run", post(reply)).with_state(answer);
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("listening on http://{}", listener.local_addr()?);
        axum::serve(listener, router).await
    })
}

async fn reply(State(answer): State<Bytes>, body: Bytes) -> impl IntoResponse {
    let request: serde_json::Value = serde_json::from_slice(&body).expect("the load generator sends JSON");
    assert!(request["user_id"].is_number());
    ([(CONTENT_TYPE, "application/json")], answer)
}
