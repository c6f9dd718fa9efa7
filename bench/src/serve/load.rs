//! Load by `h2load`, which writes a line per request to a file.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::process::ServerProcess;

/// The request that is sent again and again.
pub(super) const BODY: &str = r#"{"user_id": 1}"#;

/// How requests are sent.
pub(super) struct Load {
    connections: u32,
    seconds: u32,
    /// Requests per second; `None` sends one when the one before is answered.
    rate: Option<f64>,
}

/// The requests of one turn.
pub(super) struct Measured {
    seconds: f64,
    cpu: Duration,
    /// Microseconds of requests with status 200, in ascending order.
    answered: Vec<u64>,
    shed: u64,
    failed: u64,
}

impl Load {
    /// The next request of a connection is sent when the one before is answered.
    pub(super) fn closed(connections: u32, seconds: u32) -> Load {
        Load { connections, seconds, rate: None }
    }

    /// Requests are sent at a rate.
    pub(super) fn open(connections: u32, seconds: u32, rate: f64) -> Load {
        Load { connections, seconds, rate: Some(rate) }
    }

    pub(super) fn run(&self, server: &ServerProcess, plan: &str, folder: &Path) -> io::Result<Measured> {
        let (body, log) = (folder.join("body.json"), folder.join("load.tsv"));
        std::fs::write(&body, BODY)?;
        let _ = std::fs::remove_file(&log);
        let mut command = Command::new("h2load");
        command.args(["--h1", "--threads=1", "--warm-up-time=1"]);
        command.args([format!("--clients={}", self.connections), format!("--duration={}", self.seconds)]);
        if let Some(rate) = self.rate {
            command.arg(format!("--rps={:.0}", (rate / f64::from(self.connections)).max(1.0)));
        }
        command.arg("--header=Content-Type: application/json");
        if let Some(token) = &server.token {
            command.arg(format!("--header=Authorization: Bearer {token}"));
        }
        command.arg(format!("--data={}", body.display())).arg(format!("--log-file={}", log.display()));
        command.arg(format!("http://{}/v1/plans/{plan}/run", server.address));
        let before = server.cpu()?;
        let ended = command.stdout(Stdio::null()).status()?;
        let cpu = server.cpu()?.saturating_sub(before);
        match ended.success() {
            true => Measured::read(&std::fs::read_to_string(&log)?, self.seconds, cpu),
            false => Err(io::Error::other(format!("h2load ended with {ended}"))),
        }
    }
}

impl Measured {
    /// Lines of start, status (-1 for a failure) and duration, times in microseconds.
    fn read(log: &str, seconds: u32, cpu: Duration) -> io::Result<Measured> {
        let mut measured =
            Measured { seconds: f64::from(seconds), cpu, answered: Vec::new(), shed: 0, failed: 0 };
        for line in log.lines() {
            let mut fields = line.split('\t').skip(1);
            let (status, micros) = (fields.next(), fields.next().and_then(|micros| micros.parse().ok()));
            match (status, micros) {
                (Some("200"), Some(micros)) => measured.answered.push(micros),
                (Some("429" | "503"), Some(_)) => measured.shed += 1,
                _ => measured.failed += 1,
            }
        }
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
