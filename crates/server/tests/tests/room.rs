//! Connections that are idle, and those that make room for others.

use std::time::Duration;

use anabranch_server::Settings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::deriva_wire::Deriva;
use crate::stalls::{HOUR, SECOND, answer, from_elsewhere, part_of, start};
use crate::support::{Gate, OpenOnDrop, Server, beside, soon, until};

/// Others get in, whatever one client does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_does_not_take_all_connections() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let settings = Settings { connections_most: 8, ..Settings::default() };
    let server = Server::on_test_time(gate.functions(), settings).await;
    let deriva = Deriva(server.channel().await);
    let leaf = deriva.leaf(vec![1; 4096]).await;
    let slow = deriva.recipe("gate", &[&leaf]).await;
    drop(deriva);
    until(|| server.service.load().connections == 0).await;
    let slow: String = slow.iter().map(|byte| format!("{byte:02x}")).collect();
    let request = format!("GET /v1/recipes/{slow}/value HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let mut busy = Vec::new();
    for calls in 1..=7 {
        let mut stream = server.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        until(|| server.service.load().calls == calls).await;
        busy.push(stream);
    }
    let mut refused = server.connect().await;
    assert_eq!(soon(answer(&mut refused)).await, "");
    let mut other = from_elsewhere(&server).await;
    let health = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    other.write_all(health).await.unwrap();
    assert!(soon(answer(&mut other)).await.starts_with("HTTP/1.1 200"));
    // A connection that is idle makes room for another one of its client.
    gate.open();
    let mut head = [0; 12];
    soon(busy[0].read_exact(&mut head)).await.unwrap();
    until(|| server.service.load().calls == 0).await;
    let mut again = server.connect().await;
    again.write_all(health).await.unwrap();
    assert!(soon(answer(&mut again)).await.starts_with("HTTP/1.1 200"));
}

/// HTTP/2 that says hello and no more.
async fn idle(server: &Server) -> TcpStream {
    let mut stream = server.connect().await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    stream
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let server = start(Settings::default()).await;
    let mut idle = idle(&server).await;
    // Its settings are answered, so it has been heard.
    let mut heard = [0; 9];
    soon(idle.read_exact(&mut heard)).await.unwrap();
    let client = server.client().await;
    client.put("before").await.unwrap();
    let mut rest = Vec::new();
    let _ = server.clock.steps(SECOND, idle.read_to_end(&mut rest)).await;
    until(|| server.service.load().connections == 0).await;
    client.put("a client of gRPC connects again by itself").await.unwrap();
}

/// A connection whose first request was answered.
async fn healthy(server: &Server) -> TcpStream {
    let mut stream = server.connect().await;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut head = [0; 12];
    soon(stream.read_exact(&mut head)).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn the_longest_idle_connection_makes_room() {
    let settings = Settings { connections_most: 3, ..Settings::default() };
    let server = start(settings).await;
    let silent = server.connect().await;
    until(|| server.service.load().connections == 1).await;
    server.clock.advance(Duration::from_millis(1));
    let idle = idle(&server).await;
    until(|| server.service.load().connections == 2).await;
    server.clock.advance(Duration::from_millis(1));
    let stalled = part_of(&server, "POST /v1/blobs", 1000, 10).await;
    until(|| server.service.load().calls == 1).await;
    // They are far from any timeout, but in the way of others.
    let mut others = Vec::new();
    for mut gone in [silent, idle, stalled] {
        server.clock.advance(Duration::from_millis(1));
        others.push(healthy(&server).await);
        soon(answer(&mut gone)).await;
    }
}

/// Reads the events of a stream up to the next comment.
async fn until_comment(stream: &mut TcpStream) {
    let (mut read, mut piece) = (Vec::new(), [0; 256]);
    while !read.ends_with(b":\n\n\r\n") {
        let len = soon(stream.read(&mut piece)).await.unwrap();
        assert!(len > 0, "{}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&piece[..len]);
    }
}

/// A listener waits for the server, not the server for it.
#[tokio::test]
async fn listeners_make_room_last() {
    let server = start(Settings { connections_most: 3, ..Settings::default() }).await;
    let mut listener = server.connect().await;
    listener.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    until_comment(&mut listener).await;
    server.clock.advance(2 * SECOND);
    let silent = server.connect().await;
    until(|| server.service.load().connections == 2).await;
    server.clock.advance(2 * SECOND);
    let stalled = part_of(&server, "POST /v1/blobs", 1000, 10).await;
    until(|| server.service.load().calls == 2).await;
    let mut others = Vec::new();
    for mut gone in [silent, stalled] {
        server.clock.advance(2 * SECOND);
        others.push(healthy(&server).await);
        soon(answer(&mut gone)).await;
    }
    server.clock.advance(15 * SECOND);
    until_comment(&mut listener).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_worked_for_stays() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let settings = Settings { connections_most: 1, ..Settings::default() };
    let server = Server::on_test_time(gate.functions(), settings).await;
    let deriva = Deriva(server.channel().await);
    let leaf = deriva.leaf(vec![1; 4096]).await;
    let slow = deriva.recipe("gate", &[&leaf]).await;
    let get = beside(async move { (deriva.get(&slow).await, deriva) });
    until(|| server.executor.status().computing == 1).await;
    let mut other = part_of(&server, "POST /v1/blobs", 10, 10).await;
    let waits = beside(async move { answer(&mut other).await });
    server.clock.advance(HOUR);
    gate.open();
    let (got, deriva) = soon(get.done()).await;
    assert_eq!(got.unwrap(), vec![1; 4096]);
    // It is idle now, and the other one waits.
    let said = server.clock.steps(Duration::from_millis(10), waits.done()).await;
    assert!(said.starts_with("HTTP/1.1 201"), "{said}");
    drop(deriva);
}
