//! Processes of the bench: each turn of a contender has one, so that its CPU time and its memory are its own.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// One turn's work.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) port: u16,
    pub(super) rows: u64,
    pub(super) parallel: usize,
    /// A folder for files, emptied before each turn.
    pub(super) folder: PathBuf,
}

impl Job {
    pub(super) fn arguments(&self) -> [String; 4] {
        let Job { port, rows, parallel, folder } = self;
        [port.to_string(), rows.to_string(), parallel.to_string(), folder.display().to_string()]
    }

    pub(super) fn parse(arguments: &[&str]) -> Option<Job> {
        let [port, rows, parallel, folder] = arguments else { return None };
        Some(Job {
            port: port.parse().ok()?,
            rows: rows.parse().ok()?,
            parallel: parallel.parse().ok()?,
            folder: PathBuf::from(folder),
        })
    }

    pub(super) fn config_file(&self) -> PathBuf {
        self.folder.join("config.yaml")
    }

    pub(super) fn providers_file(&self) -> PathBuf {
        self.folder.join("providers.yaml")
    }
}

/// The report of a process of a contender about itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Seconds, without the start of the process.
    pub(super) wall: f64,
    /// CPU seconds of all threads, without the start of the process.
    pub(super) cpu: f64,
    /// CPU seconds from the start of the process to its end.
    pub(super) whole_cpu: f64,
    /// The most memory, in MB.
    pub(super) peak: f64,
    /// Rows in the output.
    pub(super) rows: u64,
}

/// Does a turn's work, which returns the rows it made, and prints what it took.
pub(super) fn measured(work: impl FnOnce() -> io::Result<u64>) -> io::Result<()> {
    let (began, start) = (Instant::now(), cpu_time());
    let rows = work()?;
    let (wall, cpu) = (began.elapsed().as_secs_f64(), cpu_time());
    let peak = peak_bytes().ok_or_else(|| io::Error::other("no VmHWM in /proc/self/status"))?;
    println!(
        "{}",
        json!({
            "wall": wall,
            "cpu": (cpu - start).as_secs_f64(),
            "whole_cpu": cpu.as_secs_f64(),
            "peak": peak as f64 / 1e6,
            "rows": rows,
        })
    );
    Ok(())
}

/// The CPU time of all threads of this process so far, in user and kernel mode.
pub(super) fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("a process's CPU time is not negative")
}

fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Runs a process to its end, and reads the last line that it printed.
pub(super) fn run(command: &mut Command, log: &Path) -> io::Result<Work> {
    let name = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).stderr(std::fs::File::create(log)?).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().rev().find(|line| line.starts_with('{')).unwrap_or("");
    let value: Value = serde_json::from_str(line).unwrap_or_default();
    let number = |name: &str| value[name].as_f64();
    let work = || {
        Some(Work {
            wall: number("wall")?,
            cpu: number("cpu")?,
            whole_cpu: number("whole_cpu")?,
            peak: number("peak")?,
            rows: value["rows"].as_u64()?,
        })
    };
    work().filter(|_| output.status.success()).ok_or_else(|| {
        let said = std::fs::read_to_string(log).unwrap_or_default();
        let said: Vec<&str> = said.lines().rev().take(5).collect();
        let said = said.into_iter().rev().collect::<Vec<_>>().join("\n");
        io::Error::other(format!("{name}: {}, {said}", output.status))
    })
}

/// This program as another process.
pub(super) fn this_program(role: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["dataset", "child", role]);
    Ok(command)
}

/// The server's process. It ends with its owner.
pub(super) struct Server {
    child: Child,
    pub(super) port: u16,
}

/// The server's counts of one turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerCounts {
    pub(super) calls: u64,
    pub(super) refused: u64,
    pub(super) connections: u64,
    pub(super) mean_in_flight: f64,
    pub(super) most_in_flight: u64,
    /// CPU seconds of the server.
    pub(super) cpu: f64,
}

impl Server {
    pub(super) fn start() -> io::Result<Server> {
        let mut child = this_program("serve")?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line)?;
        let port = line.trim().parse().map_err(|_| io::Error::other("the server tells no port"))?;
        Ok(Server { child, port })
    }

    /// Sets how the server answers, and all counters to zero.
    pub(super) fn reset(&self, script: &Value) -> io::Result<()> {
        self.ask("POST /reset", &script.to_string()).map(|_| ())
    }

    pub(super) fn stats(&self) -> io::Result<ServerCounts> {
        let text = self.ask("GET /stats", "")?;
        let value: Value = serde_json::from_str(&text)?;
        let count = |name: &str| value[name].as_u64().unwrap_or(0);
        Ok(ServerCounts {
            calls: count("calls"),
            refused: count("refused"),
            connections: count("connections"),
            mean_in_flight: value["mean_in_flight"].as_f64().unwrap_or(0.0),
            most_in_flight: count("most_in_flight"),
            cpu: value["cpu"].as_f64().unwrap_or(0.0),
        })
    }

    fn ask(&self, what: &str, body: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        write!(stream, "{what} HTTP/1.1\r\nhost: bench\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
        // The server writes a short answer at once and leaves the connection open.
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        body.ok_or_else(|| io::Error::other(format!("the server answers `{answer}`")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It answers on request only; there is nothing to lose.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
