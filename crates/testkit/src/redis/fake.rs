//! A server that says what a test tells it to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Listens on a free port and leads each connection as its script says; it ends with its owner.
pub struct FakeServer {
    port: u16,
    stage: Arc<Stage>,
    listener: Option<JoinHandle<()>>,
}

struct Stage {
    ended: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
    actors: Mutex<Vec<JoinHandle<()>>>,
    connections: AtomicUsize,
}

/// One connection, as a script sees it.
pub struct Conversation {
    /// Its number: 0 is the first.
    pub number: usize,
    reader: BufReader<TcpStream>,
}

impl FakeServer {
    /// A server that plays `script` on each connection, which it closes at the script's end.
    #[allow(clippy::disallowed_methods, reason = "a server that blocks, apart from the runtime under test")]
    pub fn start(script: impl Fn(&mut Conversation) + Send + Sync + 'static) -> FakeServer {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let stage = Arc::new(Stage {
            ended: AtomicBool::new(false),
            streams: Mutex::default(),
            actors: Mutex::default(),
            connections: AtomicUsize::new(0),
        });
        let script = Arc::new(script);
        let shared = Arc::clone(&stage);
        let listener = std::thread::spawn(move || {
            for stream in socket.incoming() {
                let stream = stream.unwrap();
                if shared.ended.load(Ordering::SeqCst) {
                    return;
                }
                stream.set_nodelay(true).unwrap();
                shared.streams.lock().unwrap().push(stream.try_clone().unwrap());
                let number = shared.connections.fetch_add(1, Ordering::SeqCst);
                let script = Arc::clone(&script);
                let actor = std::thread::spawn(move || {
                    let mut conversation =
                        Conversation { number, reader: BufReader::new(stream.try_clone().unwrap()) };
                    script(&mut conversation);
                    let _ = stream.shutdown(Shutdown::Both);
                });
                shared.actors.lock().unwrap().push(actor);
            }
        });
        FakeServer { port, stage, listener: Some(listener) }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.stage.connections.load(Ordering::SeqCst)
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.stage.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        for stream in self.stage.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for actor in self.stage.actors.lock().unwrap().drain(..) {
            let _ = actor.join();
        }
    }
}

impl Conversation {
    /// Answers a client's `HELLO`; `false` when the client is gone.
    pub fn greet(&mut self) -> bool {
        self.command().is_some() && self.say("%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n")
    }

    /// The next command, when it has come; `None` when the client is gone.
    pub fn command(&mut self) -> Option<Vec<String>> {
        let count = self.number_after('*')?;
        (0..count).map(|_| self.word()).collect()
    }

    /// Sends bytes as they are; `false` when the client is gone.
    pub fn say(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.reader.get_mut().write_all(bytes.as_ref()).is_ok()
    }

    /// The body of the next HTTP request, when it has come; `None` when the client is gone.
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

    /// Answers an HTTP request; `false` when the client is gone.
    pub fn http_reply(&mut self, status: &str, body: &str) -> bool {
        self.say(format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
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
