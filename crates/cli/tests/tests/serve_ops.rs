//! `serve` as operators use it: tokens, logs without secrets, SIGTERM under load.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anabranch_content::Address;
use rustix::process::Signal;

use crate::binary::{in_folder, soon};
use crate::recipe::{empty, recipe};
use crate::recipe_served::{Server, noise};
use crate::serve_plans::signal;

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
    let answered =
        |status: &str| soon(|| ask(&server.url, "GET /v1/refs", &headers).starts_with(status).then_some(()));
    answered("HTTP/1.1 200");
    assert!(ask(&server.url, "GET /v1/config", &headers).starts_with("HTTP/1.1 403"));
    fs::write(folder.join("ci.token"), token).unwrap();
    fs::set_permissions(folder.join("ci.token"), fs::Permissions::from_mode(0o600)).unwrap();
    let put = format!("put ci.token --data elsewhere --server {} --token-file ci.token", server.url);
    let refused = recipe(&folder, &put);
    assert!(refused.code == 1 && refused.stderr.contains("needs `run`"), "{}", refused.shown());
    // The server of this folder is told its own token.
    assert_eq!(recipe(&folder, &format!("status --server {}", server.url)).code, 0);
    assert_eq!(in_folder(&folder, &["token", "revoke", "ci"], "").code, 0);
    answered("HTTP/1.1 401");
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
    // The same tokens over gRPC.
    for token in secrets {
        fs::write(folder.join("one.token"), token).unwrap();
        fs::set_permissions(folder.join("one.token"), fs::Permissions::from_mode(0o600)).unwrap();
        let remote = format!("status --data elsewhere --server {} --token-file one.token", server.url);
        let said = recipe(&folder, &remote);
        assert!(said.code == 0 || token != local, "{}", said.shown());
        answers.push_str(&said.shown());
    }
    assert_eq!(server.end(Signal::TERM), Some(0));
    let log = fs::read_to_string(folder.join("stderr.txt")).unwrap();
    assert!(log.contains("busy-1") && log.contains("\"path\":\"/v1/status\""), "{log}");
    for secret in secrets {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
        assert!(!answers.contains(secret), "{secret} is in an answer");
    }
}

/// A server of models that refuses every request, and repeats its head in the message. It lives as long as the process.
#[allow(clippy::disallowed_methods, reason = "a server of this test, which has no pool")]
fn repeating_model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                head.extend(byte);
            }
            let message = format!("not allowed: {}", String::from_utf8_lossy(&head));
            let body = serde_json::json!({ "error": { "message": message } }).to_string();
            let length = body.len();
            let head = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close";
            let _ = write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{body}");
            // The request's body is read too, for an early end would reset the connection.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    endpoint
}

/// A Redis server that refuses every command, and repeats it in the message. It lives as long as the process.
#[allow(clippy::disallowed_methods, reason = "a server of this test, which has no pool")]
fn repeating_redis() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let (mut stream, mut piece) = (stream.unwrap(), [0; 4096]);
                while let Ok(read @ 1..) = stream.read(&mut piece) {
                    let said = String::from_utf8_lossy(&piece[..read]).replace("\r\n", " ");
                    if write!(stream, "-ERR not allowed: {said}\r\n").is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

/// The passwords of sources and the keys of model servers.
const SECRETS: [&str; 6] = [
    "redis-pa55word-x",
    "wrong-pa55word-x",
    "sk-model-k3y-x",
    "sk-submitted-k3y-x",
    "header-s3cret-x",
    "http-pa55word-x",
];

/// A project with two plans: one reads from Redis, the other over HTTP.
fn project_with_secrets(folder: &Path, redis: &str, http: &str) {
    for part in ["plans", "registry"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    let endpoint = |id: u32, name: &str| {
        format!(
            "[[endpoint]]\nendpoint_id = \"ep_000{id}\"\nname = \"{name}\"\nkind = \"redis\"\npolicy = {{}}\n\
             resolver = {{ type = \"static\", host = \"127.0.0.1\", port = 6379 }}\n"
        )
    };
    let keys = "key = [{ key_id = 1, name = \"id\", type = \"int\", nullable = false, allow_write = false },\n\
                { key_id = 2, name = \"likes\", type = \"int\", nullable = true }]\n";
    for (name, text) in [
        ("keys.toml", keys),
        ("params.toml", ""),
        ("endpoints.dev.toml", &(endpoint(1, "cache") + &endpoint(2, "catalog"))),
    ] {
        fs::write(folder.join("registry").join(name), text).unwrap();
    }
    for source in ["cache", "catalog"] {
        let plan = format!(
            r#"{{"schema_version": 1, "plan_name": "of_{source}", "outputs": ["items"], "nodes": [
            {{"node_id": "brought", "op": "core::candidates", "inputs": [], "params": {{"columns": []}}}},
            {{"node_id": "items", "op": "core::lookup", "inputs": ["brought"],
             "params": {{"endpoint": "{source}", "key": "item:{{id}}", "fields": ["likes"]}}}}]}}"#
        );
        fs::write(folder.join(format!("plans/of_{source}.plan.json")), plan).unwrap();
    }
    let project = format!(
        "[plan]\nenv = 'dev'\n[plan.endpoints.cache]\nsource = 'redis'\nurl = '{redis}'\n\
         [plan.endpoints.catalog]\nsource = 'http'\nurl = '{http}'\n"
    );
    fs::write(folder.join("anabranch.toml"), project).unwrap();
}

