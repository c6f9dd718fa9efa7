//! `serve` with the plans of a project, called over HTTP as other programs do.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::binary::{in_folder, patient_examples, root, scratch, soon};
use crate::recipe_served::Server;

/// The status and the body of an answer of the server whose store is in a folder; its token is there, if it has one.
fn post(folder: &Path, url: &str, path: &str, body: &str) -> (u16, String) {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let token = std::fs::read_to_string(folder.join("store/token"));
    let token = token.map(|token| format!("authorization: Bearer {}\r\n", token.trim())).unwrap_or_default();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\n{token}content-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn without_run_id(text: &str) -> String {
    let (before, rest) = text.split_once("\"engine_request_id\":\"").unwrap_or_else(|| panic!("{text}"));
    format!("{before}{}", rest.split_once('"').unwrap().1)
}

fn empty(test: &str) -> std::path::PathBuf {
    let folder = scratch(test);
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Compares the server's answers with those of `plan run`, for all plans of a folder.
fn check(folder: &Path, server: &Server, project: &Path, (plans, request): (&[String], &str)) {
    for plan in plans {
        let file = project.to_str().unwrap();
        let run = in_folder(&root(), &["plan", "run", plan, "--project", file, "--request", request], "");
        let (status, body) = post(folder, &server.url, &format!("/v1/plans/{plan}/run"), request);
        assert_eq!((status, run.code), (200, 0), "{plan}: {body}{}", run.stderr);
        assert_eq!(without_run_id(&body), without_run_id(&run.stdout), "{plan}");
    }
}

/// Plans in TypeScript are compiled by the server; the nearest project is found.
#[test]
fn answers_are_those_of_plan_run() {
    let folder = empty("serve_plans");
    let project = patient_examples().join("anabranch.toml");
    let file = project.to_str().unwrap();
    let server = Server::begin_with(&folder, &["--data", "store", "--project", file]);
    let plans: Vec<String> = std::fs::read_dir(project.parent().unwrap().join("plans"))
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".plan.ts")?.to_owned()))
        .collect();
    assert!(plans.len() >= 10);
    check(&folder, &server, &project, (&plans, r#"{"user_id": 7, "request_id": "r"}"#));
    let (status, body) = post(&folder, &server.url, "/v1/plans/fed/run", "{}");
    assert_eq!(status, 404);
    assert!(body.contains("did you mean `feed`?"), "{body}");
    assert_eq!(server.end(Signal::TERM), Some(0));
}

/// The request ids, which no two answers share, are left out.
fn without_ids(text: &str) -> serde_json::Value {
    let mut answer: serde_json::Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"));
    for name in ["engine_request_id", "request_id"] {
        assert!(answer.as_object_mut().unwrap().remove(name).is_some(), "{name}: {text}");
    }
    answer
}

/// The commands with which a service begins, as they are written in the manual.
#[test]
fn a_server_is_started_and_called_as_the_manual_says() {
    let folder = empty("serve_manual");
    let shell = |command: &str| {
        let path = format!("{}:{}", binaries().display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&folder).env("PATH", path).stdout(Stdio::piped());
        shell
    };
    let project = patient_examples().join("anabranch.toml");
    let serve = "exec anabranch serve --project FILE --data DIR --listen 127.0.0.1:0 --token-file TOKEN";
    let mut child = shell(&serve.replace("FILE", project.to_str().unwrap())).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
    let server = Server { child, url };
    let token = std::fs::metadata(folder.join("TOKEN")).unwrap();
    assert_eq!(token.permissions().mode() & 0o777, 0o600, "the token file was made");

    let curl = "curl -sS -H \"Authorization: Bearer $(cat TOKEN)\" -H 'Content-Type: application/json' \
                -d '{\"user_id\":7}' ADDRESS/v1/plans/feed/run";
    let curl = curl.replace("ADDRESS", &server.url);
    let answer = String::from_utf8(shell(&curl).output().unwrap().stdout).unwrap();
    let run = ["plan", "run", "feed", "--project", project.to_str().unwrap(), "--request", "{\"user_id\":7}"];
    let run = in_folder(&folder, &run, "");
    assert_eq!(run.code, 0, "{}", run.shown());
    assert_eq!(without_ids(&answer), without_ids(&run.stdout));
    let wrong =
        curl.replace("$(cat TOKEN)", "anb_wrong").replace("-sS", "-sS -o refused.json -w '%{http_code}'");
    assert_eq!(shell(&wrong).output().unwrap().stdout, b"401");
    assert_eq!(server.end(Signal::TERM), Some(0));
}

/// The folder of the binary.
fn binaries() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_anabranch")).parent().unwrap()
}

