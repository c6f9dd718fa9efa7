//! A proxy that delays the replies of a server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Chunks of replies that a connection may hold back; the proxy reads no more until one is delivered.
const MAX_DELAYED_CHUNKS: usize = 4_096;

/// Forwards the connections to a free local port to a local server, and delays the replies by a time per connection.
/// Dropping it closes all connections.
pub struct DelayProxy {
    port: u16,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    ended: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
    pumps: Mutex<Vec<JoinHandle<()>>>,
}

impl DelayProxy {
    /// Starts a proxy for the server at `port`. `delay` maps the number of a connection, from 0, to the delay of its
    /// replies.
    #[allow(
        clippy::disallowed_methods,
        reason = "it blocks, on threads that the runtime under test does not use"
    )]
    pub fn start(port: u16, delay: impl Fn(usize) -> Duration + Send + 'static) -> DelayProxy {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let own_port = socket.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            ended: AtomicBool::new(false),
            streams: Mutex::default(),
            pumps: Mutex::default(),
        });
        let to_share = Arc::clone(&shared);
        let listener = std::thread::spawn(move || {
            for (number, client) in socket.incoming().enumerate() {
                if to_share.ended.load(Ordering::SeqCst) {
                    return;
                }
                // If the server is gone, the client sees its connection close.
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                to_share.join(client.unwrap(), server, delay(number));
            }
        });
        DelayProxy { port: own_port, shared, listener: Some(listener) }
    }

    /// The port that the proxy listens on.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Shared {
    #[allow(
        clippy::disallowed_methods,
        reason = "it blocks, on threads that the runtime under test does not use"
    )]
    fn join(&self, client: TcpStream, server: TcpStream, delay: Duration) {
        let mut streams = self.streams.lock().unwrap();
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
            streams.push(stream.try_clone().unwrap());
        }
        let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let mut pumps = self.pumps.lock().unwrap();
        pumps.push(std::thread::spawn(move || pump(from, to)));
        if delay.is_zero() {
            pumps.push(std::thread::spawn(move || pump(server, client)));
            return;
        }
        let (put, take) = sync_channel::<(Instant, Vec<u8>)>(MAX_DELAYED_CHUNKS);
        pumps.push(std::thread::spawn(move || {
            each_chunk(&server, |bytes| put.send((Instant::now() + delay, bytes.to_vec())).is_ok());
        }));
        pumps.push(std::thread::spawn(move || {
            for (due, bytes) in take {
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                if (&client).write_all(&bytes).is_err() {
                    break;
                }
            }
            let _ = client.shutdown(Shutdown::Both);
        }));
    }
}

/// Copies bytes until one side closes, then shuts the other side down.
#[allow(clippy::needless_pass_by_value, reason = "the thread owns its streams")]
fn pump(from: TcpStream, to: TcpStream) {
    each_chunk(&from, |bytes| (&to).write_all(bytes).is_ok());
    let _ = to.shutdown(Shutdown::Both);
}

fn each_chunk(mut from: &TcpStream, mut put: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !put(&buffer[..count]) {
            return;
        }
    }
}

impl Drop for DelayProxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        for stream in self.shared.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for pump in self.shared.pumps.lock().unwrap().drain(..) {
            let _ = pump.join();
        }
    }
}
