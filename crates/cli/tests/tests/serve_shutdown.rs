//! SIGTERM while clients of all kinds go on: what the server accepts is answered as a whole and not lost, and what it refuses
//! is refused clearly.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_server::Code;
use anabranch_server::proto::plans::plans_client::PlansClient;
use anabranch_server::proto::plans::{Rows, RunManyResponse, RunRequest, run_many_response, run_request};
use futures_util::stream::poll_fn;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

use crate::binary::soon;
use crate::recipe::empty;
use crate::recipe_served::Server;
use crate::serve_plans::{FIRST, project, signal};

/// What became of a request.
enum Outcome {
    /// A whole answer, and whether the server closes the connection.
    Answered { body: String, closes: bool },
    /// The connection was closed before an answer began, or the answer is 503, or 429 of a client that has its share.
    Refused,
}

/// Sends a request, and reads the answer to it. An answer that breaks off is a fault.
fn exchange(stream: &mut BufReader<TcpStream>, request: &str) -> Outcome {
    if stream.get_mut().write_all(request.as_bytes()).is_err() {
        return Outcome::Refused;
    }
    let mut first = String::new();
    match stream.read_line(&mut first) {
        Ok(0) => return Outcome::Refused,
        Err(error) if first.is_empty() => {
            let is_closed = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error.kind());
            assert!(is_closed, "{error}");
            return Outcome::Refused;
        }
        first => drop(first.unwrap()),
    }
    let (mut len, mut closes) = (None, false);
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the head of an answer breaks off: {first}");
        if line == "\r\n" {
            break;
        }
        len = line.strip_prefix("content-length: ").map(|len| len.trim().parse().unwrap()).or(len);
        closes |= line.trim() == "connection: close";
    }
    let mut body = vec![0; len.unwrap()];
    stream.read_exact(&mut body).unwrap_or_else(|error| panic!("the body of an answer breaks off: {error}"));
    let body = String::from_utf8(body).unwrap();
    match first.split(' ').nth(1).unwrap() {
        "200" | "202" => Outcome::Answered { body, closes },
        "503" | "429" => Outcome::Refused,
        _ => panic!("{first}{body}"),
    }
}

/// A client that goes on until nobody listens any longer, with a connection per request or with one that it keeps.
fn go_on(server: &str, keeps: bool, path: &str, request: &str, answered: impl Fn(&str)) {
    let close = if keeps { "" } else { "connection: close\r\n" };
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{close}");
    let request = format!("{head}content-length: {}\r\n\r\n{request}", request.len());
    let mut kept = None;
    loop {
        let stream = kept.take().map_or_else(|| TcpStream::connect(server).map(BufReader::new), Ok);
        let Ok(mut stream) = stream else { return };
        if let Outcome::Answered { body, closes } = exchange(&mut stream, &request) {
            answered(&body);
            kept = Some(stream).filter(|_| keeps && !closes);
        }
    }
}

fn run_request() -> RunRequest {
    RunRequest {
        plan: "first".to_owned(),
        user: Some(run_request::User::UserId(7)),
        candidates: Some(Rows { ids: vec![1, 2], columns: Vec::new() }),
        ..RunRequest::default()
    }
}

fn is_answer(answer: &RunManyResponse, place: u64) {
    assert_eq!(answer.place, place);
    assert!(matches!(answer.result, Some(run_many_response::Result::Response(_))), "{answer:?}");
}

/// A call of `RunMany`: its client, the sender of its requests, and its answers.
type OpenCall = (PlansClient<Channel>, mpsc::Sender<RunRequest>, Streaming<RunManyResponse>);

/// Two connections with two calls each.
async fn open_calls(url: &str) -> Vec<OpenCall> {
    let mut calls = Vec::new();
    for _ in 0..2 {
        let client =
            PlansClient::new(Endpoint::from_shared(url.to_owned()).unwrap().connect().await.unwrap());
        for _ in 0..2 {
            let (sender, mut requests) = mpsc::channel(4);
            let requests = poll_fn(move |cx| requests.poll_recv(cx));
            let answers = client.clone().run_many(requests).await.unwrap().into_inner();
            calls.push((client.clone(), sender, answers));
        }
    }
    calls
}