/// They are in no log line of either form and in no answer, also if a server that fails repeats them, or the text that has
/// one is wrong.
#[test]
fn no_secret_of_a_source_or_a_model_is_logged() {
    check_secrets("json,debug");
    check_secrets("text,debug");
}

/// Submits a dataset whose model refuses all calls, and reads what there is about it.
fn fails(answer: &mut dyn FnMut(&str, &str) -> String, body: &serde_json::Value) {
    let accepted = answer("POST /v1/datasets", &body.to_string());
    assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    let accepted: serde_json::Value =
        serde_json::from_str(accepted.split_once("\r\n\r\n").unwrap().1).unwrap();
    let [id, run] = ["id", "run"].map(|name| accepted[name].as_str().unwrap().to_owned());
    let events = answer(&format!("GET /v1/runs/{run}/events"), "");
    assert!(events.contains("event: end"), "{events}");
    let errors = answer(&format!("GET /v1/datasets/{id}/errors"), "");
    assert!(
        errors.contains("not allowed") && errors.contains("***"),
        "the model server's message is told: {errors}"
    );
    for line in [format!("/v1/datasets/{id}"), format!("/v1/runs/{run}")] {
        answer(&format!("GET {line}"), "");
    }
}

/// Addresses with a password that are wrong, for the two sources.
fn wrong_addresses<'a>(redis: &'a str, http: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("redis://reader:wrong-pa55word-x@[::1/0", http),
        ("rediss//reader:wrong-pa55word-x@127.0.0.1/0", http),
        (redis, "http://reader:wrong-pa55word-x@127.0.0.1:no/read"),
        (redis, "htp://reader:wrong-pa55word-x@127.0.0.1/read"),
        ("redis://reader:wrong-pa55word-x@127.0.0.1:no/0", http),
    ]
}

/// Pages that tell about everything.
const PAGES: [&str; 7] =
    ["/v1/config", "/v1/status", "/metrics", "/v1/runs", "/v1/plans", "/v1/plans/of_cache", "/v1/datasets"];

