//! The memory of clients that listen to events while nothing happens.

use std::future::pending;
use std::time::Duration;

use anabranch_recipe::{Executor, Functions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::allocated::held;
use crate::{Service, Settings};

/// The most bytes of one listener, without the buffers of the system. They are the same on every run.
const EACH_MOST: i64 = 40 << 10;

/// Only a failing test waits this long.
#[allow(clippy::disallowed_methods, reason = "real sockets need a real bound")]
async fn soon<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(600), wait).await.expect("it takes too long")
}

/// A client that has received the first bytes of its events.
async fn listener(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let (mut answer, mut piece) = (Vec::new(), [0; 256]);
    while !answer.ends_with(b":\n\n\r\n") {
        let len = soon(stream.read(&mut piece)).await.unwrap();
        answer.extend_from_slice(&piece[..len]);
        assert!(len > 0, "{}", String::from_utf8_lossy(&answer));
    }
    stream
}

/// All of it happens on one thread, whose allocations are counted.
#[tokio::test]
async fn an_idle_listener_takes_little_memory() {
    const COUNT: usize = 64;
    let service = Service::new(Executor::in_memory(Functions::builtin()).unwrap(), Settings::default());
    let sockets = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = sockets.local_addr().unwrap().to_string();
    let clients = async {
        // The first ones fill what all share.
        let mut streams = vec![listener(&address).await, listener(&address).await];
        streams.reserve(COUNT);
        let before = held();
        for _ in 0..COUNT {
            streams.push(listener(&address).await);
        }
        (held() - before) / COUNT as i64
    };
    let each = tokio::select! {
        each = clients => each,
        _ = service.serve(sockets, pending()) => unreachable!("nobody stops it"),
    };
    assert!(each < EACH_MOST, "{each} bytes");
}
