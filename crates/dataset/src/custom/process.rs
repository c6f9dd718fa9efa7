//! One run of a worker's process: its pipes, and the calls that wait for it.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use futures_util::FutureExt;
use futures_util::future::{Either, FusedFuture, join, pending, select};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::group::{Group, Tail, lock};
use super::message::{Line, MAX_LINE, check_functions, hello, quoted};
use super::worker::Function;
use crate::fault::Fault;

/// Lines on their way to the process.
const QUEUED_LINES: usize = 64;

/// The most questions and answers that are queued for a call.
const QUEUED_EVENTS: usize = 256;

/// The longest wait for the rest of stderr when the process has ended.
const STDERR_WAIT: Duration = Duration::from_secs(2);

/// One run of a worker's process.
pub(super) struct Process {
    pub(super) lines: Sender<String>,
    calls: Mutex<Calls>,
    group: Group,
    clock: Arc<dyn Clock>,
}

struct Calls {
    next: u64,
    waiting: HashMap<u64, Sender<Line>>,
    ready: bool,
    /// Calls that were answered.
    answered: u64,
    heard: Instant,
    /// The reason why there are no more answers.
    end: Option<Fault>,
}

/// A call that waits. Dropping it forgets the call.
pub(super) struct WaitingCall<'a> {
    pub(super) id: u64,
    pub(super) lines: Receiver<Line>,
    process: &'a Process,
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        lock(&self.process.calls).waiting.remove(&self.id);
    }
}

/// The end of a conversation.
enum Stop {
    /// The process closed its output.
    Closed,
    /// It said something that is not in the protocol.
    Wrong(String),
    /// It does not serve the functions that the columns need.
    Refused(String),
}

impl Process {
    /// Starts a process, and returns with it the future that drives it.
    pub(super) fn start(
        command: &[String],
        folder: &std::path::Path,
        functions: Arc<[Function]>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Arc<Process>, impl Future<Output = ()> + Send + use<>), Fault> {
        let (program, arguments) = command.split_first().ok_or_else(|| {
            Fault::permanent("worker", "the command of the worker is empty: name a program")
        })?;
        let mut start = Command::new(program);
        // A separate process group, so that its child processes end with it.
        start.args(arguments).current_dir(folder).process_group(0).kill_on_drop(true);
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start.spawn().map_err(|error| {
            Fault::permanent("worker", format!("the worker `{program}` could not be started: {error}"))
        })?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Fault::permanent("worker", format!("the worker `{program}` has no pipes")));
        };
        let (lines, queue) = mpsc::channel(QUEUED_LINES);
        let calls = Calls {
            next: 1,
            waiting: HashMap::new(),
            ready: false,
            answered: 0,
            heard: clock.now(),
            end: None,
        };
        let process = Process { lines, calls: Mutex::new(calls), group: Group::new(&child), clock };
        let process = Arc::new(process);
        let held = ServedProcess { process: Arc::clone(&process), child };
        let name = program.clone();
        let drive = held.drive(name, functions, Pipes { stdin, stdout, stderr, queue });
        Ok((process, drive))
    }

    /// Adds a call, unless the process has ended.
    pub(super) fn enter(&self) -> Result<WaitingCall<'_>, Fault> {
        let mut calls = lock(&self.calls);
        if let Some(end) = &calls.end {
            return Err(end.clone());
        }
        let id = calls.next;
        calls.next += 1;
        let (sender, lines) = mpsc::channel(QUEUED_EVENTS);
        calls.waiting.insert(id, sender);
        Ok(WaitingCall { id, lines, process: self })
    }

    /// The reason why the process has ended; `None` if it has not.
    pub(super) fn end(&self) -> Option<Fault> {
        lock(&self.calls).end.clone()
    }

    /// Returns whether the process has sent its `ready` line.
    pub(super) fn is_ready(&self) -> bool {
        lock(&self.calls).ready
    }

    /// Calls that the process has answered.
    pub(super) fn answered(&self) -> u64 {
        lock(&self.calls).answered
    }

    /// Kills the process if it has said nothing since then. Says whether it did.
    pub(super) fn kill_if_silent_since(&self, since: Instant) -> bool {
        let silent = lock(&self.calls).heard <= since;
        if silent {
            self.group.kill();
        }
        silent
    }

    /// Ends the process for good.
    pub(super) fn kill(&self) {
        self.group.end();
    }

    fn hear(&self, text: &str, functions: &[Function]) -> Result<(), Stop> {
        let line: Line = serde_json::from_str(text).map_err(|error| {
            Stop::Wrong(format!("a line that is not of the protocol ({error}): {}", quoted(text)))
        })?;
        let mut calls = lock(&self.calls);
        calls.heard = self.clock.now();
        if line.ready == Some(true) {
            check_functions(functions, &line.functions).map_err(Stop::Refused)?;
            calls.ready = true;
            return Ok(());
        }
        if !calls.ready {
            if let Some(error) = line.error {
                return Err(Stop::Refused(error.fault().message));
            }
            return Err(Stop::Wrong(format!("a line before it was ready: {}", quoted(text))));
        }
        let id = line.id.filter(|id| *id < calls.next);
        let id =
            id.ok_or_else(|| Stop::Wrong(format!("a line without the id of a call: {}", quoted(text))))?;
        if line.ask.is_none() {
            calls.answered += 1;
        }
        // A call that is not there any more gave up.
        let call = calls.waiting.get(&id);
        match call.map(|call| call.try_reserve().map(|place| place.send(line))) {
            Some(Err(mpsc::error::TrySendError::Full(()))) => {
                Err(Stop::Wrong(format!("too many questions at once for call {id}")))
            }
            _ => Ok(()),
        }
    }

    fn fail(&self, fault: Fault) {
        let mut calls = lock(&self.calls);
        calls.end = Some(fault);
        // The calls see that their channels are closed.
        calls.waiting.clear();
    }
}

