//! Load by `h2load`, which writes a line per request to a file.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anabranch_server::proto::plans::RunRequest;
use anabranch_server::proto::plans::run_request::User;
use prost::Message as _;

use super::process::ServerProcess;

/// The request that is sent again and again.
pub(super) const BODY: &str = r#"{"user_id": 1}"#;

/// The same as a message of gRPC.
pub(super) fn message(plan: &str) -> RunRequest {
    RunRequest { plan: plan.to_owned(), user: Some(User::UserId(1)), ..RunRequest::default() }
}

/// How requests travel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// JSON over HTTP/1.1.
    Http,
    /// gRPC over HTTP/2.
    Grpc,
}

/// How requests are sent.
pub(super) struct Load {
    protocol: Protocol,
    connections: u32,
    seconds: u32,
    /// Requests per second; `None` sends one when the one before is answered.
    rate: Option<f64>,
}

/// The requests of one turn.
pub(super) struct LoadReport {
    seconds: f64,
    cpu: Duration,
    /// Microseconds of requests with status 200, in ascending order.
    answered: Vec<u64>,
    shed: u64,
    failed: u64,
}

impl Load {
    /// The next request of a connection is sent when the one before is answered.
    pub(super) fn closed(protocol: Protocol, connections: u32, seconds: u32) -> Load {
        Load { protocol, connections, seconds, rate: None }
    }

    /// Requests are sent at a rate, over HTTP/1.1.
    pub(super) fn open(connections: u32, seconds: u32, rate: f64) -> Load {
        Load { protocol: Protocol::Http, connections, seconds, rate: Some(rate) }
    }

    pub(super) fn run(&self, server: &ServerProcess, plan: &str, folder: &Path) -> io::Result<LoadReport> {
        let (body, log) = (folder.join("body"), folder.join("load.tsv"));
        let _ = std::fs::remove_file(&log);
        let mut command = Command::new("h2load");
        command.args(["--threads=1".to_owned(), format!("--clients={}", self.connections)]);
        match self.rate {
            None => command.args(["--warm-up-time=1".to_owned(), format!("--duration={}", self.seconds)]),
            Some(rate) => command.args(spread(rate, self.connections, self.seconds)),
        };
        if let Some(token) = &server.token {
            command.arg(format!("--header=Authorization: Bearer {token}"));
        }
        command.arg(format!("--data={}", body.display())).arg(format!("--log-file={}", log.display()));
        match self.protocol {
            Protocol::Http => {
                std::fs::write(&body, BODY)?;
                command.args(["--h1", "--header=Content-Type: application/json"]);
                command.arg(format!("http://{}/v1/plans/{plan}/run", server.address));
            }
            Protocol::Grpc => {
                let message = message(plan).encode_to_vec();
                let head = [&[0][..], &(message.len() as u32).to_be_bytes()].concat();
                std::fs::write(&body, [head, message].concat())?;
                command.args(["--header=Content-Type: application/grpc", "--header=TE: trailers"]);
                command.arg(format!("http://{}/anabranch.plan.v1.Plans/Run", server.address));
            }
        }
        let before = server.cpu()?;
        let ended = command.stdout(Stdio::null()).status()?;
        let seconds = self.rate.is_none().then_some(f64::from(self.seconds));
        let cpu = server.cpu()?.saturating_sub(before);
        match ended.success() {
            true => LoadReport::read(&std::fs::read_to_string(&log)?, seconds, cpu),
            false => Err(io::Error::other(format!("h2load ended with {ended}"))),
        }
    }
}

/// The options for requests at an even rate. Each client of h2load sends at a rate of its own from its connection on, so
/// the connections are opened one after another over the time between two requests of a client. Opened at once, they
/// would all send at the same moments.
fn spread(rate: f64, connections: u32, seconds: u32) -> [String; 4] {
    let per_client = rate / f64::from(connections);
    let per_period = (rate * OPENING_PERIOD.as_secs_f64()).ceil().max(1.0);
    [
        format!("--rps={per_client:.3}"),
        format!("--requests={:.0}", rate * f64::from(seconds)),
        format!("--rate={per_period:.0}"),
        format!("--rate-period={}ms", OPENING_PERIOD.as_millis()),
    ]
}

/// Connections are opened in groups, one group per period.
const OPENING_PERIOD: Duration = Duration::from_millis(10);

impl LoadReport {
    /// Lines of start, status (-1 for a failure) and duration, times in microseconds. Without `seconds`, the time is that
    /// from the first start to the last end.
    fn read(log: &str, seconds: Option<f64>, cpu: Duration) -> io::Result<LoadReport> {
        let mut measured = LoadReport { seconds: 0.0, cpu, answered: Vec::new(), shed: 0, failed: 0 };
        let (mut first, mut last) = (u64::MAX, 0);
        for line in log.lines() {
            let mut fields = line.split('\t');
            let start = fields.next().and_then(|start| start.parse().ok()).unwrap_or(0_u64);
            let (status, micros) = (fields.next(), fields.next().and_then(|micros| micros.parse().ok()));
            (first, last) = (first.min(start), last.max(start + micros.unwrap_or(0)));
            match (status, micros) {
                (Some("200"), Some(micros)) => measured.answered.push(micros),
                (Some("429" | "503"), Some(_)) => measured.shed += 1,
                _ => measured.failed += 1,
            }
        }
        measured.seconds = seconds.unwrap_or(last.saturating_sub(first) as f64 / 1e6);
        measured.answered.sort_unstable();
        match measured.answered.is_empty() {
            true => Err(io::Error::other("no request was answered with 200")),
            false => Ok(measured),
        }
    }

    /// Answers with status 200 per second.
    pub(super) fn goodput(&self) -> f64 {
        self.answered.len() as f64 / self.seconds
    }

    /// Requests per second, answered or not.
    pub(super) fn sent(&self) -> f64 {
        (self.answered.len() as u64 + self.shed + self.failed) as f64 / self.seconds
    }

    pub(super) fn shed(&self) -> u64 {
        self.shed
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// CPU time of the server per answer. The second of warm-up is in the CPU time, so its answers are added.
    pub(super) fn cpu_micros(&self) -> f64 {
        let answered = self.answered.len() as f64 * (self.seconds + 1.0) / self.seconds;
        self.cpu.as_secs_f64() * 1e6 / answered
    }

    /// Microseconds.
    pub(super) fn percentile(&self, share: f64) -> f64 {
        self.answered[((self.answered.len() - 1) as f64 * share) as usize] as f64
    }
}
