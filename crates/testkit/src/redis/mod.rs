//! Real Redis servers, one that says what a test tells it to, and a way to them that is slow.

mod cluster;
mod fake;
mod proxy;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

pub use cluster::RedisCluster;
pub use fake::{Conversation, FakeServer};
pub use proxy::DelayProxy;

/// So long no server takes for anything, however busy the machine is. Only a failing test waits as long.
const HANGS: Duration = Duration::from_secs(120);

/// A `redis-server` of its own, on a free port of this machine; it ends with its owner.
pub struct RedisServer {
    port: u16,
    folder: PathBuf,
    options: Vec<String>,
    child: Option<Child>,
}

impl RedisServer {
    /// A server with nothing in it.
    pub fn start() -> RedisServer {
        RedisServer::start_with(&[])
    }

    /// A server with more options, such as `--requirepass secret`, each word by itself.
    pub fn start_with(options: &[&str]) -> RedisServer {
        static SERVERS: AtomicU32 = AtomicU32::new(0);
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("anabranch-redis-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let options = options.iter().map(|&option| option.to_owned()).collect();
        // Somebody else may take the port between its choice and the start.
        let mut server = RedisServer { port: 0, folder, options, child: None };
        for _ in 0..5 {
            server.port = free_port();
            if server.launch() {
                return server;
            }
        }
        panic!("redis-server does not start; is something wrong with {:?}?", server.options);
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, `127.0.0.1:6379`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its folder, for files that it needs.
    pub fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    /// Starts it again on the same port, with what it had saved.
    pub fn restart(&mut self) {
        self.kill();
        assert!(self.launch(), "redis-server does not start again");
    }

    /// Stops it in its tracks; its connections stay.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Has it do a command, and tells the reply in words separated by spaces.
    pub fn command(&self, words: &[&str]) -> String {
        command(self.port, words).unwrap()
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("the server runs");
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    /// Whether it came up.
    fn launch(&mut self) -> bool {
        let child = Command::new("redis-server")
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(&self.folder)
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is needed: `./dev test` installs it");
        self.child = Some(child);
        let patience = Patience::new();
        while patience.is_left() {
            if command(self.port, &["PING"]).is_ok_and(|reply| !reply.contains("LOADING")) {
                return true;
            }
            if self.child.as_mut().unwrap().try_wait().unwrap().is_some() {
                break;
            }
            pause();
        }
        self.kill();
        false
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// How long another process is waited for.
struct Patience(Instant);

#[allow(clippy::disallowed_methods, reason = "another process is waited for, and it knows no clock of ours")]
impl Patience {
    fn new() -> Patience {
        Patience(Instant::now() + HANGS)
    }

    fn is_left(&self) -> bool {
        Instant::now() < self.0
    }
}

/// A little time for another process.
#[allow(clippy::disallowed_methods, reason = "another process is waited for, and it knows no clock of ours")]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Has the server at `port` do a command.
fn command(port: u16, words: &[&str]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(HANGS))?;
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(text.as_bytes())?;
    reply(&mut BufReader::new(stream))
}

/// Reads one reply of the old protocol.
fn reply(from: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let (kind, rest) = line.trim_end().split_at(1);
    Ok(match kind {
        "$" if rest != "-1" => {
            let mut bytes = vec![0; rest.parse::<usize>().unwrap() + 2];
            from.read_exact(&mut bytes)?;
            bytes.truncate(bytes.len() - 2);
            String::from_utf8(bytes).unwrap()
        }
        "*" if rest != "-1" => {
            let items: std::io::Result<Vec<_>> =
                (0..rest.parse::<usize>().unwrap()).map(|_| reply(from)).collect();
            items?.join(" ")
        }
        _ => rest.to_owned(),
    })
}
