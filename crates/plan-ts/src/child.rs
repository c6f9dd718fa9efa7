//! The process that runs a plan's code, from outside: started with nothing, asked, and gone in time.

use std::ffi::OsString;
use std::io::{Error, ErrorKind};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::scope;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::frames::{self, WorkerMessage};
use crate::job::{Files, Job, JobOutput};

/// The most files that a child may ask for.
const MAX_IMPORTS: usize = 10_000;

/// The command that starts the process for a plan's code.
#[derive(Clone, Debug)]
pub struct Worker {
    /// A program that calls [`serve`](crate::serve).
    pub program: PathBuf,
    /// The argument that makes it do so.
    pub arguments: Vec<OsString>,
    /// The time after which it is killed. The process limits its own CPU time. This limit is for a process that blocks,
    /// so it is long enough for a machine on which the process gets a hundredth of a core.
    pub wall: Duration,
}

/// The reason why a process did not return a result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("the process for the plan's code could not be started ({program}): {cause}")]
    Start { program: String, cause: Error },
    #[error("the plan's code did not end within {} s", .wall.as_secs_f64())]
    TooLong { wall: Duration },
    #[error("the plan's code used too much CPU time")]
    TooMuchCpu,
    #[error("the plan's code was killed: it used too much CPU time, or the machine is out of memory")]
    Killed,
    #[error("the plan's code ran out of memory or stack ({0}): is it nested very deep?")]
    OutOfMemory(ExitStatus),
    #[error("the process for the plan's code ended without an answer ({0})")]
    Died(ExitStatus),
    #[error("the process for the plan's code said something unreadable: {0}")]
    Unreadable(Error),
}

impl Worker {
    /// Has a process do a job.
    pub(crate) fn make(&self, job: &Job, files: &mut dyn Files) -> Result<JobOutput, Trouble> {
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
        // A separate process group, so that its child processes end with it.
        command.args(&self.arguments).env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    }
}

/// Tells the job, and answers questions until there is an answer.
fn converse(
    pipes: &mut (ChildStdin, ChildStdout),
    job: &Job,
    files: &mut dyn Files,
) -> Result<JobOutput, Error> {
    let (write, read) = pipes;
    match frames::write(write, job) {
        // Its output counts, even if it does not read its input.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(error),
        _ => {}
    }
    for _ in 0..MAX_IMPORTS {
        match frames::read(read)? {
            WorkerMessage::Made(made) => return Ok(made),
            WorkerMessage::Import { from, specifier } => {
                frames::write(write, &files.import(from, &specifier))?;
            }
        }
    }
    Err(Error::new(ErrorKind::InvalidData, "it asks for files without end"))
}

/// Ends the child when it is done with or its time is over, and reaps it. Says whether its time was over.
fn watch(mut child: Child, is_done: &Receiver<()>, wall: Duration) -> (Result<ExitStatus, Error>, bool) {
    let late = is_done.recv_timeout(wall) == Err(RecvTimeoutError::Timeout);
    // A process that has ended keeps its status. One that has answered is not needed any more. Its child processes
    // could keep the pipes open.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.kill();
    (child.wait(), late)
}

