//! `serve`, and `recipe` beside it; bytes through pipes; large values.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anabranch_content::Address;

use crate::recipe::{empty, recipe};

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(args).current_dir(folder).env("NO_COLOR", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Runs a command with bytes as they are.
fn bytes(folder: &Path, args: &[&str], stdin: &[u8]) -> Vec<u8> {
    let mut child = command(folder, args).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let output = std::thread::scope(|threads| {
        threads.spawn(move || pipe.write_all(stdin));
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{args:?}");
    output.stdout
}

/// A server, killed when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub(crate) fn begin(folder: &Path) -> Server {
        Server::begin_with(folder, &[])
    }

    /// With further options. Its log is in `stderr.txt`.
    pub(crate) fn begin_with(folder: &Path, options: &[&str]) -> Server {
        Server::begin_at(folder, "127.0.0.1:0", options)
    }

    /// An address of one server: no other program gets its port once the server has ended, as all others are on
    /// 127.0.0.1 or have an address of their own.
    pub(crate) fn own_address() -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let (id, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        format!("127.{}.{}.{}:0", number % 250 + 1, id / 250 % 250, id % 250)
    }

    /// At an address, which may be that of an earlier server.
    pub(crate) fn begin_at(folder: &Path, address: &str, options: &[&str]) -> Server {
        let args = [&["serve", "--listen", address], options].concat();
        let log = std::fs::File::create(folder.join("stderr.txt")).unwrap();
        let mut child = command(folder, &args).stderr(log).spawn().unwrap();
        let mut line = String::new();
        // It says where it listens, or ends.
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Server { child, url }
    }

    pub(crate) fn end(mut self, signal: rustix::process::Signal) -> Option<i32> {
        let id = i32::try_from(self.child.id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = Vec::with_capacity(len + 8);
    while noise.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        noise.extend((state ^ state >> 29).to_le_bytes());
    }
    noise.truncate(len);
    noise
}

#[test]
fn bytes_come_out_of_pipes_as_they_went_in() {
    let folder = empty("recipe_pipes");
    for len in [0, 1, 255, 300_000] {
        let given = noise(len);
        let address = String::from_utf8(bytes(&folder, &["recipe", "put", "-"], &given)).unwrap();
        assert_eq!(address.trim(), Address::of(&given).to_string());
        assert_eq!(bytes(&folder, &["recipe", "get", address.trim()], b""), given);
    }
    let server = Server::begin(&folder);
    let given = noise(3_000_000);
    let address = String::from_utf8(bytes(&folder, &["recipe", "put", "-"], &given)).unwrap();
    assert_eq!(bytes(&folder, &["recipe", "get", address.trim()], b""), given);
    drop(server);
}

#[test]
fn who_stops_reading_an_archive_is_told_nothing() {
    let folder = empty("recipe_unread");
    bytes(&folder, &["recipe", "put", "-", "--ref", "noise"], &noise(1 << 20));
    let mut export = command(&folder, &["recipe", "export", "-"]).stderr(Stdio::piped()).spawn().unwrap();
    drop(export.stdout.take());
    let output = export.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}

#[test]
fn a_large_value_goes_to_a_file() {
    let folder = empty("recipe_large");
    let given = noise(100 << 20);
    std::fs::write(folder.join("large.bin"), &given).unwrap();
    assert_eq!(recipe(&folder, "put large.bin --ref large").code, 0);
    assert_eq!(recipe(&folder, "add identity/1.0.0 -i large --ref same").code, 0);
    let said = recipe(&folder, "get same -o same.bin");
    assert!(said.code == 0 && said.stderr.starts_with("100 MiB, computed with 1 recipe"), "{}", said.shown());
    assert!(std::fs::read(folder.join("same.bin")).unwrap() == given);
    let said = recipe(&folder, "get same -o part.bin --range 1000000..1000010 --json");
    assert!(said.stdout.contains(r#""written": 10"#), "{}", said.shown());
    assert_eq!(std::fs::read(folder.join("part.bin")).unwrap(), given[1_000_000..1_000_010]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn commands_talk_to_the_server_that_has_the_store() {
    let folder = empty("recipe_served");
    std::fs::write(folder.join("a.txt"), "ab").unwrap();
    recipe(&folder, "put a.txt --ref a");
    let server = Server::begin(&folder);
    let file = "[recipe.twice]\nfunction = \"concat/1.0.0\"\ninputs = [\"ref:a\", \"ref:a\"]\nref = true\n";
    std::fs::write(folder.join("graph.toml"), file).unwrap();
    let added = recipe(&folder, "add --file graph.toml");
    assert_eq!(added.code, 0, "{}", added.shown());
    for _ in 0..3 {
        assert_eq!(recipe(&folder, "get twice").stdout, "abab");
    }
    let far = format!("get twice --data elsewhere --server {}", server.url);
    let refused = recipe(&folder, &far);
    assert!(refused.code == 1 && refused.stderr.contains("--token-file FILE"), "{}", refused.shown());
    let far = recipe(&folder, &format!("{far} --token-file .anabranch/token"));
    assert_eq!(far.stdout, "abab", "{}", far.shown());
    let status = recipe(&folder, "status --json");
    assert!(
        status.stdout.contains(r#""gets": 4"#) && status.stdout.contains(r#""computed": 1"#),
        "{}",
        status.shown()
    );
    for (command, told) in [
        ("get nothing", "nothing is named"),
        ("add nobody/9", "nobody/9"),
        ("ref history twice", "since (UTC)"),
        ("pin twice", "pinned"),
        ("pins", ""),
        ("invalidate a --cascade --detail", "forgot 1 value"),
        ("resolve twice", "concat/1.0.0"),
        ("collect --dry-run", "would remove"),
        ("scrub", "all is well"),
        ("export all.archive", "recipe"),
        ("import all.archive", "of them new"),
        ("functions concat", "concat/1.0.0"),
    ] {
        let said = recipe(&folder, command);
        assert!(said.stdout.contains(told) || said.stderr.contains(told), "{command}: {}", said.shown());
    }
    let second = crate::binary::in_folder(&folder, &["serve", "--listen", "127.0.0.1:0"], "");
    assert!(second.code == 1 && second.stderr.contains("in use by process"), "{}", second.shown());
    assert_eq!(server.end(rustix::process::Signal::TERM), Some(0));
    let local = recipe(&folder, "status --json");
    assert!(!local.stdout.contains("gets"), "the store is free again: {}", local.shown());
    assert_eq!(recipe(&folder, "get twice").stdout, "abab");
}

#[test]
fn a_killed_server_leaves_what_was_acknowledged() {
    let folder = empty("recipe_killed");
    let server = Server::begin(&folder);
    let address = bytes(&folder, &["recipe", "put", "-", "--ref", "kept"], b"durable");
    assert_eq!(server.end(rustix::process::Signal::KILL), None);
    let said = recipe(&folder, "get kept");
    assert_eq!(said.stdout, "durable", "{}", said.shown());
    assert_eq!(recipe(&folder, "ref get kept").stdout.as_bytes(), address);
    let again = Server::begin(&folder);
    assert_eq!(recipe(&folder, "get kept").stdout, "durable");
    drop(again);
}
