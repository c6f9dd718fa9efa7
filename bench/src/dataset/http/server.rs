//! The model of all contenders: a server that answers from a script, in a process and on a thread of its own.
//!
//! It reads requests by hand and counts under one lock that nobody else waits for, so that it is not what a turn waits for.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::child::cpu_time;

/// Serves until its input ends, which it does when the bench ends. Prints the port.
pub(super) fn run() -> io::Result<()> {
    let (port, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            _ = port.send(listener.local_addr()?.port());
            let counts = Arc::new(Mutex::new(Counts::new(Script::default())));
            loop {
                let (stream, _) = listener.accept().await?;
                let counts = Arc::clone(&counts);
                // A connection that breaks off is the caller's matter.
                tokio::spawn(async move { connection(stream, &counts).await });
            }
        })
    });
    let port = told.recv().map_err(|_| io::Error::other("no port"))?;
    println!("{port}");
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// How the server answers.
#[derive(Clone, Debug, Default)]
struct Script {
    latency: Duration,
    /// Calls in flight above which it answers 429.
    limit: Option<u64>,
    retry_after: Option<String>,
}

impl Script {
    fn from_json(text: &[u8]) -> Option<Script> {
        let value: serde_json::Value = serde_json::from_slice(text).ok()?;
        Some(Script {
            latency: Duration::from_millis(value["latency_ms"].as_u64()?),
            limit: value["limit"].as_u64(),
            retry_after: value["retry_after"].as_str().map(str::to_owned),
        })
    }
}

/// Figures since the last reset.
struct Counts {
    script: Script,
    calls: u64,
    refused: u64,
    connections: u64,
    in_flight: u64,
    most_in_flight: u64,
    /// Calls in flight times seconds.
    load: f64,
    first: Option<Instant>,
    last: Instant,
    cpu: Duration,
}

impl Counts {
    fn new(script: Script) -> Counts {
        Counts {
            script,
            calls: 0,
            refused: 0,
            connections: 0,
            in_flight: 0,
            most_in_flight: 0,
            load: 0.0,
            first: None,
            last: Instant::now(),
            cpu: cpu_time(),
        }
    }

    /// Adds the time since the last change.
    fn pass(&mut self) {
        let now = Instant::now();
        self.load += self.in_flight as f64 * (now - self.last).as_secs_f64();
        self.first.get_or_insert(now);
        self.last = now;
    }

    fn stats(&self) -> String {
        let span = self.first.map_or(0.0, |first| (self.last - first).as_secs_f64());
        json!({
            "calls": self.calls,
            "refused": self.refused,
            "connections": self.connections,
            "most_in_flight": self.most_in_flight,
            "mean_in_flight": if span > 0.0 { self.load / span } else { 0.0 },
            "cpu": (cpu_time() - self.cpu).as_secs_f64(),
        })
        .to_string()
    }
}

fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn connection(mut stream: TcpStream, counts: &Mutex<Counts>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut read: Vec<u8> = Vec::with_capacity(4096);
    let mut is_counted = false;
    loop {
        let Some((head, end)) = request(&read) else {
            match stream.read_buf(&mut read).await? {
                0 => return Ok(()),
                _ => continue,
            }
        };
        let body = &read[head..end];
        let reply = if read.starts_with(b"GET /stats") {
            ok(&lock(counts).stats())
        } else if read.starts_with(b"POST /reset") {
            *lock(counts) = Counts::new(Script::from_json(body).ok_or(io::ErrorKind::InvalidInput)?);
            ok("{}")
        } else {
            if !is_counted {
                lock(counts).connections += 1;
                is_counted = true;
            }
            chat(body, counts).await
        };
        stream.write_all(&reply).await?;
        read.drain(..end);
    }
}

/// Where the body of the first request begins and ends, if all of it was read.
fn request(read: &[u8]) -> Option<(usize, usize)> {
    let head = read.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let length = read[..head].split(|byte| *byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(b"content-length:".len())?;
        name.eq_ignore_ascii_case(b"content-length:").then_some(value)
    });
    let length = length.and_then(|length| std::str::from_utf8(length).ok()?.trim().parse().ok()).unwrap_or(0);
    (read.len() >= head + length).then_some((head, head + length))
}

async fn chat(body: &[u8], counts: &Mutex<Counts>) -> Vec<u8> {
    let latency = {
        let mut counts = lock(counts);
        counts.pass();
        counts.calls += 1;
        if counts.script.limit.is_some_and(|limit| counts.in_flight >= limit) {
            counts.refused += 1;
            return refusal(counts.script.retry_after.as_deref());
        }
        counts.in_flight += 1;
        counts.most_in_flight = counts.most_in_flight.max(counts.in_flight);
        counts.script.latency
    };
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
    let reply = answer(body);
    let mut counts = lock(counts);
    counts.pass();
    // After a reset, calls of an earlier turn are not counted.
    counts.in_flight = counts.in_flight.saturating_sub(1);
    reply
}

const WORDS: [&str; 32] = [
    "river", "delta", "stone", "bridge", "of", "the", "and", "slow", "water", "carries", "sand", "toward",
    "a", "low", "shore", "where", "boats", "wait", "for", "wind", "under", "old", "trees", "that", "lean",
    "over", "quiet", "bends", "each", "spring", "it", "rises",
];

/// Sixty words that follow from the request.
fn answer(body: &[u8]) -> Vec<u8> {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let mut bits = hasher.finish() | 1;
    let mut text = String::with_capacity(800);
    text.push_str(r#"{"id":"reply","object":"chat.completion","created":0,"model":"scripted","choices":[{"index":0,"message":{"role":"assistant","content":""#);
    for word in 0..60 {
        if word > 0 {
            text.push(' ');
        }
        text.push_str(WORDS[(bits >> 59) as usize]);
        bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    }
    let prompt = body.len() / 4;
    let usage = format!(
        r#"."}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":{prompt},"completion_tokens":80,"total_tokens":{}}}}}"#,
        prompt + 80
    );
    ok(&(text + &usage))
}

fn ok(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into()
}

fn refusal(retry_after: Option<&str>) -> Vec<u8> {
    let body = r#"{"error":{"message":"too many requests","type":"rate_limit"}}"#;
    let pause = retry_after.map(|pause| format!("retry-after: {pause}\r\n")).unwrap_or_default();
    let length = body.len();
    format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n{pause}content-length: {length}\r\n\r\n{body}"
    )
    .into()
}
