//! Several `recipe` commands on one store at once: one owns it, the others talk to it, and go on when it ends.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anabranch_content::Address;
use rustix::process::{Pid, Signal, kill_process};

use crate::binary::in_folder;
use crate::recipe::{empty, recipe};
use crate::recipe_served::{Server, noise};

/// More than pipes and windows hold, so that a get that nobody reads does not end.
const LARGE: usize = 24 << 20;

fn start(folder: &Path, args: &[&str], stdin: Stdio) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.arg("recipe").args(args).current_dir(folder).env("NO_COLOR", "1");
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A folder with a store that has a large blob, `large`.
fn with_large(test: &str) -> (PathBuf, Vec<u8>) {
    let folder = empty(test);
    let large = noise(LARGE);
    std::fs::write(folder.join("large.bin"), &large).unwrap();
    assert_eq!(recipe(&folder, "put large.bin --ref large").code, 0);
    (folder, large)
}

/// A get that has begun and waits for its reader, so it has the store, or talks to the command that does.
fn begun(folder: &Path, large: &[u8]) -> (Child, ChildStdout) {
    let mut get = start(folder, &["get", "large"], Stdio::null());
    let mut stdout = get.stdout.take().unwrap();
    let mut first = vec![0; 1000];
    stdout.read_exact(&mut first).unwrap();
    assert!(first == large[..1000]);
    (get, stdout)
}

/// Reads what is left of a get.
fn ended((mut get, mut stdout): (Child, ChildStdout), large: &[u8]) {
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    let mut told = String::new();
    get.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(get.wait().unwrap().success(), "{told}");
    assert!(rest == large[1000..], "{} bytes; {told}", rest.len());
}

#[test]
fn commands_work_beside_a_long_get() {
    let (folder, large) = with_large("shared_beside");
    let long = begun(&folder, &large);
    let socket = std::fs::metadata(folder.join(".anabranch/socket")).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600, "only the same user may connect");
    std::fs::write(folder.join("a.txt"), "ab").unwrap();
    for (command, told) in [
        ("put a.txt --ref a", ""),
        ("add concat/1.0.0 -i a -i a --ref twice", ""),
        ("get twice", "abab"),
        ("get large --range 0..0", ""),
        ("ref list", "twice"),
        ("export all.archive", "recipe"),
        ("import all.archive", "of them new"),
        ("status", "recipes"),
        ("scrub", "all is well"),
    ] {
        let said = recipe(&folder, command);
        assert!(said.code == 0, "{command}: {}", said.shown());
        assert!(said.stdout.contains(told) || said.stderr.contains(told), "{command}: {}", said.shown());
    }
    let mut export = start(&folder, &["export", "-", "twice"], Stdio::null());
    let mut archive = Vec::new();
    export.stdout.take().unwrap().read_to_end(&mut archive).unwrap();
    assert!(export.wait().unwrap().success() && archive.starts_with(b"anabranch archive"));
    ended(long, &large);
    assert!(!folder.join(".anabranch/socket").exists(), "the owner removes its socket");
    assert_eq!(recipe(&folder, "get twice").stdout, "abab");
}

#[test]
fn a_get_goes_on_where_it_was_when_the_owner_is_killed() {
    let (folder, large) = with_large("shared_killed");
    let mut owner = begun(&folder, &large);
    let next = begun(&folder, &large);
    let last = begun(&folder, &large);
    owner.0.kill().unwrap();
    owner.0.wait().unwrap();
    ended(next, &large);
    ended(last, &large);
    assert_eq!(recipe(&folder, "status").code, 0, "a socket that was left behind is in nobody's way");
}

#[test]
fn a_get_goes_on_where_it_was_when_the_owner_is_done() {
    let (folder, large) = with_large("shared_done");
    let owner = begun(&folder, &large);
    let next = begun(&folder, &large);
    ended(owner, &large);
    ended(next, &large);
}

