//! Child processes that check code: one per batch, each in its own folder and with a timeout.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::scope;
use std::time::Duration;

use anabranch_engine::Check;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::fault::Fault;

/// The longest output.
const MAX_OUTPUT: u64 = 64 << 20;

/// Time between two looks at whether the work is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// Runs a program and returns its output, at most this late.
pub(super) fn run<A: AsRef<OsStr>>(
    program: &Path,
    arguments: &[A],
    folder: &Path,
    wall: Duration,
    check: &Check<'_>,
) -> Result<String, Fault> {
    let name = program.display();
    let fault = |problem: String| Fault::transient("validator", format!("`{name}` {problem}"));
    let mut command = Command::new(program);
    // A separate process group, so that its child processes end with it.
    command.args(arguments).current_dir(folder).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| fault(format!("could not be started: {error}")))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (done, is_done) = channel::<()>();
    let (output, errors, late) = scope(|threads| {
        let errors = threads.spawn(move || read(stderr));
        let output = threads.spawn(move || {
            let output = read(stdout);
            drop(done);
            output
        });
        let late = watch(child, &is_done, wall, check);
        (output.join().unwrap_or_default(), errors.join().unwrap_or_default(), late)
    });
    if late {
        return Err(fault(format!("did not end within {} s and was killed", wall.as_secs_f64())));
    }
    if output.trim().is_empty() {
        let last = errors.lines().last().unwrap_or("no message");
        return Err(fault(format!("gave no result: {last}")));
    }
    Ok(output)
}

fn read(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // A broken pipe ends the output.
        let _ = pipe.take(MAX_OUTPUT).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits until the output has ended, then ends and reaps the child. Says whether its time was over.
fn watch(mut child: Child, is_done: &Receiver<()>, wall: Duration, check: &Check<'_>) -> bool {
    let mut left = wall;
    let late = loop {
        match is_done.recv_timeout(LOOK.min(left)) {
            Err(RecvTimeoutError::Timeout) => left = left.saturating_sub(LOOK),
            _ => break false,
        }
        if left.is_zero() || check.should_stop() {
            break true;
        }
    };
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.kill();
    let _ = child.wait();
    late
}

/// A new folder for files, removed when dropped.
pub(super) struct TempFolder(PathBuf);

impl TempFolder {
    pub(super) fn new() -> Result<TempFolder, Fault> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let base = std::env::temp_dir();
        // Another process may have left a folder with this number.
        for _ in 0..1000 {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = base.join(format!("anabranch-validation-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(TempFolder(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unwritable(&path, &error)),
            }
        }
        Err(Fault::permanent("validator", format!("no new folder can be made in `{}`", base.display())))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), Fault> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(|error| unwritable(&path, &error))
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // A folder that stays is the system's to clean up.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Fault {
    Fault::transient("validator", format!("`{}` cannot be written: {error}", path.display()))
}
