//! A server whose answers are scripted by a test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Listens on a free local port and runs a script on each connection. Dropping it closes all connections.
pub struct FakeServer {
    port: u16,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    ended: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    connections: AtomicUsize,
}

/// One connection, as the script sees it.
pub struct Connection {
    /// Counted from 0.
    pub number: usize,
    reader: BufReader<TcpStream>,
}

impl FakeServer {
    /// Starts a server that runs `script` on each connection and closes the connection afterwards.
    #[allow(
        clippy::disallowed_methods,
        reason = "it blocks, on threads that the runtime under test does not use"
    )]
    pub fn start(script: impl Fn(&mut Connection) + Send + Sync + 'static) -> FakeServer {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            ended: AtomicBool::new(false),
            streams: Mutex::default(),
            threads: Mutex::default(),
            connections: AtomicUsize::new(0),
        });
        let script = Arc::new(script);
        let to_listener = Arc::clone(&shared);
        let listener = std::thread::spawn(move || {
            for stream in socket.incoming() {
                let stream = stream.unwrap();
                if to_listener.ended.load(Ordering::SeqCst) {
                    return;
                }
                stream.set_nodelay(true).unwrap();
                to_listener.streams.lock().unwrap().push(stream.try_clone().unwrap());
                let number = to_listener.connections.fetch_add(1, Ordering::SeqCst);
                let script = Arc::clone(&script);
                let thread = std::thread::spawn(move || {
                    let mut connection =
                        Connection { number, reader: BufReader::new(stream.try_clone().unwrap()) };
                    script(&mut connection);
                    let _ = stream.shutdown(Shutdown::Both);
                });
                to_listener.threads.lock().unwrap().push(thread);
            }
        });
        FakeServer { port, shared, listener: Some(listener) }
    }

    /// The port that the server listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The number of connections that were accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        for stream in self.shared.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.shared.threads.lock().unwrap().drain(..) {
            let _ = thread.join();
        }
    }
}

impl Connection {
    /// Reads the client's `HELLO` and answers it; `false` if the client is gone.
    pub fn answer_hello(&mut self) -> bool {
        self.command().is_some() && self.send("%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n")
    }

    /// Waits for the next command; `None` if the client is gone.
    pub fn command(&mut self) -> Option<Vec<String>> {
        let count = self.number_after('*')?;
        (0..count).map(|_| self.word()).collect()
    }

    /// Sends these bytes unchanged; `false` if the client is gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.reader.get_mut().write_all(bytes.as_ref()).is_ok()
    }

    /// Waits for the next HTTP request and returns its body; `None` if the client is gone.
    pub fn http_request(&mut self) -> Option<String> {
        let mut len = 0;
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                len = value.trim().parse().ok()?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut bytes = vec![0; len];
        self.reader.read_exact(&mut bytes).ok()?;
        String::from_utf8(bytes).ok()
    }

    /// Answers an HTTP request; `false` if the client is gone.
    pub fn http_reply(&mut self, status: &str, body: &str) -> bool {
        self.send(format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
    }

    fn word(&mut self) -> Option<String> {
        let len = self.number_after('$')?;
        let mut bytes = vec![0; len + 2];
        self.reader.read_exact(&mut bytes).ok()?;
        bytes.truncate(len);
        String::from_utf8(bytes).ok()
    }

    fn number_after(&mut self, sign: char) -> Option<usize> {
        let mut line = String::new();
        self.reader.read_line(&mut line).ok()?;
        line.trim_end().strip_prefix(sign)?.parse().ok()
    }
}
