//! A large file put on the command line, beside `b3sum` of it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::turns::Turns;
use crate::content::ground::Ground;
use crate::content::verdict;
use crate::report::{Report, row};
use crate::serve::beside;

/// A file system in memory, so that the speed of a disk does not decide.
const MEMORY: &str = "/dev/shm";

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    let size = 4 * ground.sizes.blob;
    report.heading(&format!("A file of {} MiB on the command line", size >> 20));
    report.say(ABOUT);
    let mut rows = vec![row(["store", "command", "s", "s CPU", "times b3sum", "aim", "met?"])];
    let places =
        [("in memory", PathBuf::from(MEMORY)), ("on disk", ground.folder("files").path().to_owned())];
    for (name, root) in places {
        let folder = root.join(format!("anabranch-bench-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let measured = measure(ground, &folder, size);
        fs::remove_dir_all(&folder)?;
        let commands = measured?;
        let [b3sum, ..] = &commands;
        for (place, (command, turns)) in COMMANDS.iter().zip(&commands).enumerate() {
            let times = turns.times(b3sum);
            let is_aim = (place, name) == (2, "in memory");
            let (aim, met) = if is_aim { ("<= 1.3x", verdict(times <= 1.3)) } else { ("", "-") };
            let seconds = |nanos: f64| format!("{:.2}", nanos / 1e9);
            let [wall, cpu] = [turns.wall(), turns.cpu()].map(seconds);
            rows.push(row([name, command, &wall, &cpu, &format!("{times:.2}x"), aim, met]));
        }
    }
    report.table(&rows);
    Ok(())
}

const ABOUT: &str = "Whole processes on a file that the system has in memory. `b3sum` reads and hashes it on all cores. \
    `b3sum, cp` is that and a copy with `cp` that is synced. `put` does both, hashing and a synced copy, in a new store; \
    `put again` finds the blob there, and compares its bytes.\n";

const COMMANDS: [&str; 4] = ["b3sum", "b3sum, cp", "put", "put again"];

fn measure(ground: &Ground, folder: &Path, size: u64) -> io::Result<[Turns; 4]> {
    let mut turns: [Turns; 4] = Default::default();
    let (file, copy, store) = (folder.join("file"), folder.join("copy"), folder.join("store"));
    write(&file, size)?;
    let ours = beside("anabranch")?;
    let put = || Command::new(&ours).args(["recipe", "put", "--data"]).arg(&store).arg(&file).output();
    for turn in 0..=ground.sizes.turns.min(5) {
        let hash = || Command::new("b3sum").arg("--no-names").arg(&file).output();
        let hashed = succeeded(&turns[0].time_processes(1, hash)?)?;
        turns[1].time_processes(1, || {
            succeeded(&hash()?)?;
            succeeded(&Command::new("cp").arg(&file).arg(&copy).output()?)?;
            succeeded(&Command::new("sync").arg(&copy).output()?)
        })?;
        fs::remove_file(&copy)?;
        for place in [2, 3] {
            let address = succeeded(&turns[place].time_processes(1, put)?)?;
            assert!(address.starts_with(&hashed.trim()[..16]), "another address than b3sum's: {address}");
        }
        fs::remove_dir_all(&store)?;
        ground.settle()?;
        if turn == 0 {
            turns.iter_mut().for_each(Turns::forget);
        }
    }
    Ok(turns)
}

fn succeeded(output: &std::process::Output) -> io::Result<String> {
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

/// Bytes that do not repeat.
fn write(file: &Path, size: u64) -> io::Result<()> {
    let mut file = fs::File::create(file)?;
    let (mut reader, mut piece) = (blake3::Hasher::new().finalize_xof(), vec![0; 1 << 20]);
    for _ in 0..size >> 20 {
        reader.fill(&mut piece);
        file.write_all(&piece)?;
    }
    file.sync_all()
}