/// Sends requests until the call ends. Those that the server still takes are answered in order, from this place on, and
/// the end names those that it does not take.
async fn ends_in_order((mut client, sender, mut answers): OpenCall, mut place: u64) {
    let end = loop {
        sender.send(run_request()).await.unwrap_or_default();
        match answers.message().await {
            Ok(answer) => is_answer(&answer.expect("the client has not ended the call"), place),
            Err(end) => break end,
        }
        place += 1;
    };
    assert_eq!(end.code(), Code::Unavailable, "{end}");
    assert!(end.message().contains("requests that have no response"), "{end}");
    // The connection takes no more calls as soon as the client knows of its end.
    let refused = loop {
        match client.run(run_request()).await {
            Ok(answer) => assert!(!answer.into_inner().version.is_empty()),
            Err(refused) => break refused,
        }
    };
    assert!(![Code::Unknown, Code::DataLoss].contains(&refused.code()), "{refused}");
}

#[test]
fn no_accepted_request_is_lost_while_clients_go_on_during_a_shutdown() {
    let folder = empty("serve_shutdown");
    project(&folder, "");
    let options = ["--data", "store", "--anonymous", "admin", "--grace", "10m"];
    let mut server = Server::begin_at(&folder, &Server::own_address(), &options);
    let (url, address) = (server.url.clone(), server.url.strip_prefix("http://").unwrap().to_owned());
    let dataset = json!({ "config": "columns: [{name: id, column_type: sampler, sampler_type: uuid, params: {}}]", "rows": 2 });
    let (one_by_one, kept, accepted) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let run = "/v1/plans/first/run";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let count = |of: &AtomicUsize, body: &str| {
        assert!(body.contains("\"price\"") && body.trim_end().ends_with('}'), "{body}");
        of.fetch_add(1, Ordering::Relaxed);
    };
    std::thread::scope(|threads| {
        threads.spawn(|| go_on(&address, false, run, FIRST, |body| count(&one_by_one, body)));
        threads.spawn(|| go_on(&address, true, run, FIRST, |body| count(&kept, body)));
        threads.spawn(|| {
            go_on(&address, false, "/v1/datasets", &dataset.to_string(), |body| {
                let job: Value = serde_json::from_str(body).unwrap();
                accepted.lock().unwrap().push(job["id"].as_str().unwrap().to_owned());
            });
        });
        runtime.block_on(async {
            let mut calls = open_calls(&url).await;
            for place in 0..3 {
                for (_, sender, answers) in &mut calls {
                    sender.send(run_request()).await.unwrap();
                    is_answer(&answers.message().await.unwrap().unwrap(), place);
                }
            }
            soon(|| {
                let are_busy = [&one_by_one, &kept].iter().all(|count| count.load(Ordering::Relaxed) > 20);
                (are_busy && accepted.lock().unwrap().len() > 1).then_some(())
            });
            signal(&server, Signal::TERM);
            // Nobody new is let in.
            soon(|| TcpStream::connect(&address).is_err().then_some(()));
            for call in calls {
                ends_in_order(call, 3).await;
            }
        });
    });
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    drop(runtime);

    are_built(&folder, &options, accepted.into_inner().unwrap());
}

/// The next server builds all datasets that the one before it accepted.
fn are_built(folder: &Path, options: &[&str], accepted: Vec<String>) {
    let server = Server::begin_with(folder, options);
    let address = server.url.strip_prefix("http://").unwrap();
    for id in accepted {
        let state = || {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET /v1/datasets/{id} HTTP/1.0\r\nhost: localhost\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.0 200"), "{id}: {answer}");
            serde_json::from_str::<Value>(body).unwrap()["state"].as_str().unwrap().to_owned()
        };
        let ended = soon(|| Some(state()).filter(|state| !["queued", "running"].contains(&&**state)));
        assert_eq!(ended, "complete", "{id}");
    }
    assert_eq!(server.end(Signal::TERM), Some(0));
}
