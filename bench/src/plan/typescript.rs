//! A thousand plans in TypeScript, built by the binary, beside what starting as many processes takes alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use super::aims::Aims;
use super::turns::Pace;
use crate::report::{Report, row};

/// How many plans.
const PLANS: usize = 1_000;

/// The aim, for two cores.
const AIM: Duration = Duration::from_secs(10);

/// Ticks a second of the times in /proc.
const TICKS: f64 = 100.0;

pub(super) fn report(report: &mut Report, aims: &mut Aims, pace: Pace) -> io::Result<()> {
    let count = if pace.rounds > 2 { PLANS } else { PLANS / 50 };
    let folder = std::env::temp_dir().join(format!("anabranch-bench-typescript-{}", std::process::id()));
    let kept = TempProject(folder.clone());
    let plans = write_plans(&folder, count)?;
    let binary = std::env::current_exe()?.with_file_name("anabranch");
    let build = |arguments: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(["plan", "build"]).args(arguments).current_dir(&folder);
        timed(command.stdout(Stdio::null()).stderr(Stdio::null()))
    };
    let first = build(&[])?;
    let again = build(&["--check"])?;
    let mut floor = Command::new("sh");
    floor.args(["-c", &format!("i=0; while [ $i -lt {count} ]; do /bin/true; i=$((i+1)); done")]);
    let floor = timed(&mut floor)?;
    drop(kept);
    report.heading("Plans in TypeScript");
    report.say(format_args!(
        "{count} plans, each the example `feed` with its fragment under a name of its own ({plans} bytes of source in all), \
        compiled by `anabranch plan build` with all checks, each plan's code in a process of its own. The floor starts as many \
        processes that do nothing, one after the other.\n"
    ));
    let mut rows = vec![row(["", "wall, s", "CPU, s", "CPU a plan, ms"])];
    for (what, (wall, cpu)) in
        [("built", first), ("checked to be up to date", again), ("floor: processes that do nothing", floor)]
    {
        let each = cpu / count as f64 * 1e3;
        rows.push(row([
            what,
            &format!("{:.2}", wall.as_secs_f64()),
            &format!("{cpu:.2}"),
            &format!("{each:.2}"),
        ]));
    }
    report.table(&rows);
    let scaled = first.0.mul_f64(PLANS as f64 / count as f64);
    aims.add(
        "1,000 plans in TypeScript are built in 10 s",
        format!("{:.1} s", scaled.as_secs_f64()),
        scaled < AIM,
    );
    Ok(())
}

/// A folder that goes when it is done with.
struct TempProject(PathBuf);

impl Drop for TempProject {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A project with so many plans; how long their sources are in all.
fn write_plans(folder: &Path, count: usize) -> io::Result<usize> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/plans").canonicalize()?;
    fs::create_dir_all(folder.join("plans"))?;
    let registry = examples.join("registry");
    fs::write(
        folder.join("anabranch.toml"),
        format!("[plan]\nregistry = '{}'\nplans = 'plans'\n", registry.display()),
    )?;
    let source = fs::read_to_string(examples.join("plans/feed.plan.ts"))?;
    let fragment = fs::read_to_string(examples.join("plans/posts.fragment.ts"))?;
    fs::write(folder.join("plans/posts.fragment.ts"), &fragment)?;
    for number in 0..count {
        let text = source.replace("name: \"feed\"", &format!("name: \"feed_{number}\""));
        fs::write(folder.join(format!("plans/feed_{number}.plan.ts")), text)?;
    }
    Ok(count * (source.len() + fragment.len()))
}

/// Wall time of a command, and CPU time of it and all that it waited for, in seconds.
fn timed(command: &mut Command) -> io::Result<(Duration, f64)> {
    let (start, before) = (Instant::now(), children_cpu()?);
    let status = command.status()?;
    let wall = start.elapsed();
    if !status.success() {
        return Err(io::Error::other(format!("{command:?}: {status}")));
    }
    Ok((wall, children_cpu()? - before))
}

fn children_cpu() -> io::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name before it may hold spaces.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(13) + ticks(14)) / TICKS)
}
