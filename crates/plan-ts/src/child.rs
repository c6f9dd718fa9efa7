//! The process that runs a plan's code, from outside: started with nothing, asked, and gone in time.

use std::ffi::OsString;
use std::io::{Error, ErrorKind};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::scope;
use std::time::Duration;

use rustix::process::Signal;

use crate::frames::{self, Told};
use crate::job::{Files, Job, Made};

/// The most files that a child may ask for.
const MAX_IMPORTS: usize = 10_000;

/// How to start the process that runs a plan's code.
#[derive(Clone, Debug)]
pub struct Worker {
    /// A program that calls [`serve`](crate::serve).
    pub program: PathBuf,
    /// What tells it to.
    pub arguments: Vec<OsString>,
    /// How long it may take, whatever it does.
    pub wall: Duration,
}

/// Why a process came to no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("the process for the plan's code could not be started ({program})")]
    Start {
        program: String,
        #[source]
        cause: Error,
    },
    #[error("the plan's code took longer than {} s", .wall.as_secs_f64())]
    TooLong { wall: Duration },
    #[error("the plan's code computed for too long")]
    TooMuchComputed,
    #[error("the plan's code ran out of memory or stack ({0})")]
    OutOfMemory(ExitStatus),
    #[error("the process for the plan's code ended without an answer ({0})")]
    Died(ExitStatus),
    #[error("the process for the plan's code said something unreadable")]
    Unreadable(#[source] Error),
}

impl Worker {
    /// Has a process do a job.
    pub(crate) fn make(&self, job: &Job, files: &mut dyn Files) -> Result<Made, Trouble> {
        let started = |cause| Trouble::Start { program: self.program.display().to_string(), cause };
        let mut child = self.start().map_err(started)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let mut pipes = stdin.zip(stdout).expect("both are piped");
        let (done, is_done) = channel();
        let (told, (status, late)) = scope(|threads| {
            let watchdog = threads.spawn(move || watch(child, &is_done, self.wall));
            let told = converse(&mut pipes, job, files);
            drop(done);
            (told, watchdog.join().expect("the watchdog does not panic"))
        });
        match (told, status) {
            (Ok(made), _) => Ok(made),
            (Err(_), _) if late => Err(Trouble::TooLong { wall: self.wall }),
            (Err(error), Ok(status)) => Err(reason(error, status)),
            (Err(error), Err(_)) => Err(Trouble::Unreadable(error)),
        }
    }

    fn start(&self) -> Result<Child, Error> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    }
}

/// Tells the job, and answers questions until there is an answer.
fn converse(pipes: &mut (ChildStdin, ChildStdout), job: &Job, files: &mut dyn Files) -> Result<Made, Error> {
    let (write, read) = pipes;
    frames::write(write, job)?;
    for _ in 0..MAX_IMPORTS {
        match frames::read(read)? {
            Told::Made(made) => return Ok(made),
            Told::Import { from, specifier } => frames::write(write, &files.import(from, &specifier))?,
        }
    }
    Err(Error::new(ErrorKind::InvalidData, "it asks for files without end"))
}

/// Ends the child when it is done with or its time is over, and reaps it. Says whether its time was over.
fn watch(mut child: Child, is_done: &Receiver<()>, wall: Duration) -> (Result<ExitStatus, Error>, bool) {
    let late = is_done.recv_timeout(wall) == Err(RecvTimeoutError::Timeout);
    // One that has ended by itself keeps its status; one that has answered has no reason to go on.
    let _ = child.kill();
    (child.wait(), late)
}

fn reason(error: Error, status: ExitStatus) -> Trouble {
    let is = |signal: Signal| status.signal() == Some(signal.as_raw());
    if is(Signal::XCPU) || is(Signal::KILL) {
        Trouble::TooMuchComputed
    } else if is(Signal::SEGV) || is(Signal::ABORT) || is(Signal::BUS) {
        Trouble::OutOfMemory(status)
    } else if error.kind() == ErrorKind::InvalidData {
        Trouble::Unreadable(error)
    } else {
        Trouble::Died(status)
    }
}