fn reason(error: Error, status: ExitStatus) -> Trouble {
    let is = |signal: Signal| status.signal() == Some(signal.as_raw());
    if error.kind() == ErrorKind::InvalidData {
        Trouble::Unreadable(error)
    } else if is(Signal::XCPU) {
        Trouble::TooMuchCpu
    } else if is(Signal::KILL) {
        Trouble::Killed
    } else if is(Signal::SEGV) || is(Signal::ABORT) || is(Signal::BUS) {
        Trouble::OutOfMemory(status)
    } else {
        Trouble::Died(status)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]

    use expect_test::{Expect, expect};

    use super::Worker;
    use crate::job::{Files, ImportResolution, Job};
    use std::time::Duration;

    struct NoFiles;

    impl Files for NoFiles {
        fn import(&mut self, from: u32, specifier: &str) -> ImportResolution {
            ImportResolution::Refused { what: format!("{from} {specifier}"), help: None }
        }
    }

    /// The result of a shell in place of a worker. The shell ends by itself.
    fn check(script: &str, expect: Expect) {
        check_within(Duration::from_secs(600), script, expect);
    }

    /// The result of a shell that would never end.
    fn check_killed(script: &str) {
        check_within(Duration::from_millis(500), script, expect!["the plan's code did not end within 0.5 s"]);
    }

    fn check_within(wall: Duration, script: &str, expect: Expect) {
        let worker = Worker { program: "/bin/sh".into(), arguments: vec!["-c".into(), script.into()], wall };
        let said = match worker.make(&Job::default(), &mut NoFiles) {
            Ok(made) => format!("{made:?}"),
            Err(trouble) => trouble.to_string(),
        };
        expect.assert_eq(&said);
    }

    #[test]
    fn whatever_a_process_does_there_is_an_end_and_a_word_for_it() {
        check("exit 3", expect!["the process for the plan's code ended without an answer (exit status: 3)"]);
        check(
            "kill -SEGV $$",
            expect![
                "the plan's code ran out of memory or stack (signal: 11 (SIGSEGV)): is it nested very deep?"
            ],
        );
        check(
            "kill -ABRT $$",
            expect![
                "the plan's code ran out of memory or stack (signal: 6 (SIGABRT)): is it nested very deep?"
            ],
        );
        check("kill -XCPU $$", expect!["the plan's code used too much CPU time"]);
        check_killed("exec /bin/sleep 100000");
        check(
            "exec /bin/cat",
            expect![
                "the process for the plan's code said something unreadable: unknown variant `keys`, expected `Import` or `Made` at line 1 column 7"
            ],
        );
        check_killed("/bin/sleep 100000 & exit 0");
        check_killed("/bin/sleep 100000");
        check(
            "exec 0<&- 1>&-; exec /bin/sleep 100000",
            expect!["the plan's code was killed: it used too much CPU time, or the machine is out of memory"],
        );
        check_killed("printf '\\000\\000\\001\\000'; while :; do printf x; /bin/sleep 0.01; done");
        check_killed("while :; do :; done");
        check(
            "exec /bin/cat /dev/zero",
            expect![
                "the process for the plan's code said something unreadable: EOF while parsing a value at line 1 column 0"
            ],
        );
        check(
            "printf '\\377\\377\\377\\377'",
            expect!["the process for the plan's code said something unreadable: longer than a frame may be"],
        );
        check(
            "printf '\\005\\000\\000\\000hello'",
            expect![
                "the process for the plan's code said something unreadable: expected value at line 1 column 1"
            ],
        );
        check(
            "printf '\\005\\000\\000\\000he'",
            expect!["the process for the plan's code ended without an answer (exit status: 0)"],
        );
        check(
            "while :; do printf '\\046\\000\\000\\000{\"Import\":{\"from\":7,\"specifier\":\"./x\"}}'; done",
            expect![
                "the process for the plan's code said something unreadable: EOF while parsing an object at line 1 column 38"
            ],
        );
        let made = "printf '\\056\\000\\000\\000{\"Made\":{\"faults\":[],\"sites\":[],\"printed\":[]}}'";
        check(made, expect![[r#"JobOutput { faults: [], plan: None, sites: [], printed: [] }"#]]);
        check(
            &format!("{made}; exec /bin/sleep 100000"),
            expect![[r#"JobOutput { faults: [], plan: None, sites: [], printed: [] }"#]],
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_told() {
        let worker =
            Worker { program: "/nowhere/at/all".into(), arguments: Vec::new(), wall: Duration::from_secs(1) };
        let trouble = worker.make(&Job::default(), &mut NoFiles).unwrap_err();
        expect!["the process for the plan's code could not be started (/nowhere/at/all): No such file or directory (os error 2)"]
            .assert_eq(&trouble.to_string());
    }
}
