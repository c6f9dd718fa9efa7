//! The floor: the same calls by a plain HTTP client, with replies parsed and nothing else.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::future::join;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::Semaphore;

use super::child::Job;
use super::recipe;

struct Caller {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: Uri,
    slots: Semaphore,
}

/// Makes all calls, as many rows at a time as there may be calls in flight. Returns the rows.
pub(super) fn run(job: &Job) -> io::Result<u64> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let caller = Arc::new(Caller {
        client: Client::builder(TokioExecutor::new()).build(connector),
        uri: format!("{}/chat/completions", recipe::endpoint(job.port)).parse().map_err(io::Error::other)?,
        slots: Semaphore::new(job.parallel),
    });
    let (next, rows) = (Arc::new(AtomicU64::new(0)), job.rows);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let workers = (0..job.parallel).map(|_| {
            let (caller, next) = (Arc::clone(&caller), Arc::clone(&next));
            tokio::spawn(async move {
                let mut made = 0;
                loop {
                    let row = next.fetch_add(1, Relaxed);
                    if row >= rows {
                        return made;
                    }
                    caller.row(row).await;
                    made += 1;
                }
            })
        });
        let mut made = 0;
        for worker in workers.collect::<Vec<_>>() {
            made += worker.await.map_err(io::Error::other)?;
        }
        Ok(made)
    })
}

impl Caller {
    async fn row(&self, row: u64) {
        let (topic, tone) = (recipe::topic(row), recipe::tone(row));
        let first = async {
            let a = self.call(&recipe::prompt_a(&topic, &tone)).await;
            self.call(&recipe::prompt_b(&a)).await
        };
        let (b, c) = join(first, self.call(&recipe::prompt_c(&topic, &tone))).await;
        std::hint::black_box((b, c));
    }

    async fn call(&self, prompt: &str) -> String {
        let _slot = self.slots.acquire().await.expect("the semaphore stays open");
        let text = serde_json::to_string(prompt).expect("a text is JSON");
        let model = recipe::MODEL;
        let body = format!(
            r#"{{"model":"{model}","messages":[{{"role":"user","content":[{{"type":"text","text":{text}}}]}}]}}"#
        );
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let response = self.client.request(request).await.expect("the server answers");
        assert_eq!(response.status(), 200, "the floor stays below the server's limit");
        let body = response.into_body().collect().await.expect("the server answers in full").to_bytes();
        let reply: serde_json::Value = serde_json::from_slice(&body).expect("the server answers in JSON");
        reply["choices"][0]["message"]["content"].as_str().expect("the reply has a text").to_owned()
    }
}
