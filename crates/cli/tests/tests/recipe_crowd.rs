//! 64 commands at once on one store, whose owner is killed again and again.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, mpsc};

use anabranch_content::Address;
use rustix::process::{Pid, Signal, kill_process};

use crate::binary::soon;
use crate::recipe::{empty, recipe};
use crate::recipe_served::noise;

const COMMANDS: usize = 64;

/// The owner is killed so often. A command that is killed is started again.
const KILLS: usize = 24;

/// The processes that are under way and were not killed: none of them is reaped, so their ids are theirs.
type Alive = Mutex<HashSet<u32>>;

struct EndedCommand {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: String,
}

/// Runs a command to its end.
fn run(folder: &Path, args: &[&str], stdin: &[u8], alive: &Alive) -> EndedCommand {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.arg("recipe").args(args).current_dir(folder).env("NO_COLOR", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    alive.lock().unwrap().insert(child.id());
    // A killed command does not read all of it.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let (mut stdout, mut stderr) = (Vec::new(), String::new());
    child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    alive.lock().unwrap().remove(&child.id());
    EndedCommand { status: child.wait().unwrap(), stdout, stderr }
}

/// Kills the owner of the store, if it is one of these commands.
fn kill_owner(folder: &Path, alive: &Alive) -> bool {
    let lock = std::fs::read_to_string(folder.join(".anabranch/lock")).unwrap();
    let id = lock.split_whitespace().nth(1).and_then(|id| id.parse::<u32>().ok());
    // One that is dying already is not killed once more.
    let Some(id) = id.filter(|id| alive.lock().unwrap().remove(id)) else { return false };
    kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), Signal::KILL).is_ok()
}

/// The command of one of the crowd, and its input.
fn command(number: usize) -> (Vec<String>, Vec<u8>) {
    let name = format!("name-{number}");
    let (command, stdin) = match number % 4 {
        0 => (format!("put - --ref {name}"), blob(number)),
        1 => (format!("add repeat/1.0.0 -i small -p count:={number} --ref {name}"), Vec::new()),
        2 => ("get large".to_owned(), Vec::new()),
        // A command that goes on with the next owner does not conflict with its own change.
        _ if number % 8 == 3 => (format!("ref set {name} small --if-is none"), Vec::new()),
        _ => (format!("ref set {name} small"), Vec::new()),
    };
    (command.split(' ').map(str::to_owned).collect(), stdin)
}

/// Some are packed into the log, some are files.
fn blob(number: usize) -> Vec<u8> {
    let mut bytes = noise(if number.is_multiple_of(8) { 400_000 } else { 3_000 });
    bytes.extend(number.to_le_bytes());
    bytes
}

/// Runs a command until it is not killed. Its name, if it gives one, and the address that it printed.
fn acknowledged(
    folder: &Path,
    number: usize,
    large: &[u8],
    alive: &Alive,
    ended: &mpsc::Sender<()>,
) -> Option<(String, String)> {
    let (args, stdin) = command(number);
    let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
    for _ in 0..=KILLS {
        let EndedCommand { status, stdout, stderr } = run(folder, &args, &stdin, alive);
        ended.send(()).unwrap();
        if status.signal().is_some() {
            // It may have been killed after its change, with which a new command would conflict.
            args.truncate(args.iter().position(|arg| *arg == "--if-is").unwrap_or(args.len()));
            continue;
        }
        // On a busy machine an owner may have no turn for long.
        if stderr.contains("which has not answered for") {
            continue;
        }
        // Others go on when an owner is killed, so a command that is not killed itself does not fail.
        assert!(status.success(), "{args:?} {status}: {stderr}");
        if number % 4 == 2 {
            assert!(stdout == large, "{} bytes; {stderr}", stdout.len());
            return None;
        }
        let address = String::from_utf8(stdout).unwrap().trim().to_owned();
        return Some((format!("name-{number}"), address));
    }
    panic!("{args:?}: killed more often than anything is killed")
}

#[test]
fn nothing_acknowledged_is_lost_when_the_owner_is_killed_again_and_again() {
    let folder = empty("recipe_crowd");
    let large = noise(2 << 20);
    std::fs::write(folder.join("large"), &large).unwrap();
    std::fs::write(folder.join("small"), "small").unwrap();
    assert_eq!(recipe(&folder, "put large --ref large").code, 0);
    assert_eq!(recipe(&folder, "put small --ref small").code, 0);

    let alive = Alive::default();
    let (sender, ended) = mpsc::channel();
    let (kept, kills) = std::thread::scope(|threads| {
        let commands: Vec<_> = (0..COMMANDS)
            .map(|number| {
                let (folder, large, alive, sender) = (&folder, &large, &alive, sender.clone());
                threads.spawn(move || acknowledged(folder, number, large, alive, &sender))
            })
            .collect();
        drop(sender);
        let mut kills = 0;
        // Each command that ends is followed by a kill, of the next owner if there is none now.
        while kills < KILLS && ended.recv().is_ok() {
            kills += soon(|| match kill_owner(&folder, &alive) {
                true => Some(1),
                false => commands.iter().all(|command| command.is_finished()).then_some(0),
            });
        }
        while ended.recv().is_ok() {}
        let kept: Vec<_> = commands.into_iter().filter_map(|command| command.join().unwrap()).collect();
        (kept, kills)
    });

    assert_eq!((kills, kept.len()), (KILLS, COMMANDS / 4 * 3), "all that gives a name was acknowledged");
    let refs = recipe(&folder, "ref list --json");
    let refs: serde_json::Value = serde_json::from_str(&refs.stdout).unwrap();
    for (name, address) in &kept {
        assert_eq!(refs[name], **address, "{name}, after {kills} kills");
        let number: usize = name.strip_prefix("name-").unwrap().parse().unwrap();
        match number % 4 {
            0 => assert_eq!(*address, Address::of(&blob(number)).to_string()),
            3 => assert_eq!(*address, Address::of(b"small").to_string()),
            _ => {}
        }
    }
    let scrub = recipe(&folder, "scrub");
    assert!(scrub.code == 0 && scrub.stderr.ends_with("all is well\n"), "{}", scrub.shown());
    let export = recipe(&folder, "export all.archive --json");
    let export: serde_json::Value = serde_json::from_str(&export.stdout).unwrap();
    assert_eq!(export["missing"], serde_json::json!([]), "every name leads to bytes");
    let incoming = std::fs::read_dir(folder.join(".anabranch/incoming")).map_or(0, Iterator::count);
    assert_eq!(incoming, 0, "nothing half written is left");
}
