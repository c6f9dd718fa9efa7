//! Real Redis servers, a scripted server, and a proxy that delays replies.

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
pub use fake::{Connection, FakeServer};
pub use proxy::DelayProxy;

/// No server takes longer than this to become ready, however busy the machine is.
const LONGEST_START: Duration = Duration::from_secs(120);

/// A `redis-server` process on a free local port. Dropping it kills the process.
pub struct RedisServer {
    port: u16,
    folder: PathBuf,
    options: Vec<String>,
    child: Option<Child>,
}

impl RedisServer {
    /// Starts an empty server.
    pub fn start() -> RedisServer {
        RedisServer::start_with(&[])
    }

    /// Starts a server with further options, one word per element: `["--requirepass", "secret"]`.
    pub fn start_with(options: &[&str]) -> RedisServer {
        static SERVERS: AtomicU32 = AtomicU32::new(0);
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("anabranch-redis-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let options = options.iter().map(|&option| option.to_owned()).collect();
        // Another process may take the port before the server listens on it.
        let mut server = RedisServer { port: 0, folder, options, child: None };
        for _ in 0..5 {
            server.port = free_port();
            if server.launch() {
                return server;
            }
        }
        panic!("redis-server did not start in 5 attempts; its options were {:?}", server.options);
    }

    /// The port that the server listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and port, such as `127.0.0.1:6379`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The working folder of the server, for files that it needs.
    pub fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// Kills the process, as in a crash.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    /// Kills the process if it runs, and starts it again on the same port with the data that it saved.
    pub fn restart(&mut self) {
        self.kill();
        assert!(self.launch(), "redis-server did not start again on port {}", self.port);
    }

    /// Suspends the process (SIGSTOP). Its connections stay open.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes a suspended process (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Sends a command and returns the reply; the elements of an array are separated by spaces.
    pub fn command(&self, words: &[&str]) -> String {
        command(self.port, words).unwrap()
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("the server is running");
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    /// Starts the process and returns whether it answers.
    fn launch(&mut self) -> bool {
        let child = Command::new("redis-server")
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(&self.folder)
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is on the path; `./dev test` installs it");
        self.child = Some(child);
        let limit = StartLimit::new();
        while limit.is_left() {
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

/// The end of the time that another process has to become ready.
struct StartLimit(Instant);

#[allow(clippy::disallowed_methods, reason = "it waits for another process, which has a real clock")]
impl StartLimit {
    fn new() -> StartLimit {
        StartLimit(Instant::now() + LONGEST_START)
    }

    fn is_left(&self) -> bool {
        Instant::now() < self.0
    }
}

/// Waits 10 ms before another attempt.
#[allow(clippy::disallowed_methods, reason = "it waits for another process, which has a real clock")]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Sends a command to the server at `port`.
fn command(port: u16, words: &[&str]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(LONGEST_START))?;
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(text.as_bytes())?;
    reply(&mut BufReader::new(stream))
}

/// Reads one reply of the protocol RESP2.
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
