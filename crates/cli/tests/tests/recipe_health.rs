//! Damage to a store reaches people: one log line, a row in `status`, an exit code.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::binary::{CommandOutput, in_folder};
use crate::recipe::{empty, recipe};
use crate::recipe_served::Server;

const VALUES: [&str; 3] = ["the first value", "the second value", "the third value"];

/// A folder with the store of a server that was killed, so that only the log has the values.
fn killed(test: &str) -> PathBuf {
    let folder = empty(test);
    let server = Server::begin(&folder);
    for value in VALUES {
        fs::write(folder.join("value.txt"), value).unwrap();
        let put = recipe(&folder, "put value.txt");
        assert_eq!(put.code, 0, "{}", put.shown());
        assert_eq!(recipe(&folder, &format!("pin {}", put.stdout.trim())).code, 0);
    }
    assert_eq!(server.end(Signal::KILL), None);
    folder
}

/// The same, with one bit flipped in the second value.
fn damaged(test: &str) -> PathBuf {
    let folder = killed(test);
    flip(&folder.join(".anabranch"), VALUES[1]);
    folder
}

/// Flips a bit of a value in the log of a store.
fn flip(store: &Path, value: &str) {
    let mut flipped = 0;
    for file in fs::read_dir(store.join("log")).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let places: Vec<usize> =
            (0..bytes.len()).filter(|place| bytes[*place..].starts_with(value.as_bytes())).collect();
        places.iter().for_each(|place| bytes[place + 4] ^= 1);
        flipped += places.len();
        fs::write(path, bytes).unwrap();
    }
    assert!(flipped > 0, "the log has the value");
}

/// Stderr without the times, which are never the same twice.
fn lines(stderr: &str) -> Vec<String> {
    let line = |line: &str| match line.split_once(' ') {
        Some((time, rest)) if time.ends_with('Z') => rest.trim_start().to_owned(),
        _ => line.to_owned(),
    };
    stderr.lines().map(line).collect()
}

fn check(said: &CommandOutput, expected: &Expect) {
    expected.assert_eq(&format!("{}\nexit {}\n", lines(&said.stderr).join("\n"), said.code));
}

