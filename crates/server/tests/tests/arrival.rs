//! The arrival of requests: heads that take long, time that passes before a handler runs, and shutdowns in between.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::Clock as _;
use anabranch_recipe::Functions;
use anabranch_server::{Client, ServerAddress, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::access::{GuardedServer, bearer, guarded};
use crate::guard::send;
use crate::plans::{PROJECT, Shop};
use crate::support::{Gate, OpenOnDrop, Server, beside, soon, until};

const SECOND: Duration = Duration::from_secs(1);
const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// The answer to a request on a connection that the client keeps.
async fn is_healthy(stream: &mut TcpStream) -> String {
    stream.write_all(HEALTH).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nok\n") {
        let mut piece = [0; 1024];
        let read = soon(stream.read(&mut piece)).await.unwrap();
        assert!(read > 0, "the connection ended after {:?}", String::from_utf8_lossy(&answer));
        answer.extend(&piece[..read]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    String::from_utf8(answer).unwrap()
}

/// Waits until a server, whose time stands still, shuts down. It says so to a client that keeps its connection. A client
/// that connected again and again would be slower than a busy machine allows, and take connections from others.
async fn shuts_down(mut kept: TcpStream) {
    while !is_healthy(&mut kept).await.contains("connection: close") {}
}

#[tokio::test]
async fn a_head_that_stalls_ends_its_connection() {
    let idle_timeout = 1_000 * SECOND;
    let settings = Settings { idle_timeout, ..Settings::default() };
    let server = Server::on_test_time(Functions::builtin(), settings).await;
    // The first head of a connection, and a later one.
    for earlier in [0, 2] {
        let mut stream = server.connect().await;
        for _ in 0..earlier {
            is_healthy(&mut stream).await;
        }
        stream.write_all(&HEALTH[..20]).await.unwrap();
        let mut rest = Vec::new();
        let began = server.clock.now();
        // Nothing is said to a client that did not ask for anything.
        let _ = server.clock.steps(SECOND / 10, stream.read_to_end(&mut rest)).await;
        assert_eq!(rest, b"");
        assert!(
            server.clock.now() - began < idle_timeout / 2,
            "the connection was closed because it was idle"
        );
        until(|| server.service.load().connections == 0).await;
    }
}

#[tokio::test]
async fn a_connection_without_requests_stays_open_for_its_time() {
    let server = Server::on_test_time(Functions::builtin(), Settings::default()).await;
    let mut stream = server.connect().await;
    for _ in 0..3 {
        is_healthy(&mut stream).await;
        for _ in 0..200 {
            server.clock.advance(SECOND);
            tokio::task::yield_now().await;
        }
    }
    let mut rest = Vec::new();
    let _ = server.clock.steps(SECOND, stream.read_to_end(&mut rest)).await;
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn a_request_waits_for_a_slot_no_longer_than_its_client() {
    let gate = Gate::default();
    let settings = Settings { in_flight_most: 1, ..Settings::default() };
    let GuardedServer { server, tokens: [local, ..] } = guarded("patience", settings, gate.functions()).await;
    let _open = OpenOnDrop(gate.clone());
    let address = ServerAddress { token: Some(local.clone()), ..ServerAddress::new(&server.url) };
    let client = Client::connect_to(&address).await.unwrap();
    let leaf = client.put("a").await.unwrap().address;
    let draft = anabranch_recipe::Draft {
        function: "gate/1.0.0".parse().unwrap(),
        inputs: vec![anabranch_recipe::DraftInput::Address(leaf)],
        params: Default::default(),
    };
    let added = client.add_all(&[draft], anabranch_recipe::UnknownFunction::Refuse).await.unwrap();
    let address = added[0].address;
    let holder = beside(async move { client.get(address, 0..u64::MAX, None).await.map(|_| ()) });
    until(|| server.executor.status().computing == 1).await;
    let token = bearer(&local);
    let headers = [token.as_str(), "request-timeout: 2s"];
    let waiting = send(&server, "GET /v1/refs", &headers, b"");
    let (status, body) = server.clock.steps(Duration::from_millis(50), waiting).await;
    assert_eq!(status, 504, "{body}");
    assert!(body.contains("the time of the request passed while it waited"), "{body}");
    gate.open();
    holder.done().await.unwrap();
}

/// Waits until the server accepts no more connections.
async fn refused(server: &Server) {
    let address = server.url.strip_prefix("http://").unwrap();
    loop {
        match TcpStream::connect(address).await {
            // A connection that is made while the listener is closed is reset.
            Err(error)
                if [ErrorKind::ConnectionRefused, ErrorKind::ConnectionReset].contains(&error.kind()) =>
            {
                return;
            }
            // One at a time, so that they take no descriptors from other tests: the server closes a connection whose
            // client has nothing to say.
            Ok(mut stream) => {
                let _ = stream.shutdown().await;
                let _ = stream.read(&mut [0]).await;
            }
            // Other tests may have all descriptors.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

/// Sends bytes without a turn for the runtime, so that the server knows nothing of them yet.
fn send_now(stream: &mut std::net::TcpStream, bytes: &[u8]) {
    std::io::Write::write_all(stream, bytes).unwrap();
}

async fn rest(stream: std::net::TcpStream) -> String {
    stream.set_nonblocking(true).unwrap();
    let mut rest = Vec::new();
    soon(TcpStream::from_std(stream).unwrap().read_to_end(&mut rest)).await.unwrap();
    String::from_utf8(rest).unwrap()
}

/// The runtime learns of connections and bytes only some time after the system has them.
#[tokio::test]
async fn a_request_that_the_runtime_does_not_know_of_is_answered_during_a_shutdown() {
    for round in 0..20 {
        // Time stands still, so that no wait ends early.
        let mut server = Server::on_test_time(Functions::builtin(), Settings::default()).await;
        let address = server.url.strip_prefix("http://").unwrap().to_owned();
        let connect = || std::net::TcpStream::connect(&address).unwrap();
        // A connection that has had a request, and one that has sent a part of the next one.
        let [mut used, mut part] = [connect(), connect()];
        for stream in [&mut used, &mut part] {
            stream.set_nonblocking(true).unwrap();
            let mut warm = TcpStream::from_std(stream.try_clone().unwrap()).unwrap();
            is_healthy(&mut warm).await;
            drop(warm);
            stream.set_nonblocking(false).unwrap();
        }
        send_now(&mut part, &HEALTH[..10]);
        let mut new: Vec<std::net::TcpStream> = (0..round).map(|_| connect()).collect();
        new.iter_mut().chain([&mut used]).for_each(|stream| send_now(stream, HEALTH));
        server.stop();
        for stream in new.into_iter().chain([used]) {
            let answer = rest(stream).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            assert!(answer.contains("connection: close"), "{answer}");
        }
        // The idle connection is not kept for its next request, but for the rest of one.
        server.clock.advance(SECOND / 2);
        (0..round).for_each(|_| server.clock.advance(SECOND / 100));
        send_now(&mut part, &HEALTH[10..]);
        let answer = rest(part).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(server.served().await.cut, 0);
    }
}

/// Half a head is not a request: the server waits for the rest for a short time only.
#[tokio::test]
async fn half_a_head_does_not_hold_a_shutdown() {
    let settings = Settings { grace: 1_000 * SECOND, ..Settings::default() };
    let mut server = Server::on_test_time(Functions::builtin(), settings).await;
    let mut stream = server.connect().await;
    is_healthy(&mut stream).await;
    stream.write_all(&HEALTH[..20]).await.unwrap();
    server.stop();
    let (clock, began) = (Arc::clone(&server.clock), server.clock.now());
    let report = clock.steps(SECOND / 10, server.served()).await;
    assert_eq!(report.cut, 0, "no call was cut");
    assert!(clock.now() - began < 500 * SECOND, "the shutdown took the whole grace period");
}

#[tokio::test]
async fn a_value_is_waited_for_no_longer_than_the_header_says() {
    let gate = Gate::default();
    let server = Server::on_test_time(gate.functions(), Settings::default()).await;
    let _open = OpenOnDrop(gate.clone());
    let leaf = server.executor.put("a").await.unwrap().address;
    let draft = anabranch_recipe::Draft {
        function: "gate/1.0.0".parse().unwrap(),
        inputs: vec![anabranch_recipe::DraftInput::Address(leaf)],
        params: Default::default(),
    };
    let added = server.client().await.add_all(&[draft], anabranch_recipe::UnknownFunction::Refuse).await;
    let line = format!("GET /v1/recipes/{}/value", added.unwrap()[0].address);
    let asked = send(&server, &line, &["request-timeout: 2s"], b"");
    let (status, body) = server.clock.steps(Duration::from_millis(50), asked).await;
    assert_eq!(status, 504, "{body}");
    assert!(body.contains("deadline_exceeded"), "{body}");
    let (status, body) = send(&server, &line, &["request-timeout: soon"], b"").await;
    assert!(status == 400 && body.contains("Request-Timeout"), "{status} {body}");
    gate.open();
    assert_eq!(send(&server, &line, &["request-timeout: 1h"], b"").await, (200, "a".to_owned()));
}

/// A load balancer that has connected asks about a server that was told to stop, while another request holds it.
#[tokio::test]
async fn a_server_that_shuts_down_is_not_ready() {
    let gate = Gate::default();
    let mut server = Server::on_test_time(gate.functions(), Settings::default()).await;
    let _open = OpenOnDrop(gate.clone());
    let client = server.client().await;
    let leaf = client.put("a").await.unwrap().address;
    let draft = anabranch_recipe::Draft {
        function: "gate/1.0.0".parse().unwrap(),
        inputs: vec![anabranch_recipe::DraftInput::Address(leaf)],
        params: Default::default(),
    };
    let added = client.add_all(&[draft], anabranch_recipe::UnknownFunction::Refuse).await.unwrap();
    let address = added[0].address;
    let holder = beside(async move { client.get(address, 0..u64::MAX, None).await.map(|_| ()) });
    until(|| server.executor.status().computing == 1).await;

    let ready = &b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n"[..];
    let mut kept = server.connect().await;
    let mut begun = server.connect().await;
    for stream in [&mut kept, &mut begun] {
        is_healthy(stream).await;
    }
    begun.write_all(&ready[..20]).await.unwrap();
    let new = server.connect().await;
    until(|| server.service.load().connections == 4).await;
    server.stop();
    soon(refused(&server)).await;
    for (mut stream, rest) in [(kept, ready), (begun, &ready[20..]), (new, ready)] {
        stream.write_all(rest).await.unwrap();
        let mut answer = Vec::new();
        soon(stream.read_to_end(&mut answer)).await.unwrap();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
    gate.open();
    holder.done().await.unwrap();
    assert_eq!(server.served().await.cut, 0);
}

/// A body that is still on its way when the server is told to stop belongs to an accepted request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_arrives_during_a_shutdown_is_answered() {
    // Time stands still, so that neither the grace period nor the time for a body passes on a busy machine.
    let mut shop = Shop::on_test_time(PROJECT, &Arc::default()).await;
    let server = &shop.http.server;
    let body = br#"{"user_id": 7, "candidates": [101]}"#;
    let mut kept = server.connect().await;
    is_healthy(&mut kept).await;
    until(|| server.service.load().calls == 0).await;
    let mut stream = server.connect().await;
    let head = format!(
        "POST /v1/plans/rank/run HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    until(|| server.service.load().calls == 1).await;
    shop.http.server.stop();
    shuts_down(kept).await;
    stream.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    assert_eq!(shop.http.server.served().await.cut, 0);
}