/// A project with one plan: the first products of the candidates.
pub(crate) fn project(folder: &Path, more: &str) {
    let endpoint = "[[endpoint]]\nendpoint_id = \"ep_0001\"\nname = \"catalog\"\nkind = \"redis\"\npolicy = {}\n\
                    resolver = { type = \"static\", host = \"127.0.0.1\", port = 6379 }\n";
    let keys = "key = [{ key_id = 1, name = \"id\", type = \"int\", nullable = false, allow_write = false },\n\
                { key_id = 2, name = \"price\", type = \"float\", nullable = true }]\n";
    let file = format!(
        "[plan]\nenv = \"dev\"\n[plan.endpoints.catalog]\nsource = \"memory\"\ndata = [\"data.json\"]\n{more}"
    );
    let data = r#"{"hashes": {"product:1": {"price": "2"}, "product:2": {"price": "1"}}}"#;
    for (name, text) in [
        ("registry/keys.toml", keys),
        ("registry/params.toml", ""),
        ("registry/endpoints.dev.toml", endpoint),
        ("anabranch.toml", &file),
        ("data.json", data),
    ] {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    write_plan(folder, 1);
}

fn write_plan(folder: &Path, count: u32) {
    let plan = format!(
        r#"{{"schema_version": 1, "plan_name": "first", "outputs": ["first"], "nodes": [
          {{"node_id": "brought", "op": "core::candidates", "inputs": [], "params": {{"columns": []}}}},
          {{"node_id": "items", "op": "core::lookup", "inputs": ["brought"],
            "params": {{"endpoint": "catalog", "key": "product:{{id}}", "fields": ["price"]}}}},
          {{"node_id": "first", "op": "core::take", "inputs": ["items"], "params": {{"count": {count}}}}}]}}"#
    );
    std::fs::create_dir_all(folder.join("plans")).unwrap();
    std::fs::write(folder.join("plans/first.plan.json"), plan).unwrap();
}

pub(crate) const FIRST: &str = r#"{"user_id": 7, "request_id": "r-1", "candidates": [1, 2]}"#;

/// The log of a server once it has a text.
fn logged(folder: &Path, text: &str) -> String {
    let log = || std::fs::read_to_string(folder.join("stderr.txt")).unwrap();
    soon(|| Some(log()).filter(|log| log.contains(text)))
}