/// A stranger who can write to the current folder, as in /tmp, cannot offer a store.
#[test]
fn a_store_of_another_user_is_used_only_by_its_name() {
    let folder = empty("shared_strange");
    std::fs::write(folder.join("a.txt"), "ab").unwrap();
    assert_eq!(recipe(&folder, "put a.txt --ref a").code, 0);
    if !rustix::process::geteuid().is_root() {
        return; // Only root can give files away.
    }
    std::os::unix::fs::chown(folder.join(".anabranch"), Some(65_534), None).unwrap();
    for command in ["get a", "put a.txt", "status"] {
        let said = recipe(&folder, command);
        let problem = "belongs to another user; to use it anyway, name it with --data .anabranch";
        assert!(said.code == 1 && said.stderr.contains(problem), "{command}: {}", said.shown());
    }
    for command in ["token list", "runs", "serve --print-config"] {
        let args: Vec<&str> = command.split(' ').collect();
        let said = in_folder(&folder, &args, "");
        assert!(said.stderr.contains("belongs to another user"), "{command}: {}", said.shown());
    }
    assert_eq!(recipe(&folder, "get a --data .anabranch").stdout, "ab");
    let server = Server::begin_with(&folder, &["--data", ".anabranch", "--anonymous", "admin"]);
    assert_eq!(recipe(&folder, "get a --data .anabranch").stdout, "ab", "over the socket");
    assert_eq!(recipe(&folder, &format!("get a --server {}", server.url)).stdout, "ab");
    let below = folder.join("below");
    std::fs::create_dir(&below).unwrap();
    let said = recipe(&below, "get a");
    assert!(
        said.stderr.contains("there is no store in .anabranch here, nor in a folder above"),
        "{}",
        said.shown()
    );
}

#[test]
fn folders_may_have_long_names() {
    let (folder, large) = with_large("shared_long");
    let data = format!("{}/{}", "long".repeat(30), "name".repeat(30));
    std::fs::create_dir_all(folder.join(&data)).unwrap();
    std::fs::rename(folder.join(".anabranch"), folder.join(&data).join("store")).unwrap();
    let data = format!("{data}/store");
    let mut long = start(&folder, &["get", "large", "--data", &data], Stdio::null());
    let mut stdout = long.stdout.take().unwrap();
    let mut first = vec![0; 1000];
    stdout.read_exact(&mut first).unwrap();
    let said = recipe(&folder, &format!("get large --range 5..9 -o part --data {data}"));
    assert_eq!(said.code, 0, "{}", said.shown());
    assert_eq!(std::fs::read(folder.join("part")).unwrap(), large[5..9]);
    ended((long, stdout), &large);
}

#[test]
fn a_pipe_from_the_store_into_itself_changes_nothing() {
    let folder = empty("shared_pipe");
    std::fs::write(folder.join("a.bin"), noise(300_000)).unwrap();
    let address = recipe(&folder, "put a.bin --ref a").stdout;
    for round in 0..20 {
        let mut get = start(&folder, &["get", "a"], Stdio::null());
        let put = start(&folder, &["put", "-", "--ref", "a"], get.stdout.take().unwrap().into());
        let (get, put) = (get.wait_with_output().unwrap(), put.wait_with_output().unwrap());
        let told = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(get.status.success() && put.status.success(), "{round}: {} {}", told(&get), told(&put));
        assert_eq!(String::from_utf8(put.stdout).unwrap(), address, "{round}");
    }
    assert_eq!(recipe(&folder, "ref get a").stdout, address);
}

/// A command before the pipe that failed has written nothing, and the shell does not tell.
#[test]
fn an_empty_stdin_is_told() {
    let folder = empty("shared_empty");
    let put = in_folder(&folder, &["recipe", "put", "-"], "");
    assert_eq!((put.code, put.stdout.trim()), (0, Address::of(b"").to_string().as_str()), "{}", put.shown());
    assert!(put.stderr.starts_with("warning: stdin was empty"), "{}", put.shown());
    assert_eq!(in_folder(&folder, &["recipe", "put", "-"], "a").stderr, "");
}