#[test]
fn a_loss_is_one_log_line_and_exit_code_3() {
    let folder = damaged("health_lost");
    let said = recipe(&folder, "pins");
    assert_eq!(said.stdout.lines().count(), 3, "the result is printed: {}", said.shown());
    check(
        &said,
        &expect![[r#"
            ERROR anabranch_content: opened after a crash: at least 1 acknowledged item lost; log/00000001.log is unreadable for 72 bytes from byte 147; 5 records read again from the log clean=false replayed=5 unfinished=0 unreadable=1 lost=1
            exit 3
        "#]],
    );
    assert_eq!(recipe(&folder, "scrub").code, 0, "what is left is whole");
}

#[test]
fn the_log_can_be_json_or_off_and_a_loss_accepted() {
    let folder = damaged("health_json");
    let said = recipe(&folder, "pins --log json");
    assert_eq!((said.code, said.stderr.lines().count()), (3, 1), "{}", said.shown());
    let line: Json = serde_json::from_str(&said.stderr).unwrap();
    assert_eq!(
        (&line["level"], &line["target"], &line["lost"]),
        (&"ERROR".into(), &"anabranch_content".into(), &1.into()),
        "{line}"
    );
    let folder = damaged("health_off");
    let said = recipe(&folder, "pins --log off");
    assert_eq!((said.code, said.stderr.as_str()), (3, ""));
    let folder = damaged("health_accepted");
    let said = recipe(&folder, "pins --accept-loss");
    assert_eq!((said.code, said.stderr.lines().count()), (0, 1), "{}", said.shown());
}

#[test]
fn a_crash_without_damage_is_worth_a_line_at_info_only() {
    let folder = killed("health_crash");
    let copy = folder.join("copy");
    fs::create_dir_all(&copy).unwrap();
    copy_all(&folder.join(".anabranch"), &copy);
    let said = recipe(&folder, "pins");
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    check(
        &recipe(&folder, "pins --data copy --log info"),
        &expect![[r#"
            INFO anabranch_content: opened after a crash: 6 records read again from the log clean=false replayed=6 unfinished=0 unreadable=0
            exit 0
        "#]],
    );
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&to).unwrap();
            copy_all(&entry.path(), &to);
        } else if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn damage_met_by_a_reader_says_what_is_lost() {
    let folder = empty("health_read");
    fs::write(folder.join("value.txt"), VALUES[0]).unwrap();
    assert_eq!(recipe(&folder, "put value.txt --ref value").code, 0);
    assert_eq!(recipe(&folder, "add uppercase/1.0.0 -i value --ref shout").code, 0);
    assert_eq!(recipe(&folder, "get shout").stdout, VALUES[0].to_uppercase());

    // The store was closed in order, so it is the reader that finds the damage. The value is computed again.
    flip(&folder.join(".anabranch"), &VALUES[0].to_uppercase());
    let said = recipe(&folder, "get shout");
    assert_eq!(said.stdout, VALUES[0].to_uppercase());
    check(
        &said,
        &expect![[r#"
            WARN anabranch_content: derivable data is damaged and was moved to quarantine; it is derived again when needed address=2f544078d8b773d5a0f87bdb0d385115b2996fb20b783ce0d88ad03544a69dbc what="its record in segment 3 of the log is damaged"
            exit 0
        "#]],
    );

    flip(&folder.join(".anabranch"), VALUES[0]);
    check(
        &recipe(&folder, "get value"),
        &expect![[r#"
            ERROR anabranch_content: acknowledged data is damaged and was moved to quarantine; put it again address=02308c5c1a64befbae251cf3fdeb0870b2b86540e536e9df80e0dd26a2797feb what="its record in segment 1 of the log is damaged"
            error: 02308c5c1a64befbae251cf3fdeb0870b2b86540e536e9df80e0dd26a2797feb is neither a blob nor a recipe here; it was damaged
            exit 1
        "#]],
    );
}

#[test]
fn status_has_a_row_for_health() {
    let folder = damaged("health_status");
    let row = |said: &CommandOutput| {
        said.stdout.lines().find(|line| line.starts_with("health")).map(str::to_owned).unwrap_or_default()
    };
    let said = recipe(&folder, "status");
    assert_eq!((said.code, row(&said).as_str()), (3, "health     1 acknowledged item lost; see the log"));
    let said = recipe(&folder, "status");
    assert_eq!((said.code, row(&said).as_str()), (0, "health     fine"), "it was told");
    let said = recipe(&folder, "status --json");
    let status: Json = serde_json::from_str(&said.stdout).unwrap();
    let fine = r#"{"damaged":0,"diverged":0,"failures":0,"fine":true,"index_damaged":false,"index_rebuilt":0,"lost":0,"over_quota":false}"#;
    assert_eq!(status["health"].to_string(), fine);
}

#[test]
fn a_server_tells_of_losses_and_exits_with_3() {
    let folder = damaged("health_served");
    let server = Server::begin_with(&folder, &[]);
    let said = recipe(&folder, "status --json");
    assert_eq!(said.code, 0, "the server's losses are the server's to report: {}", said.shown());
    let status: Json = serde_json::from_str(&said.stdout).unwrap();
    let lost = r#"{"damaged":0,"diverged":0,"failures":0,"fine":false,"index_damaged":false,"index_rebuilt":0,"lost":1,"over_quota":false}"#;
    assert_eq!(status["health"].to_string(), lost);
    let token = fs::read_to_string(folder.join(".anabranch/token")).unwrap();
    assert_eq!(http_status(&server.url, token.trim())["health"].to_string(), lost);
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    assert_eq!(server.end(Signal::TERM), Some(3));
    let log = fs::read_to_string(folder.join("stderr.txt")).unwrap();
    expect![[r#"
        ERROR anabranch_content: opened after a crash: at least 1 acknowledged item lost; log/00000001.log is unreadable for 72 bytes from byte 147; 5 records read again from the log clean=false replayed=5 unfinished=0 unreadable=1 lost=1
        INFO anabranch::serve: opened the store store=.anabranch blobs=2 recipes=0 used_bytes=310
        INFO anabranch::serve: requests need a token token_file=.anabranch/token console=http://127.0.0.1:PORT/
        INFO anabranch::serve: listening; try: anabranch recipe status --server http://127.0.0.1:PORT address=127.0.0.1:PORT
        INFO anabranch::serve: shut down
    "#]]
    .assert_eq(&(lines(&log).join("\n") + "\n").replace(&port, "PORT"));

    let folder = damaged("health_served_accepted");
    let server = Server::begin_with(&folder, &["--accept-loss", "--log", "json"]);
    assert_eq!(server.end(Signal::INT), Some(0));
    let log = fs::read_to_string(folder.join("stderr.txt")).unwrap();
    let levels: Vec<Json> =
        log.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()["level"].take()).collect();
    assert_eq!(levels, ["ERROR", "INFO", "INFO", "INFO", "INFO"], "{log}");
}

fn http_status(url: &str, token: &str) -> Json {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let head = format!("host: localhost\r\nauthorization: Bearer {token}\r\nconnection: close");
    stream.write_all(format!("GET /v1/status HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn a_quota_bounds_what_is_kept() {
    let folder = empty("health_quota");
    fs::write(folder.join("large.bin"), vec![7; 100_000]).unwrap();
    let said = recipe(&folder, "put large.bin --quota 64KiB");
    assert!(said.code == 1 && said.stderr.contains("its quota of 64 KiB"), "{}", said.shown());
    assert_eq!(recipe(&folder, "put large.bin --quota 1MiB").code, 0);
    let server = Server::begin_with(&folder, &["--quota", "1MB", "--cache", "0"]);
    fs::write(folder.join("larger.bin"), vec![8; 1_000_000]).unwrap();
    let said = recipe(&folder, "put larger.bin");
    assert!(said.code == 1 && said.stderr.contains("quota"), "{}", said.shown());
    assert_eq!(server.end(Signal::TERM), Some(0));
}

#[test]
fn wrong_options_name_the_choices() {
    let folder = empty("health_usage");
    let check = |args: &[&str], expected: Expect| expected.assert_eq(&in_folder(&folder, args, "").shown());
    check(
        &["recipe", "pins", "--log", "xml"],
        expect![[r#"
            stderr: error: invalid value 'xml' for '--log <FORMAT>': expected text or json, or a level (off, error, warn, info, debug), or both with a comma in between, as in json,debug
            stderr:
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    check(
        &["serve", "--quota", "10 gb"],
        expect![[r#"
            stderr: error: invalid value '10 gb' for '--quota <SIZE>': a size looks like 512MiB, 1.5GiB, 10GB or 1048576; units are B, KB, MB, GB, TB, KiB, MiB, GiB, TiB
            stderr:
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    check(
        &["recipe", "pins", "--quota", "0"],
        expect![[r#"
            stderr: error: invalid value '0' for '--quota <SIZE>': a quota of 0 leaves no room for anything
            stderr:
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
}