struct Pipes {
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    queue: Receiver<String>,
}

/// The process while it is served. If it is dropped early, it kills the group before it releases the child.
struct ServedProcess {
    process: Arc<Process>,
    child: Child,
}

impl Drop for ServedProcess {
    fn drop(&mut self) {
        self.process.group.end();
        if self.process.end().is_none() {
            self.process.fail(Fault::transient("worker", "the worker was stopped"));
        }
    }
}

impl ServedProcess {
    async fn drive(mut self, name: String, functions: Arc<[Function]>, pipes: Pipes) {
        // The queue stays open until the calls can see the reason for the end.
        let Pipes { stdin, stdout, stderr, mut queue } = pipes;
        let tail = Tail::default();
        let mut errors = Box::pin(read_errors(stderr, &tail)).fuse();
        let stop = {
            let listen = Box::pin(listen(&self.process, stdout, &functions));
            let others = Box::pin(join(write(stdin, &mut queue, hello(&functions)), async {
                (&mut errors).await;
                pending::<()>().await;
            }));
            match select(listen, others).await {
                Either::Left((stop, _)) => stop,
                Either::Right(_) => Stop::Closed,
            }
        };
        // One that has ended by itself keeps its status.
        self.process.group.end();
        let status = self.child.wait().await;
        let clock = Arc::clone(&self.process.clock);
        if !errors.is_terminated() {
            select(errors, clock.sleep_until(clock.now() + STDERR_WAIT)).await;
        }
        let said = tail.describe();
        let fault = match stop {
            Stop::Refused(problem) => {
                Fault::permanent("worker", format!("the worker `{name}`: {problem}{said}"))
            }
            Stop::Wrong(problem) => {
                Fault::transient("worker", format!("the worker `{name}` said {problem}{said}"))
            }
            Stop::Closed => {
                let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                Fault::transient("worker", format!("the worker `{name}` ended ({status}){said}"))
            }
        };
        self.process.fail(fault);
    }
}

async fn listen(process: &Process, stdout: ChildStdout, functions: &[Function]) -> Stop {
    let mut reader = BufReader::with_capacity(1 << 16, stdout);
    let mut line = Vec::new();
    loop {
        match read_line(&mut reader, &mut line, MAX_LINE).await {
            Ok(true) => {}
            Ok(false) => return Stop::Closed,
            Err(error) => return Stop::Wrong(error.to_string()),
        }
        let heard = match std::str::from_utf8(&line) {
            Ok(text) if text.trim().is_empty() => Ok(()),
            Ok(text) => process.hear(text, functions),
            Err(_) => Err(Stop::Wrong("a line that is not UTF-8".into())),
        };
        if let Err(stop) = heard {
            return stop;
        }
    }
}

/// Writes lines. A process that does not listen is noticed by its silence.
async fn write(mut stdin: ChildStdin, queue: &mut Receiver<String>, hello: String) {
    let mut next = Some(hello);
    while let Some(mut line) = next {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            break;
        }
        next = queue.recv().await;
    }
    pending::<()>().await;
}

async fn read_errors(stderr: ChildStderr, tail: &Tail) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    // A longer line is kept in parts.
    while let Ok(true) = read_part(&mut reader, &mut line).await {
        tail.push(&String::from_utf8_lossy(&line));
    }
}

/// Reads a line of at most `limit` bytes. `false` at the end.
async fn read_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    limit: usize,
) -> std::io::Result<bool> {
    line.clear();
    loop {
        let bytes = reader.fill_buf().await?;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        let (used, ended) = (end.map_or(bytes.len(), |end| end + 1), bytes.is_empty());
        reader.consume(used);
        if line.len() > limit {
            return Err(std::io::Error::other(format!("a line of more than {} MiB", limit >> 20)));
        }
        if end.is_some() || ended {
            return Ok(end.is_some() || !line.is_empty());
        }
    }
}

/// Reads a line, or the available part of a long one. `false` at the end.
async fn read_part(reader: &mut (impl AsyncBufRead + Unpin), part: &mut Vec<u8>) -> std::io::Result<bool> {
    part.clear();
    let bytes = reader.fill_buf().await?;
    let end = bytes.iter().position(|byte| *byte == b'\n');
    part.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
    let (used, ended) = (end.map_or(bytes.len(), |end| end + 1), bytes.is_empty());
    reader.consume(used);
    Ok(!ended)
}
