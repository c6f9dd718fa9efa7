//! A server of language models whose behaviour is scripted by a test.

mod answer;
mod http;
mod schema;
mod script;

use std::collections::{HashMap, HashSet};
use std::io::{BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anabranch_value::Value;

use crate::rng::Rng;
use http::Request;
pub use script::{HeaderScript, ModelCall, ModelFault, ModelFaultKind, ModelScript, ReplyScript};

/// An OpenAI-compatible server, with Anthropic's messages beside it, on a free local port. Dropping it closes all
/// connections.
///
/// Without a reply script it follows schemas (native ones, and those between `<response_schema>` tags) and answers a
/// prompt that mentions a fence with a fenced block. Such replies depend on the request's body and the script's seed alone.
pub struct ModelServer {
    port: u16,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

/// Requests that are recorded; later ones are only counted.
const MOST_RECORDED: usize = 10_000;

struct Shared {
    script: ModelScript,
    ended: AtomicBool,
    down: AtomicBool,
    connections: AtomicUsize,
    calls: AtomicUsize,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
    answered: AtomicUsize,
    paid: AtomicUsize,
    recorded: Mutex<Vec<ModelCall>>,
    /// How often a request of this hash came.
    tries: Mutex<HashMap<u64, u32>>,
    /// Hashes of the requests that got a good reply.
    paid_for: Mutex<HashSet<u64>>,
    open: Mutex<Vec<(TcpStream, JoinHandle<()>)>>,
}

impl ModelServer {
    /// Starts a server that follows `script`.
    #[allow(
        clippy::disallowed_methods,
        reason = "it blocks, on threads that the runtime under test does not use"
    )]
    pub fn start(script: ModelScript) -> ModelServer {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            script,
            ended: AtomicBool::new(false),
            down: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            most_in_flight: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
            paid: AtomicUsize::new(0),
            recorded: Mutex::default(),
            tries: Mutex::default(),
            paid_for: Mutex::default(),
            open: Mutex::default(),
        });
        let to_listener = Arc::clone(&shared);
        let listener = std::thread::spawn(move || {
            for stream in socket.incoming() {
                if to_listener.ended.load(Ordering::SeqCst) {
                    return;
                }
                // A client that was killed can be gone before it is accepted.
                let Ok(stream) = stream else { continue };
                let _ = stream.set_nodelay(true);
                let Ok(other) = stream.try_clone() else { continue };
                to_listener.connections.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&to_listener);
                let thread = std::thread::spawn(move || shared.serve(stream));
                let mut open = to_listener.open.lock().unwrap();
                open.retain(|(_, thread)| !thread.is_finished());
                open.push((other, thread));
            }
        });
        ModelServer { port, shared, listener: Some(listener) }
    }

    /// The base URL of the OpenAI-compatible paths, and of Anthropic's.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The port that the server listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The number of requests so far, faults included.
    pub fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::SeqCst)
    }

    /// The number of requests that were received and are not answered yet.
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight.load(Ordering::SeqCst)
    }

    /// The number of good replies that were written to their sockets whole. A reply counts before its client can have read
    /// all of it.
    pub fn answered(&self) -> usize {
        self.shared.answered.load(Ordering::SeqCst)
    }

    /// The number of good replies that the server began to write; a client pays for them, even if it is gone meanwhile.
    pub fn paid(&self) -> usize {
        self.shared.paid.load(Ordering::SeqCst)
    }

    /// The number of paid replies to requests whose body was paid for before.
    pub fn repeated(&self) -> usize {
        let paid_for = self.shared.paid_for.lock().unwrap();
        self.paid() - paid_for.len()
    }

    /// Starts or ends an outage: while the server is down, every request is answered by 503.
    pub fn set_down(&self, down: bool) {
        self.shared.down.store(down, Ordering::SeqCst);
    }

    /// The largest number of requests that were in flight at the same time.
    pub fn most_in_flight(&self) -> usize {
        self.shared.most_in_flight.load(Ordering::SeqCst)
    }

    /// The number of connections that were accepted so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The first 10,000 requests.
    pub fn requests(&self) -> Vec<ModelCall> {
        self.shared.recorded.lock().unwrap().clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        let open: Vec<_> = self.shared.open.lock().unwrap().drain(..).collect();
        for (stream, _) in &open {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for (_, thread) in open {
            let _ = thread.join();
        }
    }
}

/// How a request ends.
enum End {
    Reply(String),
    Fault(ModelFaultKind),
}

