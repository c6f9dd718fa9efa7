//! The process of a server under attack: its memory and its descriptors stay within bounds, and other clients are served.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use crate::recipe::empty;
use crate::recipe_served::Server;

/// What the attackers may add to the resident memory of the process: the bodies that requests may hold (half of
/// `--max-unfinished`, twice for parsed values), the windows and buffers of 200 connections, and the allocator's slack.
const MEMORY_MOST: u64 = 160 << 20;

/// Streams on one connection.
const STREAMS: u32 = 1024;
const SLOW: usize = 64;
const HEADS: usize = 32;
/// The bytes that each slow client would send.
const BODY: usize = 8 << 20;

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Header fields as literals without indexing.
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

fn http2(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let begin = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &[])].concat();
    stream.write_all(&begin).unwrap();
    stream
}

/// A connection with 1,024 requests whose bodies begin and do not go on.
fn stalled_streams(address: &str) -> TcpStream {
    let mut stream = http2(address);
    for number in 0..STREAMS {
        let path = if number % 2 == 0 { "/v1/blobs" } else { "/v1/recipes" };
        let len = if number % 2 == 0 { "8000000000" } else { "16000000" };
        let head = fields(&[
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "localhost"),
            ("content-type", if number % 2 == 0 { "application/octet-stream" } else { "application/json" }),
            ("content-length", len),
        ]);
        let id = 2 * number + 1;
        // The first window of the connection, 64 KiB, has room for all of them.
        stream.write_all(&frame(HEADERS, END_HEADERS, id, &head)).unwrap();
        stream.write_all(&frame(DATA, 0, id, &[b'['; 60])).unwrap();
    }
    stream
}

/// Heads without an end. The server may close such connections.
fn giant_heads(address: &str) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for number in 0..HEADS {
        let mut stream = if number % 2 == 0 { http2(address) } else { TcpStream::connect(address).unwrap() };
        stream.set_nonblocking(true).unwrap();
        let (begin, piece) = match number % 2 {
            0 => (
                frame(HEADERS, 0, 1, &fields(&[(":method", "GET")])),
                frame(CONTINUATION, 0, 1, &fields(&[("x-a", "x".repeat(120).as_str()); 100])),
            ),
            _ => (
                b"GET / HTTP/1.1\r\nhost: localhost\r\n".to_vec(),
                format!("x-a: {}\r\n", "x".repeat(12_000)).into_bytes(),
            ),
        };
        let _ = stream.write_all(&begin);
        for _ in 0..200 {
            if stream.write_all(&piece).is_err() {
                break;
            }
        }
        open.push(stream);
    }
    open
}

/// A client that sends a large body as fast as the server takes it, and never all of it.
struct SlowBody {
    stream: TcpStream,
    sent: usize,
}

impl SlowBody {
    fn begin(address: &str) -> SlowBody {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!(
            "POST /v1/recipes HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            BODY + 1
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        SlowBody { stream, sent: 0 }
    }

    fn go_on(&mut self) {
        while self.sent < BODY {
            match self.stream.write(&[b'['; 64 << 10][..(BODY - self.sent).min(64 << 10)]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The server has answered, and closed the connection.
                Err(_) => self.sent = BODY,
            }
        }
    }
}

/// The most memory that a process has had resident, in bytes.
fn memory(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

fn descriptors(id: u32) -> usize {
    fs::read_dir(format!("/proc/{id}/fd")).unwrap().count()
}

/// A request of a client with a token: it is answered.
fn is_served(address: &str, token: &str, line: &str, body: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {token}\r\n"
    );
    write!(stream, "{head}content-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 20"), "{line}: {answer}");
}

#[test]
fn memory_and_descriptors_are_bounded_while_others_are_served() {
    let folder = empty("serve_attack");
    let options = ["--data", "store", "--anonymous", "run", "--max-unfinished", "32MiB"];
    let server = Server::begin_with(&folder, &options);
    let (id, address) = (server.child.id(), server.url.strip_prefix("http://").unwrap());
    let token = fs::read_to_string(folder.join("store/token")).unwrap();
    let others = || {
        is_served(address, token.trim(), "GET /v1/status", "");
        is_served(address, token.trim(), "POST /v1/blobs", "hello");
    };
    others();
    let (memory_before, descriptors_before) = (memory(id), descriptors(id));
    let stalled = stalled_streams(address);
    others();
    let heads = giant_heads(address);
    others();
    let mut slow: Vec<SlowBody> = (0..SLOW).map(|_| SlowBody::begin(address)).collect();
    // The others pace the attack: each round, the server has time for them, and takes what it takes.
    for _ in 0..50 {
        slow.iter_mut().for_each(SlowBody::go_on);
        others();
    }
    let connections = 1 + heads.len() + slow.len();
    let added = descriptors(id).saturating_sub(descriptors_before);
    // Blobs that arrive may have a file each: `--max-uploads`, of which one client has half.
    assert!(added <= connections + 64 + 32, "{added} more descriptors for {connections} connections");
    let added = memory(id) - memory_before;
    assert!(added <= MEMORY_MOST, "{} MiB more memory", added >> 20);
    let sent: usize = slow.iter().map(|body| body.sent).sum();
    assert!(sent > 16 << 20, "the attack reaches the bounds of the server: {} MiB", sent >> 20);
    drop((stalled, heads, slow));
    others();
}