pub(crate) fn signal(server: &Server, signal: Signal) {
    let id = i32::try_from(server.child.id()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
}

#[test]
fn a_hangup_loads_plans_again() {
    let folder = empty("serve_hangup");
    project(&folder, "");
    let server = Server::begin_with(&folder, &["--data", "store"]);
    let rows = || {
        let (status, body) = post(&folder, &server.url, "/v1/plans/first/run", FIRST);
        assert_eq!(status, 200, "{body}");
        body.matches("\"price\"").count()
    };
    assert_eq!(rows(), 1);
    write_plan(&folder, 2);
    signal(&server, Signal::HUP);
    logged(&folder, "loaded the plans again");
    assert_eq!(rows(), 2);
    // A plan that does not compile changes nothing.
    std::fs::write(folder.join("plans/first.plan.json"), "{").unwrap();
    signal(&server, Signal::HUP);
    let log = logged(&folder, "the plans were not loaded again");
    assert!(log.contains("first.plan.json"), "{log}");
    assert_eq!(rows(), 2);
    assert_eq!(server.end(Signal::TERM), Some(0));
}

/// The log line, the record of the run and the answer have one id.
#[test]
fn a_request_is_logged_with_its_id() {
    let folder = empty("serve_ids");
    project(&folder, "");
    let server = Server::begin_with(&folder, &["--data", "store", "--log", "json,debug"]);
    let (status, answer) = post(&folder, &server.url, "/v1/plans/first/run", FIRST);
    assert!(status == 200 && answer.contains("\"request_id\":\"r-1\""), "{answer}");
    assert_eq!(server.end(Signal::TERM), Some(0));
    let log = std::fs::read_to_string(folder.join("stderr.txt")).unwrap();
    let line =
        log.lines().find(|line| line.contains("/v1/plans/first/run")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("\"id\":\"r-1\""), "{line}");
}

/// The log line of a request that is a part of a trace names the trace and the server's own span.
#[test]
fn log_lines_name_the_trace() {
    let folder = empty("serve_trace");
    project(&folder, "");
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    for (form, trace_field, span_field) in
        [("json,debug", "\"trace\":\"", "\"span\":\""), ("text,debug", " trace=\"", " span=\"")]
    {
        let server = Server::begin_with(&folder, &["--data", "store", "--log", form, "--anonymous", "run"]);
        let host = server.url.strip_prefix("http://").unwrap();
        for header in [
            format!("traceparent: 00-{trace}-00f067aa0ba902b7-01\r\nx-request-id: with\r\n"),
            "x-request-id: without\r\n".to_owned(),
        ] {
            let mut stream = TcpStream::connect(host).unwrap();
            let head = format!("GET /v1/plans HTTP/1.1\r\nhost: {host}\r\n{header}connection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            stream.read_to_string(&mut String::new()).unwrap();
        }
        assert_eq!(server.end(Signal::TERM), Some(0));
        let log = std::fs::read_to_string(folder.join("stderr.txt")).unwrap();
        let line = |id: &str| {
            let is_it = |line: &&str| {
                [format!("\"id\":\"{id}\""), format!(" id=\"{id}\"")].iter().any(|field| line.contains(field))
            };
            log.lines().find(is_it).unwrap_or_else(|| panic!("{id}: {log}"))
        };
        let after = |id: &str, field: &str| {
            let (_, rest) = line(id).split_once(field).unwrap_or_else(|| panic!("{field}: {log}"));
            rest.split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap().to_owned()
        };
        assert_eq!(after("with", trace_field), trace, "{log}");
        let span = after("with", span_field);
        assert!(span.len() == 16 && span != "00f067aa0ba902b7", "{span}: {log}");
        // A dash stands for none.
        assert_eq!([trace_field, span_field].map(|field| after("without", field)), ["", ""], "{log}");
    }
}

/// The head of a request for the plan `first`, with these further header lines.
fn head(folder: &Path, more: &str) -> String {
    let token = std::fs::read_to_string(folder.join("store/token")).unwrap();
    format!(
        "POST /v1/plans/first/run HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\n{more}content-length: {}\r\n\r\n",
        token.trim(),
        FIRST.len()
    )
}

/// The status line of an answer, whose body is read, too.
fn status_line(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let (mut first, mut len) = (String::new(), 0);
    stream.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            len = value.trim().parse().unwrap();
        }
    }
    stream.read_exact(&mut vec![0; len])?;
    Ok(first)
}

