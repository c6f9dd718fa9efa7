//! More requests than the server works on, and clients that take more than their share.

use std::time::Duration;

use anabranch_recipe::Functions;
use anabranch_server::{Client, Code, ServerAddress, Settings, Token};
use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::access::{GuardedServer, bearer, guarded};
use crate::guard::send;
use crate::support::{Beside, Gate, OpenOnDrop, Server, beside, soon, until};

async fn client(server: &Server, token: &Token) -> Client {
    let address = ServerAddress { token: Some(token.clone()), ..ServerAddress::new(&server.url) };
    Client::connect_to(&address).await.unwrap()
}

/// A call that holds its slot until the gate opens.
async fn gated(server: &Server, token: &Token, text: &str) -> Beside<Option<Code>> {
    let client = client(server, token).await;
    let input = client.put(text.to_owned()).await.unwrap().address;
    let inputs = vec![anabranch_recipe::DraftInput::Address(input)];
    let draft = anabranch_recipe::Draft {
        function: "gate/1.0.0".parse().unwrap(),
        inputs,
        params: Default::default(),
    };
    let added = client.add_all(&[draft], anabranch_recipe::UnknownFunction::Refuse).await.unwrap();
    let address = added[0].address;
    beside(async move { client.get(address, 0..u64::MAX, None).await.err().and_then(|error| error.code()) })
}

#[tokio::test]
async fn a_client_with_more_than_its_share_leaves_room_for_others() {
    let gate = Gate::default();
    let settings = Settings { in_flight_most: 2, queue_most: 1, ..Settings::default() };
    let GuardedServer { server, tokens: [local, _, run, admin] } =
        guarded("share", settings, gate.functions()).await;
    let _open = OpenOnDrop(gate.clone());
    let metric = async |line: &str| {
        let page = send(&server, "GET /metrics", &[&bearer(&local)], b"").await.1;
        page.lines().any(|found| found == line)
    };
    let first = gated(&server, &run, "a").await;
    soon(async { while !metric("anabranch_requests_in_flight 1").await {} }).await;
    // The second of this client waits, the third is too much.
    let headers = [bearer(&run)];
    let headers = [headers[0].as_str()];
    let waiting = send(&server, "GET /v1/refs", &headers, b"");
    let refused = async {
        soon(async { while !metric("anabranch_requests_queued 1").await {} }).await;
        let refused = received(&server, "GET /v1/refs", &run).await;
        // Another client is served meanwhile.
        assert_eq!(send(&server, "GET /v1/refs", &[&bearer(&admin)], b"").await.0, 200);
        let second = gated(&server, &admin, "b").await;
        soon(async { while !metric("anabranch_requests_in_flight 2").await {} }).await;
        let full = received(&server, "GET /v1/refs", &local).await;
        for (line, expected) in [("GET /healthz", 200), ("GET /readyz", 200)] {
            assert_eq!(send(&server, line, &[], b"").await.0, expected);
        }
        gate.open();
        (refused, full, second)
    };
    let (waiting, (refused, full, second)) = tokio::join!(waiting, refused);
    assert_eq!(waiting.0, 200);
    assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("\r\nretry-after: 1\r\n"), "{refused}");
    assert!(refused.contains("more requests under way than its share"), "{refused}");
    assert!(full.starts_with("HTTP/1.1 503 ") && full.contains("\r\nretry-after: 1\r\n"), "{full}");
    assert_eq!((first.done().await, second.done().await), (None, None));
    assert!(metric("anabranch_requests_shed_total{by=\"client\"} 1").await);
    assert!(metric("anabranch_requests_shed_total{by=\"server\"} 1").await);
}

/// The time of a request passes while it waits for a slot, wherever its client gave it.
#[tokio::test]
async fn a_request_waits_for_a_slot_no_longer_than_it_has_time() {
    for (line, header) in [
        ("GET /v1/recipes/any/value?timeout=150ms", "X-Request-Id: query"),
        ("GET /v1/refs", "Request-Timeout: 150ms"),
    ] {
        let gate = Gate::default();
        let (wait, bounds) = (Duration::from_secs(3600), Settings::default());
        let settings = Settings { in_flight_most: 2, queue_most: 2, queue_wait: wait, ..bounds };
        let GuardedServer { server, tokens: [local, _, run, _] } =
            guarded("slot_time", settings, gate.functions()).await;
        let _open = OpenOnDrop(gate.clone());
        let metric = async |line: &str| {
            let page = send(&server, "GET /metrics", &[&bearer(&local)], b"").await.1;
            page.lines().any(|found| found == line)
        };
        let held = gated(&server, &run, "a").await;
        soon(async { while !metric("anabranch_requests_in_flight 1").await {} }).await;
        let token = bearer(&run);
        let headers = [token.as_str(), header];
        let waiting = send(&server, line, &headers, b"");
        let pass = async {
            soon(async { while !metric("anabranch_requests_queued 1").await {} }).await;
            server.clock.advance(Duration::from_millis(150));
        };
        let ((status, body), ()) = tokio::join!(async { soon(waiting).await }, pass);
        assert_eq!(status, 504, "{line}: {body}");
        gate.open();
        assert_eq!(held.done().await, None);
    }
}

