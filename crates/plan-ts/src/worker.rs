//! The process that runs a plan's code: it drops its privileges, reads a job, and answers.

use std::io::{Error, ErrorKind, Read, Stdin, Stdout, Write};
use std::process::ExitCode;
use std::thread::Builder;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::frames::{self, Answer, WorkerMessage};
use crate::job::{Fault, Files, ImportResolution, Job, JobOutput};
use crate::make::make;

/// The stack size of the parser, which is recursive in the nesting of the sources.
const STACK: usize = 256 << 20;

/// The memory of the process besides the plan's: the program, the parser's, and the unfinished answer.
const MEMORY: u64 = 1 << 30;

/// The CPU time of the process besides the code's own: for parsing and rewriting the sources, and for writing the
/// answer.
const TIME: Duration = Duration::from_secs(2);

/// Runs the code of one plan: the job comes on the standard input, and goes to the standard output.
pub fn serve() -> ExitCode {
    match try_serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn try_serve() -> Result<(), Error> {
    renounce()?;
    let job: Job = frames::read(&mut std::io::stdin())?;
    let memory = MEMORY.saturating_add(STACK as u64).saturating_add(job.memory as u64);
    limit(Resource::As, memory)?;
    // The process is killed a second later, should it not heed the first signal.
    let seconds = (Duration::from_millis(job.time_ms) + TIME).as_secs().max(1);
    setrlimit(Resource::Cpu, Rlimit { current: Some(seconds), maximum: Some(seconds + 1) })?;
    let thread = Builder::new().name("plan".to_owned()).stack_size(STACK);
    let running = thread.spawn(move || answer(&job, &mut std::io::stdin(), &mut std::io::stdout()))?;
    running.join().unwrap_or_else(|_| Err(Error::other("the thread panicked")))
}

/// Gives up files, core dumps, and life without a parent.
fn renounce() -> Result<(), Error> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    // Open files stay open. No more can be opened.
    limit(Resource::Nofile, 0)
}

fn limit(resource: Resource, to: u64) -> Result<(), Error> {
    Ok(setrlimit(resource, Rlimit { current: Some(to), maximum: Some(to) })?)
}

fn answer(job: &Job, stdin: &mut Stdin, stdout: &mut Stdout) -> Result<(), Error> {
    let mut parent = Parent { read: stdin, write: stdout, broken: None };
    let made = make(job, &mut parent);
    let Parent { write, broken, .. } = parent;
    match broken {
        Some(error) => Err(error),
        None => match frames::write(write, &WorkerMessage::Made(made)) {
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                let fault = Fault::maybe(None, "the plan is larger than a plan can be");
                frames::write(
                    write,
                    &WorkerMessage::Made(JobOutput { faults: vec![fault], ..JobOutput::default() }),
                )
            }
            written => written,
        },
    }
}

/// Files, by way of the parent.
struct Parent<'p> {
    read: &'p mut dyn Read,
    write: &'p mut dyn Write,
    broken: Option<Error>,
}

impl Files for Parent<'_> {
    fn import(&mut self, from: u32, specifier: &str) -> ImportResolution {
        let question = WorkerMessage::Import { from, specifier: specifier.to_owned() };
        let answer = frames::write(self.write, &question).and_then(|()| frames::read::<Answer>(self.read));
        answer.unwrap_or_else(|error| {
            self.broken = Some(error);
            ImportResolution::Refused { what: "the compiler is gone".to_owned(), help: None }
        })
    }
}
