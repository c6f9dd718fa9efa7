//! A server of language models whose behaviour is scripted by a test.

mod answer;
mod http;
mod schema;

use std::collections::HashMap;
use std::io::BufReader;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use anabranch_value::Value;

use crate::rng::Rng;
use http::Request;

/// How a [`ModelServer`] behaves. The default answers every call at once.
#[derive(Clone, Default)]
pub struct ModelScript {
    /// Decides, with the content of a request, about jitter and faults, so that a run can be repeated.
    pub seed: u64,
    /// The time of each call.
    pub latency: Duration,
    /// The most that is added to the time of a call.
    pub jitter: Duration,
    /// Calls in flight at the same time; more are answered by 429.
    pub limit: Option<usize>,
    /// The header `retry-after` of such a 429, if it has one.
    pub retry_after: Option<String>,
    /// Faults; the first one that a call draws is played.
    pub faults: Vec<ModelFault>,
    /// A native schema (`response_format` or a forced tool) is answered by 422.
    pub refuses_schemas: bool,
    /// The text of a reply, instead of the server's own.
    pub reply: Option<ReplyScript>,
    /// The length of embeddings; 0 is 8.
    pub dimensions: usize,
}

/// Makes the text of a reply to a call.
pub type ReplyScript = Arc<dyn Fn(&ModelCall) -> String + Send + Sync>;

/// A fault that some calls meet.
#[derive(Clone, Debug)]
pub struct ModelFault {
    /// The share of requests that draw it.
    pub percent: u64,
    /// How often the same request meets it; later tries go well. `None` is always.
    pub times: Option<u32>,
    pub kind: ModelFaultKind,
}

/// What a fault does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelFaultKind {
    /// An error with this status, and `retry-after` if it is given.
    Status(u16, Option<String>),
    /// A body that is not JSON.
    Malformed,
    /// A body that breaks off.
    Truncated,
    /// No answer until the client gives up.
    Hang,
    /// The connection is reset.
    Reset,
}

/// One request, as it arrived.
#[derive(Clone, Debug)]
pub struct ModelCall {
    pub path: String,
    /// Headers with names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl ModelCall {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// The texts of the user's messages.
    pub fn prompt(&self) -> String {
        answer::prompt(&self.body)
    }
}

/// An OpenAI-compatible server, with Anthropic's messages beside it, on a free local port. Dropping it closes all
/// connections.
///
/// Without a reply script it follows schemas (native ones, and those between `<response_schema>` tags) and answers a
/// prompt that mentions a fence with a fenced block.
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
    connections: AtomicUsize,
    calls: AtomicUsize,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
    recorded: Mutex<Vec<ModelCall>>,
    /// How often a request of this hash came.
    tries: Mutex<HashMap<u64, u32>>,
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
            connections: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            most_in_flight: AtomicUsize::new(0),
            recorded: Mutex::default(),
            tries: Mutex::default(),
            open: Mutex::default(),
        });
        let to_listener = Arc::clone(&shared);
        let listener = std::thread::spawn(move || {
            for stream in socket.incoming() {
                if to_listener.ended.load(Ordering::SeqCst) {
                    return;
                }
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                to_listener.connections.fetch_add(1, Ordering::SeqCst);
                let other = stream.try_clone().unwrap();
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
        self.calls.fetch_add(1, Ordering::SeqCst);
        let content = hash(request.body.as_bytes(), self.script.seed);
        let body = Value::from_json(&request.body).unwrap_or_default();
        let call = ModelCall { path: request.path, headers: request.headers, body };
        let in_flight = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_in_flight.fetch_max(in_flight, Ordering::SeqCst);
        let end = self.end(&call, content, in_flight);
        if matches!(end, End::Reply(_)) {
            let jitter = self.script.jitter.mul_f64((content % 1024) as f64 / 1024.0);
            let time = self.script.latency + jitter;
            if !time.is_zero() {
                std::thread::sleep(time);
            }
        }
        let mut recorded = self.recorded.lock().unwrap();
        if recorded.len() < MOST_RECORDED {
            recorded.push(call);
        }
        drop(recorded);
        // Before the reply is sent: the client's next request must not meet its last one here.
        let still = matches!(end, End::Fault(ModelFaultKind::Hang));
        if !still {
            self.in_flight.fetch_sub(1, Ordering::SeqCst);
        }
        let goes_on = match end {
            End::Reply(body) => http::write(reader.get_mut(), 200, None, &body),
            End::Fault(fault) => http::play(reader, &fault),
        };
        if still {
            self.in_flight.fetch_sub(1, Ordering::SeqCst);
        }
        goes_on
    }

    fn end(&self, call: &ModelCall, content: u64, in_flight: usize) -> End {
        let script = &self.script;
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