#[test]
fn a_server_listens_on_the_socket_too() {
    let (folder, large) = with_large("shared_served");
    let server = Server::begin(&folder);
    assert!(folder.join(".anabranch/socket").exists());
    let get = begun(&folder, &large);
    assert_eq!(server.end(Signal::KILL), None);
    ended(get, &large);
    let server = Server::begin(&folder);
    assert_eq!(server.end(Signal::TERM), Some(0));
    assert!(!folder.join(".anabranch/socket").exists());
}

/// Presses Ctrl-C.
fn interrupt(command: &Child) {
    let id = i32::try_from(command.id()).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), Signal::INT).unwrap();
}

#[test]
fn ctrl_c_says_what_is_kept() {
    let (folder, large) = with_large("shared_interrupted");
    let scrub = start(&folder, &["scrub", "--mib-per-second", "1"], Stdio::null());
    // The owner listens for Ctrl-C before it has a socket.
    while !folder.join(".anabranch/socket").exists() {
        std::thread::yield_now();
    }
    interrupt(&scrub);
    let output = scrub.wait_with_output().unwrap();
    let told = "stopped; damage that was found so far is in quarantine\n";
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(130), told));

    // One that waits for its reader cannot end by itself.
    let (get, unread) = begun(&folder, &large);
    interrupt(&get);
    let output = get.wait_with_output().unwrap();
    let told = "stopped; values that were computed are kept\n";
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(130), told));
    drop(unread);
    assert_eq!(recipe(&folder, "status").code, 0);
}

/// On a terminal, which `script` makes, a long get shows its bytes. Ctrl-C clears that line.
#[test]
fn a_terminal_shows_progress_in_bytes_until_ctrl_c() {
    let (folder, _) = with_large("shared_terminal");
    assert_eq!(recipe(&folder, "add brotli_compress/1.0.0 -i large -p quality:=11 --ref packed").code, 0);
    let get = format!("{} recipe get packed -o packed.br", env!("CARGO_BIN_EXE_anabranch"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &get, "/dev/null"]).current_dir(&folder);
    let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut terminal = script.stdout.take().unwrap();
    let (mut said, mut piece) = (String::new(), [0; 4096]);
    while !said.contains(" of 24 MiB") {
        let len = terminal.read(&mut piece).unwrap();
        assert!(len > 0, "it ended: {said:?}");
        said.push_str(&String::from_utf8_lossy(&piece[..len]));
    }
    assert!(said.contains("\r\u{1b}[Kcomputing ["), "{said:?}");
    script.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    terminal.read_to_string(&mut said).unwrap();
    assert_eq!(script.wait().unwrap().code(), Some(130), "{said:?}");
    assert!(said.contains("\r\u{1b}[Kstopped; values that were computed are kept\r\n"), "{said:?}");
    assert!(!folder.join("packed.br").exists());
}

/// Ctrl-C while stdin is read says what stays, as at any other time.
#[test]
fn ctrl_c_while_stdin_is_read_is_told() {
    let folder = empty("recipe_ctrl_c_stdin");
    for (args, told) in [
        (["put", "-"], "stopped; no part of an unfinished file or folder is stored\n"),
        (["import", "-"], "stopped; the items that were imported stay\n"),
    ] {
        let mut command = start(&folder, &args, Stdio::piped());
        let mut stdin = command.stdin.take().unwrap();
        // More than a pipe holds: once it is written, the command reads.
        stdin.write_all(&noise(1 << 20)).unwrap();
        interrupt(&command);
        let ended = command.wait_with_output().unwrap();
        drop(stdin);
        assert_eq!(ended.status.code(), Some(130), "{args:?}: {}", ended.status);
        assert_eq!(String::from_utf8(ended.stderr).unwrap(), told);
    }
    assert!(!folder.join(".anabranch").exists());
}