fn check_secrets(log: &str) {
    let folder = empty(&format!("serve_secrets_{}", &log[..4]));
    let repeating = repeating_model();
    let redis = format!("redis://reader:redis-pa55word-x@127.0.0.1:{}/0", repeating_redis());
    let http = repeating.replace("http://", "http://reader:http-pa55word-x@");
    project_with_secrets(&folder, &redis, &http);
    let models = |key: &str| {
        format!(
            "model_configs: [{{alias: writer, model: small, provider: here}}]\nproviders:\n  - name: here\n    endpoint: '{repeating}'\n    \
             api_key: {key}\n    extra_headers: {{x-team: header-s3cret-x}}\n"
        )
    };
    fs::write(folder.join("models.yaml"), models("sk-model-k3y-x")).unwrap();
    let options =
        ["--log", log, "--anonymous", "admin", "--dataset-models", "models.yaml", "--dataset-allow-custom"];
    let server = Server::begin_with(&folder, &options);
    let mut answers = String::new();
    let mut answer = |line: &str, body: &str| {
        let headers =
            format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let found = ask(&server.url, line, &headers);
        answers.push_str(&found);
        found
    };
    // How many of the plans fail.
    let failing = |answer: &mut dyn FnMut(&str, &str) -> String| {
        let fails = |plan: &&str| {
            let request = r#"{"user_id": 7, "candidates": [1]}"#;
            answer(&format!("POST /v1/plans/{plan}/run?trace=true"), request).starts_with("HTTP/1.1 5")
        };
        ["of_cache", "of_catalog"].iter().copied().filter(fails).count()
    };
    assert_eq!(failing(&mut answer), 2);

    let config =
        "columns:\n  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem.'}\n";
    let own = serde_json::json!({ "config": config, "rows": 2 });
    let brought = serde_json::json!({ "config": config, "rows": 2, "models": models("sk-submitted-k3y-x") });
    for body in [own, brought] {
        fails(&mut answer, &body);
    }
    // A wrong submission, and wrong addresses in a file that is loaded again.
    let wrong = models("sk-submitted-k3y-x").replace("api_key", "api_kee");
    let wrong = serde_json::json!({ "config": config, "rows": 2, "models": wrong });
    let refused = answer("POST /v1/datasets", &wrong.to_string());
    assert!(refused.starts_with("HTTP/1.1 4"), "{refused}");
    for (redis, http) in wrong_addresses(&redis, &http) {
        project_with_secrets(&folder, redis, http);
        let reload = answer("POST /v1/plans/reload", "");
        // Some are found out only by the first read.
        let is_refused = reload.starts_with("HTTP/1.1 409");
        assert!(is_refused || failing(&mut answer) > 0, "{redis} {http}: {reload}");
    }
    for line in PAGES {
        answer(&format!("GET {line}"), "");
    }
    signal(&server, Signal::HUP);
    soon(|| {
        fs::read_to_string(folder.join("stderr.txt")).unwrap().contains("were not loaded again").then_some(())
    });
    assert_eq!(server.end(Signal::TERM), Some(0));
    let log = fs::read_to_string(folder.join("stderr.txt")).unwrap();
    for secret in SECRETS {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
        assert!(!answers.contains(secret), "{secret} is in an answer:\n{answers}");
    }
}

/// The certificate is the root of a client that trusts nothing else.
#[test]
fn the_binary_serves_over_tls() {
    let folder = empty("serve_tls");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
        .args([
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let server = Server::begin_with(&folder, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);
    fs::write(folder.join("hello.txt"), "hello").unwrap();
    // `--data` names another folder, so that the commands use the network, not the socket of the store.
    let remote = format!("--data elsewhere --server {} --token-file .anabranch/token", server.url);
    let put = recipe(&folder, &format!("put hello.txt {remote} --ca-file cert.pem"));
    assert_eq!((put.code, put.stdout.trim()), (0, &*Address::of(b"hello").to_string()), "{}", put.shown());
    let distrusted = recipe(&folder, &format!("status {remote}"));
    assert!(
        distrusted.code == 1 && distrusted.stderr.to_lowercase().contains("certificate"),
        "{}",
        distrusted.shown()
    );
    let plain = recipe(&folder, &format!("status {remote}").replace("https://", "http://"));
    assert_eq!(plain.code, 1, "{}", plain.shown());
    assert_eq!(server.end(Signal::TERM), Some(0));
}

/// Uploads that the server has begun to read when it is told to end are answered, and are there afterwards.
#[test]
fn sigterm_under_load_loses_no_accepted_request() {
    let folder = empty("serve_term");
    let server = Server::begin_at(&folder, &Server::own_address(), &["--grace", "10m"]);
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
    soon(|| TcpStream::connect(&address).is_err().then_some(()));
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