/// Requests on connections that are kept, on new connections that the server has not even accepted, and requests whose
/// bodies arrive after the signal.
#[test]
fn requests_that_were_sent_before_sigterm_are_answered() {
    let folder = empty("serve_plans_term");
    project(&folder, "");
    let mut server =
        Server::begin_at(&folder, &Server::own_address(), &["--data", "store", "--grace", "10m"]);
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    let connect = || BufReader::new(TcpStream::connect(&address).unwrap());
    let [whole, parted] =
        [format!("{}{FIRST}", head(&folder, "")), head(&folder, "expect: 100-continue\r\n")];
    let mut sent: Vec<_> = (0..8).map(|_| connect()).collect();
    for stream in &mut sent {
        stream.get_mut().write_all(whole.as_bytes()).unwrap();
        assert_eq!(status_line(stream).unwrap(), "HTTP/1.1 200 OK\r\n");
    }
    let mut begun: Vec<_> = (0..4).map(|_| connect()).collect();
    for stream in &mut begun {
        stream.get_mut().write_all(parted.as_bytes()).unwrap();
        assert_eq!(status_line(stream).unwrap(), "HTTP/1.1 100 Continue\r\n");
    }
    // What is sent while the process stands still comes before the signal.
    signal(&server, Signal::STOP);
    sent.extend((0..32).map(|_| connect()));
    for stream in &mut sent {
        stream.get_mut().write_all(whole.as_bytes()).unwrap();
    }
    signal(&server, Signal::TERM);
    signal(&server, Signal::CONT);
    soon(|| TcpStream::connect(&address).is_err().then_some(()));
    for stream in &mut begun {
        stream.get_mut().write_all(FIRST.as_bytes()).unwrap();
    }
    let answers: Vec<_> = begun.iter_mut().chain(&mut sent).map(status_line).collect();
    let lost = answers.iter().filter(|answer| !matches!(answer, Ok(line) if line == "HTTP/1.1 200 OK\r\n"));
    assert_eq!(lost.count(), 0, "{answers:?}");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_server_without_a_project_has_no_plans() {
    let folder = empty("serve_no_plans");
    let server = Server::begin_with(&folder, &["--data", "store"]);
    let (status, body) = post(&folder, &server.url, "/v1/plans/feed/run", "{}");
    assert_eq!(status, 404);
    assert!(body.contains("anabranch serve --project FILE"), "{body}");
    drop(server);
    let wrong = in_folder(&folder, &["serve", "--data", "store", "--project", "none.toml"], "");
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.contains("none.toml"), "{}", wrong.stderr);
    let share = in_folder(&folder, &["serve", "--canary", "5"], "");
    assert_eq!(share.code, 2);
    assert!(share.stderr.contains("a number from 0 to 1"), "{}", share.stderr);
}

/// The golden answers of rankd, where its plans are at hand, with the ids that it gives.
#[test]
fn answers_of_rankd() {
    let Some(rankd) = crate::rankd::rankd() else { return };
    let folder = empty("serve_rankd");
    let project = format!(
        "[plan]\nregistry = \"{0}/registry\"\nplans = \"{0}/plans\"\ntest_ops = true\nenv = \"dev\"\n\
         [plan.endpoints.ep_0001]\nsource = \"memory\"\ndata = [\"{0}/data.json\"]\n",
        rankd.display()
    );
    std::fs::write(folder.join("anabranch.toml"), project).unwrap();
    let server = Server::begin_with(&folder, &["--data", "store"]);
    let golden = std::fs::read_to_string(rankd.join("golden.json")).unwrap();
    let golden: serde_json::Value = serde_json::from_str(&golden).unwrap();
    for case in golden.as_array().unwrap() {
        let path = format!("/v1/plans/{}/run", case["plan"].as_str().unwrap());
        let (status, body) = post(&folder, &server.url, &path, &case["request"].to_string());
        assert_eq!(status, 200, "{path}: {body}");
        let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
        let ids: Vec<_> = answer["candidates"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
        assert_eq!(ids, case["ids"].as_array().unwrap().iter().collect::<Vec<_>>(), "{path}");
    }
}