/// A blob of `len` bytes on its way, of which `sent` are sent.
async fn blob(server: &Server, token: &Token, len: usize, sent: usize) -> TcpStream {
    let mut stream = server.connect().await;
    let head = format!(
        "POST /v1/blobs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{}\r\ncontent-length: {len}\r\n\r\n",
        bearer(token)
    );
    stream.write_all(&[head.as_bytes(), &vec![b' '; sent]].concat()).await.unwrap();
    stream
}

/// The whole answer to a request without a body.
async fn received(server: &Server, line: &str, token: &Token) -> String {
    let mut stream = server.connect().await;
    let head =
        format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{}\r\n\r\n", bearer(token));
    stream.write_all(head.as_bytes()).await.unwrap();
    answer(&mut stream).await
}

async fn answer(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_client_that_dribbles_large_blobs_leaves_room_for_others() {
    let hour = Duration::from_secs(3600);
    let settings = Settings { uploads_most: 4, stall_timeout: hour, ..Settings::default() };
    let uploads_wait = settings.uploads_wait;
    let GuardedServer { server, tokens: [local, _, run, _] } =
        guarded("dribble", settings, Functions::builtin()).await;
    let metric = async |line: &str| {
        let page = send(&server, "GET /metrics", &[&bearer(&local)], b"").await.1;
        page.lines().any(|found| found == line)
    };
    // The last byte is the one that makes a blob large, so the server has read all of them.
    let (len, sent) = (100_000, (64 << 10) + 1);
    let dribble = async || blob(&server, &run, len, sent).await;
    let mut placed = [dribble().await, dribble().await];
    until(|| server.service.load().uploads == 2).await;
    let mut queued = [dribble().await, dribble().await];
    soon(async { while !metric("anabranch_uploads_queued 2").await {} }).await;
    assert_eq!(server.service.load().uploads, 2, "half of the places");
    let mut other = blob(&server, &local, len, len).await;
    assert!(answer(&mut other).await.starts_with("HTTP/1.1 201"));
    server.clock.advance(uploads_wait);
    for stream in &mut queued {
        let said = answer(stream).await;
        assert!(said.starts_with("HTTP/1.1 503") && said.contains("retry-after: 1"), "{said}");
        assert!(said.contains("no place for another large blob"), "{said}");
    }
    for stream in &mut placed {
        stream.write_all(&vec![b' '; len - sent]).await.unwrap();
        assert!(answer(stream).await.starts_with("HTTP/1.1 20"), "it goes on");
    }
    until(|| server.service.load().uploads == 0).await;
}

#[tokio::test]
async fn heads_are_bounded() {
    let server = Server::start().await;
    let ask = async |head: String| {
        let mut stream = server.connect().await;
        let head = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{head}\r\n");
        // The server may answer before it has read everything.
        let _ = stream.write_all(head.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = soon(stream.read_to_end(&mut answer)).await;
        String::from_utf8_lossy(&answer).chars().skip("HTTP/1.1 ".len()).take(3).collect::<String>()
    };
    let many = |count: usize| (0..count).map(|at| format!("x-{at}: 1\r\n")).collect::<String>();
    assert_eq!(ask(many(50)).await, "200");
    assert_eq!(ask(many(200)).await, "431");
    let large = ask(format!("x: {}\r\n", "y".repeat(200 << 10))).await;
    assert!(["431", ""].contains(&large.as_str()), "{large}");
    assert_eq!(ask(String::new()).await, "200");
}

/// A head over HTTP/2 has the same bound, and its client disturbs nobody.
#[tokio::test]
async fn giant_heads_over_http2_are_refused_while_others_are_served() {
    let server = Server::start().await;
    let client = || {
        let builder = HttpClient::builder(TokioExecutor::new()).http2_only(true).clone();
        builder.build_http::<Empty<Bytes>>()
    };
    let ask = async |client: &HttpClient<HttpConnector, Empty<Bytes>>, bytes: usize| {
        let request = hyper::Request::get(format!("{}/healthz", server.url)).header("x", "y".repeat(bytes));
        let answer = soon(client.request(request.body(Empty::new()).unwrap())).await;
        answer.ok().map(|answer| answer.status().as_u16())
    };
    let (good, bad) = (client(), client());
    assert_eq!(ask(&good, 1_000).await, Some(200));
    for bytes in [200 << 10, 1 << 20, 16 << 20] {
        let (giant, small) = tokio::join!(ask(&bad, bytes), ask(&good, 1_000));
        assert!([None, Some(431)].contains(&giant), "{bytes}: {giant:?}");
        assert_eq!(small, Some(200));
    }
    assert_eq!(ask(&bad, 1_000).await, Some(200), "a new request of the same client");
}
