//! The worked example of `docs/recipe-service.md`: its `curl` commands are sent, and the answers compared with those that the
//! page shows. `UPDATE_EXPECT=1` writes the answers into the page.

use std::path::Path;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use crate::support::Server;

/// The address that the page shows.
const SHOWN: &str = "http://127.0.0.1:7421";

#[tokio::test]
async fn the_example_of_the_page_is_what_the_server_answers() {
    let server = Server::start().await;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipe-service.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (mut written, mut sent) = (String::new(), 0);
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        written.push_str(line);
        written.push('\n');
        let Some(command) = line.strip_prefix("$ curl ") else { continue };
        while lines.next_if(|line| !line.starts_with("$ ") && *line != "```").is_some() {}
        written.push_str(&answer(&server, command).await);
        written.push('\n');
        sent += 1;
    }
    assert!(sent >= 4, "the page has its example");
    expect_test::expect_file![file].assert_eq(&written);
}

/// Sends what a command of the page would: `-s`, `-X METHOD`, `--data-binary TEXT`, `--json TEXT` and the address.
async fn answer(server: &Server, command: &str) -> String {
    let (mut method, mut body, mut json) = (None, None, false);
    let mut url = None;
    let mut words = words(command).into_iter();
    while let Some(word) = words.next() {
        match &*word {
            "-s" => {}
            "-X" => method = words.next(),
            "--data-binary" => body = words.next(),
            "--json" => (body, json) = (words.next(), true),
            other => url = Some(other.replace(SHOWN, &server.url)),
        }
    }
    let default = if body.is_some() { "POST" } else { "GET" };
    let method: Method = method.as_deref().unwrap_or(default).parse().unwrap();
    let kind = if json { "application/json" } else { "application/x-www-form-urlencoded" };
    let request = Request::builder().method(method).uri(url.unwrap()).header("content-type", kind);
    let request = request.body(Full::new(Bytes::from(body.unwrap_or_default()))).unwrap();
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let reply = client.request(request).await.unwrap();
    let bytes = reply.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The words of a command; single quotes keep spaces.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (place, part) in command.split('\'').enumerate() {
        let last = words.last_mut().expect("there is one");
        if place % 2 == 1 {
            last.push_str(part);
            continue;
        }
        let mut parts = part.split(' ');
        last.push_str(parts.next().unwrap_or_default());
        words.extend(parts.map(str::to_owned));
    }
    words.retain(|word| !word.is_empty());
    words
}