const OUTAGE: ModelFaultKind = ModelFaultKind::Status(503, None);

/// A request that is received and not yet answered.
struct InFlight<'s>(&'s Shared);

impl InFlight<'_> {
    /// Counts a request, and tells how many are in flight with it.
    fn enter(shared: &Shared) -> (InFlight<'_>, usize) {
        let now = shared.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most_in_flight.fetch_max(now, Ordering::SeqCst);
        (InFlight(shared), now)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = http::read(&mut reader) {
            if self.ended.load(Ordering::SeqCst) || !self.respond(request, &mut reader) {
                break;
            }
        }
        let _ = reader.get_mut().shutdown(Shutdown::Both);
    }

    /// Answers one request; `false` if the connection is over.
    #[allow(clippy::disallowed_methods, reason = "the latency of a server, on a thread of its own")]
    fn respond(&self, request: Request, reader: &mut BufReader<TcpStream>) -> bool {
        let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let (in_flight, now_in_flight) = InFlight::enter(self);
        let content = hash(request.body.as_bytes(), self.script.seed);
        let body = Value::from_json(&request.body).unwrap_or_default();
        let call = ModelCall { path: request.path, headers: request.headers, body };
        let mut end = self.end(&call, content, now_in_flight);
        if matches!(end, End::Reply(_)) {
            let jitter = self.script.jitter.mul_f64((content % 1024) as f64 / 1024.0);
            let time = self.script.latency + jitter;
            if !time.is_zero() {
                std::thread::sleep(time);
            }
            if self.down.load(Ordering::SeqCst) {
                end = End::Fault(OUTAGE);
            }
        }
        let headers = self.script.headers.as_ref().map(|headers| headers(&call, calls)).unwrap_or_default();
        let mut recorded = self.recorded.lock().unwrap();
        if recorded.len() < MOST_RECORDED {
            recorded.push(call);
        }
        drop(recorded);
        match end {
            End::Reply(body) => self.reply(content, &headers, &body, reader, in_flight),
            End::Fault(ModelFaultKind::Hang) => {
                let goes_on = http::play(reader, &ModelFaultKind::Hang, &headers);
                drop(in_flight);
                goes_on
            }
            End::Fault(fault) => {
                // Before the answer is sent: the client's next request must not meet its last one here.
                drop(in_flight);
                http::play(reader, &fault, &headers)
            }
        }
    }

    /// Sends a good reply; `false` if the client is gone.
    fn reply(
        &self,
        content: u64,
        headers: &[(String, String)],
        body: &str,
        reader: &mut BufReader<TcpStream>,
        in_flight: InFlight<'_>,
    ) -> bool {
        {
            let mut paid_for = self.paid_for.lock().unwrap();
            paid_for.insert(content);
            self.paid.fetch_add(1, Ordering::SeqCst);
        }
        let bytes = http::message(200, headers, body);
        let (most, last) = bytes.split_at(bytes.len() - 1);
        if reader.get_mut().write_all(most).is_err() {
            return false;
        }
        // Before the last byte: a client that has the whole reply finds it counted.
        drop(in_flight);
        self.answered.fetch_add(1, Ordering::SeqCst);
        let written = reader.get_mut().write_all(last).is_ok();
        if !written {
            self.answered.fetch_sub(1, Ordering::SeqCst);
        }
        written
    }

    fn end(&self, call: &ModelCall, content: u64, in_flight: usize) -> End {
        let script = &self.script;
        if self.down.load(Ordering::SeqCst) {
            return End::Fault(OUTAGE);
        }
        if script.limit.is_some_and(|limit| in_flight > limit) {
            return End::Fault(ModelFaultKind::Status(429, script.retry_after.clone()));
        }
        let tried = {
            let mut tries = self.tries.lock().unwrap();
            let tried = tries.entry(content).or_default();
            *tried += 1;
            *tried - 1
        };
        let mut rng = Rng::new(content);
        for fault in &script.faults {
            let drawn = rng.percent(fault.percent);
            if drawn && fault.times.is_none_or(|times| tried < times) {
                return End::Fault(fault.kind.clone());
            }
        }
        match answer::answer(call, script, content) {
            Ok(body) => End::Reply(body),
            Err(status) => End::Fault(ModelFaultKind::Status(status, None)),
        }
    }
}

/// FNV-1a, mixed.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let start = seed ^ 0xcbf2_9ce4_8422_2325;
    let hash =
        bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    Rng::new(hash).bits()
}
