//! `serve` as operators use it: tokens, logs without secrets, SIGTERM under load.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;

use anabranch_content::Address;
use rustix::process::Signal;

use crate::binary::in_folder;
use crate::recipe::{empty, recipe};
use crate::recipe_served::{Server, noise};

/// The answer to a request with these header lines.
fn ask(url: &str, line: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let folder = empty("token");
    let early = in_folder(&folder, &["token", "list"], "");
    assert!(early.code == 1 && early.stderr.contains("there is no store in .anabranch"), "{}", early.shown());
    let server = Server::begin(&folder);
    let made = in_folder(&folder, &["token", "add", "ci", "--scope", "read", "--expires", "30d"], "");
    let token = made.stdout.trim();
    assert!(token.starts_with("anb_"), "{}", made.shown());
    let listed = in_folder(&folder, &["token", "list"], "").stdout;
    assert!(listed.contains("ci") && listed.contains("read") && !listed.contains(token), "{listed}");
    assert!(!fs::read_to_string(folder.join(".anabranch/tokens.toml")).unwrap().contains(token));
    let headers = format!("Authorization: Bearer {token}\r\n");
    // The server looks at the file once per second.
    while !ask(&server.url, "GET /v1/refs", &headers).starts_with("HTTP/1.1 200") {}
    assert!(ask(&server.url, "GET /v1/config", &headers).starts_with("HTTP/1.1 403"));
    fs::write(folder.join("ci.token"), token).unwrap();
    fs::set_permissions(folder.join("ci.token"), fs::Permissions::from_mode(0o600)).unwrap();
    let put = format!("put ci.token --data elsewhere --server {} --token-file ci.token", server.url);
    let refused = recipe(&folder, &put);
    assert!(refused.code == 1 && refused.stderr.contains("needs `run`"), "{}", refused.shown());
    // The server of this folder is told its own token.
    assert_eq!(recipe(&folder, &format!("status --server {}", server.url)).code, 0);
    assert_eq!(in_folder(&folder, &["token", "revoke", "ci"], "").code, 0);
    while !ask(&server.url, "GET /v1/refs", &headers).starts_with("HTTP/1.1 401") {}
    assert_eq!(server.end(Signal::TERM), Some(0));

    fs::set_permissions(folder.join(".anabranch/token"), fs::Permissions::from_mode(0o640)).unwrap();
    let open = in_folder(&folder, &["serve", "--listen", "127.0.0.1:0"], "");
    assert!(
        open.code == 1 && open.stderr.contains("other users can read the token (mode 640)"),
        "{}",
        open.shown()
    );
}

#[test]
fn no_secret_is_logged() {
    let folder = empty("serve_log");
    let server = Server::begin_with(&folder, &["--log", "json,debug"]);
    let local = fs::read_to_string(folder.join(".anabranch/token")).unwrap().trim().to_owned();
    let other = in_folder(&folder, &["token", "add", "ci"], "").stdout.trim().to_owned();
    let secrets = [local.as_str(), &other, "anb_wrong-but-secret"];
    let mut answers = String::new();
    for token in secrets {
        let headers = format!("Authorization: Bearer {token}\r\nX-Request-Id: busy-1\r\n");
        for line in [
            "GET /v1/status".to_owned(),
            format!("GET /v1/refs?token={token}"),
            format!("GET /v1/refs/{token}"),
            format!("GET /v1/recipes/{token}/value?timeout={token}"),
            "GET /v1/config".to_owned(),
            "GET /metrics".to_owned(),
            "GET /nothing".to_owned(),
        ] {
            let answer = ask(&server.url, &line, &headers);
            // A client may be told its own words.
            if !line.contains(token) {
                answers.push_str(&answer);
            }
        }
        answers.push_str(&ask(&server.url, "GET /v1/refs", &format!("Authorization: Basic {token}\r\n")));
    }
    assert_eq!(server.end(Signal::TERM), Some(0));
    let log = fs::read_to_string(folder.join("stderr.txt")).unwrap();
    assert!(log.contains("busy-1") && log.contains("\"path\":\"/v1/status\""), "{log}");
    for secret in secrets {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
        assert!(!answers.contains(secret), "{secret} is in an answer");
    }
}

/// Uploads that the server has begun to read when it is told to end are answered, and are there afterwards.
#[test]
fn sigterm_under_load_loses_no_accepted_request() {
    let folder = empty("serve_term");
    let server = Server::begin(&folder);
    let token = fs::read_to_string(folder.join(".anabranch/token")).unwrap();
    let blobs: Vec<Vec<u8>> = (0..16_u8).map(|at| [&noise(150_000)[..], &[at]].concat()).collect();
    let mut streams: Vec<TcpStream> = Vec::new();
    for blob in &blobs {
        let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
        let head = format!(
            "POST /v1/blobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\nexpect: 100-continue\r\n\
             content-length: {}\r\n\r\n",
            token.trim(),
            blob.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // The server reads the body now, so the request is accepted.
        let mut answer = [0; 25];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(&blob[..1000]).unwrap();
        streams.push(stream);
    }
    let id = i32::try_from(server.child.id()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
    // Nobody new is let in.
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    while TcpStream::connect(&address).is_ok() {}
    for (stream, blob) in streams.iter_mut().zip(&blobs) {
        stream.write_all(&blob[1000..]).unwrap();
    }
    for mut stream in streams {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
    let mut server = server;
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    for blob in &blobs {
        let found = recipe(&folder, &format!("get {} -o out.bin", Address::of(blob)));
        assert_eq!(found.code, 0, "{}", found.shown());
        assert!(fs::read(folder.join("out.bin")).unwrap() == *blob);
    }
}
