//! The time from the start of `anabranch serve` to the first answer of a plan.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::process::ServerProcess;
use crate::plan::Aims;
use crate::report::{Report, row};

/// Each project is started so often, with a new store each time.
const STARTS: usize = 11;

/// The plan that is asked for.
const PLAN: &str = "simple_viewer";

/// The aim for plans in JSON.
const MOST: Duration = Duration::from_millis(50);

pub(super) fn report(report: &mut Report, aims: &mut Aims) -> io::Result<()> {
    report.heading("Start");
    report.say(format_args!(
        "From the start of the process to the first answer, for the ten plans of `examples/plans` and an empty store; the \
         median and the slowest of {STARTS} starts.\n"
    ));
    let mut rows = vec![row(["plans", "median", "slowest"])];
    for (name, left_out) in [("JSON", ".plan.ts"), ("TypeScript", ".plan.json")] {
        let project = Examples::without(left_out)?;
        let mut times = (0..STARTS).map(|_| first_answer(&project.0)).collect::<io::Result<Vec<_>>>()?;
        times.sort();
        let (median, slowest) = (times[STARTS / 2], times[STARTS - 1]);
        let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        rows.push(row([name, &millis(median), &millis(slowest)]));
        if name == "JSON" {
            aims.add("start to first answer, plans in JSON: under 50 ms", millis(median), median < MOST);
        }
    }
    report.table(&rows);
    Ok(())
}

fn first_answer(project: &Path) -> io::Result<Duration> {
    match std::fs::remove_dir_all(project.join("store")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let began = Instant::now();
    let server = ServerProcess::ours(project, &[])?;
    server.answer(PLAN)?;
    Ok(began.elapsed())
}

/// A copy of the example plans in one of their forms. Dropping it removes it.
struct Examples(PathBuf);

impl Examples {
    fn without(ending: &str) -> io::Result<Examples> {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/plans");
        let to = std::env::temp_dir().join(format!("anabranch-bench-start-{}", std::process::id()));
        let examples = Examples(to);
        copy(&from, &examples.0, ending)?;
        Ok(examples)
    }
}

impl Drop for Examples {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Copies a folder without the files of an ending.
fn copy(from: &Path, to: &Path, ending: &str) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type()?.is_dir() {
            true => copy(&path, &target, ending)?,
            false if path.to_string_lossy().ends_with(ending) => {}
            false => drop(std::fs::copy(&path, &target)?),
        }
    }
    Ok(())
}
