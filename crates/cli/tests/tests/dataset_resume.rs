//! `dataset build` that is stopped, killed and continued, and `dataset status`.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use anabranch_testkit::{ModelFault, ModelFaultKind, ModelScript, ModelServer};
use expect_test::expect;
use serde_json::Value;

use crate::binary::{CommandOutput, in_folder};
use crate::dataset::{shown, with_config};
use crate::gate::Gate;

/// Every row has prompts of its own, so that a call that is made twice is seen.
const CONFIG: &str = "\
columns:
  - {name: id, column_type: sampler, sampler_type: uuid}
  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ id }}.'}
";

/// The same with a second column that reads no model's reply.
const TWO_COLUMNS: &str = "\
columns:
  - {name: id, column_type: sampler, sampler_type: uuid}
  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ id }}.'}
  - {name: riddle, column_type: llm-text, model_alias: writer, prompt: 'A riddle about {{ id }}.'}
";

/// One row group after another, four calls at once: the order of the calls is known.
const BUILD: [&str; 17] = [
    "dataset",
    "build",
    "poems.yaml",
    "--rows",
    "20",
    "--out",
    "out",
    "--models",
    "models.yaml",
    "--buffer-size",
    "5",
    "--row-groups",
    "1",
    "--parallel",
    "4",
    "--retries",
    "0",
];

fn folder(test: &str, config: &str, server: &ModelServer) -> PathBuf {
    let folder = with_config(test, config);
    set_server(&folder, server);
    folder
}

fn set_server(folder: &Path, server: &ModelServer) {
    let text = format!(
        "model_configs: [{{alias: writer, model: small, provider: here}}]\n\
         providers: [{{name: here, endpoint: '{}', api_key: some-key}}]\n",
        server.endpoint()
    );
    std::fs::write(folder.join("models.yaml"), text).unwrap();
}

fn build(folder: &Path, more: &[&str]) -> CommandOutput {
    in_folder(folder, &[&BUILD, more].concat(), "")
}

/// The same with other values for some flags.
fn build_with(folder: &Path, changes: &[(&str, &str)], more: &[&str]) -> CommandOutput {
    let mut args = BUILD.to_vec();
    for (flag, value) in changes {
        let at = args.iter().position(|arg| arg == flag).unwrap();
        args[at + 1] = value;
    }
    in_folder(folder, &[&args[..], more].concat(), "")
}

fn status(folder: &Path) -> Value {
    let said = in_folder(folder, &["dataset", "status", "out", "--json"], "");
    assert_eq!(said.code, 0, "{}", said.stderr);
    serde_json::from_str(&said.stdout).unwrap()
}

/// The number of different prompts that a server was sent.
fn prompts(server: &ModelServer) -> usize {
    server.requests().iter().map(|call| call.prompt()).collect::<HashSet<_>>().len()
}

/// A build under way.
struct BuildProcess {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl BuildProcess {
    fn start(folder: &Path, more: &[&str]) -> BuildProcess {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(BUILD).args(more).current_dir(folder).env("NO_COLOR", "1");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        BuildProcess { child, stderr }
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(kill.success());
    }

    /// The next line that is not about progress.
    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended without a word");
            if !is_progress(&line) {
                return line.trim_end().to_owned();
            }
        }
    }

    /// Waits for its end.
    fn end(mut self) -> CommandOutput {
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).unwrap();
        let stderr =
            stderr.lines().filter(|line| !is_progress(line)).map(|line| format!("{line}\n")).collect();
        let output = self.child.wait_with_output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        CommandOutput { code: output.status.code().unwrap_or(-1), stdout, stderr }
    }
}

/// On a slow machine there may be lines of progress.
fn is_progress(line: &str) -> bool {
    line.starts_with(|first: char| first.is_ascii_digit())
}

#[test]
fn ctrl_c_saves_the_calls_in_flight_and_the_same_command_goes_on() {
    let (server, gate) = Gate::server(6);
    let folder = folder("dataset_ctrl_c", CONFIG, &server);
    let mut running = BuildProcess::start(&folder, &[]);
    gate.wait_for(4);
    running.signal("-INT");
    expect!["stopping: 4 calls in flight are finished and saved (Ctrl-C again stops at once)"]
        .assert_eq(&running.line());
    gate.open();
    expect![[r#"
        stderr: stopped after TIME
        stderr: on disk: 10 of 20 rows in out/parquet-files, the replies to all 10 answered calls of this run in out/journal
        stderr: run the same command again to go on
        exit 1
    "#]]
    .assert_eq(&shown(&running.end(), &folder));
    assert_eq!(server.calls(), 10);
    let state = status(&folder);
    assert_eq!((&state["state"], &state["reason"]), (&"stopped".into(), &"it was asked to stop".into()));
    assert_eq!((&state["rows_written"], &state["rows"]), (&10.into(), &20.into()));

    expect![[r#"
        poems: 20 of 20 rows, seed 0, in TIME
          continued: 10 rows were on disk, 0 replies came from the journal
          rows    out/parquet-files
          errors  none

          alias   model  calls  reused  tokens in  tokens out
          ------  -----  -----  ------  ---------  ----------
          writer  small     20       0        240         300
          in this run: 10 calls, 120 tokens in, 150 out
        exit 0
    "#]]
    .assert_eq(&shown(&build(&folder, &[]), &folder));
    expect![[r#"
        poems: 20 of 20 rows, seed 0, in TIME
          complete already: nothing was left to do, no call was made
          rows    out/parquet-files
          errors  none
        exit 0
    "#]]
    .assert_eq(&shown(&build(&folder, &[]), &folder));
    assert_eq!((server.calls(), prompts(&server)), (20, 20), "no call was made twice");
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let (server, gate) = Gate::server(6);
    let folder = folder("dataset_ctrl_c_twice", CONFIG, &server);
    let mut running = BuildProcess::start(&folder, &["--json"]);
    gate.wait_for(4);
    running.signal("-TERM");
    assert!(running.line().starts_with("stopping: 4 calls"));
    running.signal("-INT");
    let said = running.end();
    let events: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let stopping = events.iter().find(|event| event["event"] == "stopping").unwrap();
    assert_eq!(stopping["calls_in_flight"], 4);
    let end = events.last().unwrap();
    assert_eq!((&end["event"], &end["status"], &end["rows"]), (&"end".into(), &"stopped".into(), &5.into()));
    assert_eq!(
        (&end["reason"], &end["models"]["writer"]["calls"]),
        (&"it was asked to stop".into(), &6.into())
    );
    let quiet = CommandOutput { stdout: String::new(), ..said };
    expect![[r#"
        stderr: stopped after TIME
        stderr: on disk: 5 of 20 rows in out/parquet-files, the replies to all 6 answered calls of this run in out/journal
        stderr: run the same command again to go on
        exit 1
    "#]]
    .assert_eq(&shown(&quiet, &folder));
    assert_eq!(status(&folder)["state"], "interrupted");
    gate.open();
    let said = build(&folder, &["--json"]);
    let end: Value = serde_json::from_str(said.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&end["status"], &end["rows"]), (&"complete".into(), &20.into()));
    assert_eq!((&end["resumed_rows"], &end["models"]["writer"]["reused"]), (&5.into(), &1.into()));
    assert_eq!((server.calls(), prompts(&server)), (24, 20), "the four calls in flight were made twice");
}

/// Waits for the report that shows the calls that wait: one is written every second.
fn status_with_waiting_calls(folder: &Path) -> Value {
    let is_it = |state: &Value| state["limits"][0]["in_flight"] == 4 && state["rows_written"] == 5;
    std::iter::repeat_with(|| status(folder)).find(is_it).unwrap()
}

#[test]
fn a_running_build_is_seen_and_keeps_its_folder() {
    let (server, gate) = Gate::server(6);
    let folder = folder("dataset_running", CONFIG, &server);
    let running = BuildProcess::start(&folder, &[]);
    gate.wait_for(4);
    let state = status_with_waiting_calls(&folder);
    let process = u64::from(running.child.id());
    assert_eq!((&state["state"], &state["process"]), (&"running".into(), &process.into()));
    assert_eq!(state["models"]["writer"]["calls"], 6);
    assert_eq!(
        state["next"],
        format!("wait; Ctrl-C or `kill -INT {process}` stops it and saves the calls in flight")
    );
    let refused = shown(&build(&folder, &[]), &folder).replace(&process.to_string(), "PID");
    expect![[r#"
        stderr: error: cannot build into out: another build writes to it (process PID); wait for it, or choose another folder; `anabranch dataset status out` shows how far it is
        exit 1
    "#]]
    .assert_eq(&refused);
    gate.open();
    assert_eq!(running.end().code, 0);
    assert_eq!((server.calls(), &status(&folder)["state"]), (20, &"complete".into()));
}

#[test]
fn a_killed_build_is_interrupted_and_goes_on() {
    let (server, gate) = Gate::server(6);
    let folder = folder("dataset_killed", CONFIG, &server);
    let mut running = BuildProcess::start(&folder, &[]);
    gate.wait_for(4);
    status_with_waiting_calls(&folder);
    running.child.kill().unwrap();
    running.end();
    let interrupted = in_folder(&folder, &["dataset", "status", "out"], "");
    expect![[r#"
        poems: interrupted after TIME (reported TIME ago)
          rows    5 of 20 on disk, 0 dropped
          errors  none

          column  finished  failed  skipped  retried
          ------  --------  ------  -------  -------
          id            10       0        0        0
          poem           6       0        0        0

          model       in flight  limit  calls  refused  paused for
          ----------  ---------  -----  -----  -------  ----------
          here/small          4      4      6        0

          alias   answered  reused  tokens in  tokens out
          ------  --------  ------  ---------  ----------
          writer         6       0         72          90

        next: run the same command again to continue
        exit 0
    "#]]
    .assert_eq(&shown(&interrupted, &folder));
    gate.open();
    let said = build(&folder, &[]);
    assert!(
        said.stdout.contains("continued: 5 rows were on disk, 1 reply came from the journal"),
        "{}",
        said.stdout
    );
    assert_eq!((server.calls(), prompts(&server)), (24, 20), "the four calls in flight were made twice");
    let complete = in_folder(&folder, &["dataset", "status", "out"], "");
    expect![[r#"
        poems: complete after TIME (reported TIME ago)
          rows    20 of 20 on disk, 0 dropped
          errors  none

          column  finished  failed  skipped  retried
          ------  --------  ------  -------  -------
          id            20       0        0        0
          poem          20       0        0        0

          model       in flight  limit  calls  refused  paused for
          ----------  ---------  -----  -----  -------  ----------
          here/small          0      4     14        0

          alias   answered  reused  tokens in  tokens out
          ------  --------  ------  ---------  ----------
          writer        20       1        240         300

        next: nothing is left to do
        exit 0
    "#]]
    .assert_eq(&shown(&complete, &folder));
}

#[test]
fn more_rows_and_other_row_groups_continue() {
    let server = ModelServer::start(ModelScript::default());
    let folder = folder("dataset_more", CONFIG, &server);
    assert_eq!(build(&folder, &[]).code, 0);
    let said = build_with(&folder, &[("--rows", "30"), ("--buffer-size", "7"), ("--row-groups", "3")], &[]);
    assert!(said.stdout.contains("0 rows were on disk, 20 replies came from the journal"), "{}", said.stdout);
    assert_eq!((server.calls(), prompts(&server)), (30, 30));
    expect![[r#"
        stderr: error: out holds a build of 30 rows, which is more than --rows asks for; ask for at least 30, choose another folder, or --replace: replies in the journal are used again, and cost nothing
        exit 1
    "#]]
    .assert_eq(&shown(&build(&folder, &[]), &folder));
}

#[test]
fn a_changed_prompt_pays_for_its_column_only() {
    let server = ModelServer::start(ModelScript::default());
    let folder = folder("dataset_changed", TWO_COLUMNS, &server);
    assert_eq!(build(&folder, &[]).code, 0);
    assert_eq!(server.calls(), 40);
    std::fs::write(folder.join("poems.yaml"), TWO_COLUMNS.replace("A riddle", "A joke")).unwrap();
    expect![[r#"
        stderr: error: out holds a dataset that was made with another configuration (since then edited: `riddle`); --replace builds it again: replies in the journal that still fit are used again, and cost nothing (`anabranch dataset plan` tells the cost before); or choose another folder
        exit 1
    "#]]
    .assert_eq(&shown(&build(&folder, &[]), &folder));
    let said = build(&folder, &["--replace"]);
    assert!(said.stdout.contains("0 rows were on disk, 20 replies came from the journal"), "{}", said.stdout);
    let requests = server.requests();
    assert_eq!(requests.len(), 60);
    assert!(requests[40..].iter().all(|call| call.prompt().starts_with("A joke")));
}

#[test]
fn failed_rows_are_tried_again_on_request() {
    // Some requests are refused the first time.
    let faults = vec![ModelFault { percent: 30, times: Some(1), kind: ModelFaultKind::Status(400, None) }];
    let server = ModelServer::start(ModelScript { seed: 4, faults, ..ModelScript::default() });
    let folder = folder("dataset_retry_failed", CONFIG, &server);
    let rows =
        |said: &CommandOutput| said.stdout.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap();
    let first = rows(&build(&folder, &[]));
    assert!((5..20).contains(&first), "{first}");
    let again = build(&folder, &[]);
    assert!(again.code == 0 && again.stdout.contains("complete already"), "{}", again.stdout);
    assert_eq!((rows(&again), server.calls()), (first, 20));
    assert!(status(&folder)["next"].as_str().unwrap().contains("--retry-failed"));
    let retried = build(&folder, &["--retry-failed"]);
    assert_eq!((retried.code, rows(&retried)), (0, 20), "{}", retried.stderr);
    assert_eq!(server.calls(), 20 + (20 - first), "the failed cells only");
}

#[test]
fn a_model_that_always_fails_stops_the_build() {
    let faults = vec![ModelFault { percent: 100, times: None, kind: ModelFaultKind::Status(401, None) }];
    let server = ModelServer::start(ModelScript { faults, ..ModelScript::default() });
    let folder = folder("dataset_early_stop", CONFIG, &server);
    let many = [("--rows", "200"), ("--buffer-size", "100")];
    let said = build_with(&folder, &many, &[]);
    let text = shown(&said, &folder).replace(&format!(":{}", server.port()), ":PORT");
    expect![[r#"
        stderr: stopped after TIME
        stderr:   50 of the last 50 calls of here/small failed
        stderr:   the last failure: auth: here/small: no access (401): scripted status 401
        stderr: on disk: 0 of 200 rows in out/parquet-files
        stderr: remove the cause, then run the same command again to go on; --retry-failed tries failed rows of finished row groups again as well
        exit 1
    "#]].assert_eq(&text);
    assert!((50..=54).contains(&server.calls()), "{} calls", server.calls());
    assert_eq!(status(&folder)["state"], "stopped");

    let healthy = ModelServer::start(ModelScript::default());
    set_server(&folder, &healthy);
    let said = build_with(&folder, &many, &[]);
    assert!(
        said.code == 0 && said.stdout.starts_with("poems: 200 of 200 rows"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    assert_eq!(healthy.calls(), 200);
}

#[test]
fn an_early_stop_can_be_switched_off() {
    let faults = vec![ModelFault { percent: 100, times: None, kind: ModelFaultKind::Status(401, None) }];
    let server = ModelServer::start(ModelScript { faults, ..ModelScript::default() });
    let folder = folder("dataset_no_early_stop", CONFIG, &server);
    let said = build_with(&folder, &[("--rows", "100")], &["--no-early-stop"]);
    assert_eq!((said.code, server.calls()), (1, 100), "{}", said.stderr);
    let said = build_with(&folder, &[("--rows", "100")], &["--replace", "--error-window", "10", "--json"]);
    assert!(said.stderr.starts_with("warning: --error-window 10 counts as 50"), "{}", said.stderr);
    let end: Value = serde_json::from_str(said.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((said.code, &end["status"]), (1, &"stopped".into()));
    let rate = &end["error_rate"];
    assert_eq!(
        (&rate["model"], &rate["failed"], &rate["calls"]),
        (&"here/small".into(), &50.into(), &50.into())
    );
}

#[test]
fn a_journal_can_be_shared_or_left_out() {
    let server = ModelServer::start(ModelScript::default());
    let folder = folder("dataset_journals", CONFIG, &server);
    let calls = |out: &str, journal: &str| {
        let before = server.calls();
        let said = build_with(&folder, &[("--out", out)], &["--journal", journal]);
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert!(!folder.join(out).join("journal").exists());
        server.calls() - before
    };
    assert_eq!((calls("a", "journal"), calls("b", "journal")), (20, 0));
    assert_eq!((calls("c", "none"), calls("d", "none")), (20, 20));
    assert!(!folder.join("none").exists());
}

#[test]
fn two_builds_do_not_share_a_journal_at_once() {
    let (server, gate) = Gate::server(0);
    let folder = folder("dataset_journal_in_use", CONFIG, &server);
    let running = BuildProcess::start(&folder, &["--journal", "journal"]);
    gate.wait_for(4);
    let refused = build_with(&folder, &[("--out", "other")], &["--journal", "journal"]);
    expect![[r#"
        stderr: error: the journal journal is in use by process PID; wait for that build, or give this one a journal of its own (--journal DIR)
        exit 1
    "#]].assert_eq(&shown(&refused, &folder).replace(&running.child.id().to_string(), "PID"));
    gate.open();
    assert_eq!(running.end().code, 0);
}

#[test]
fn an_alias_that_is_not_there_is_refused() {
    let server = ModelServer::start(ModelScript::default());
    let folder = folder("dataset_parallel", CONFIG, &server);
    expect![[r#"
        stderr: error: --parallel: there is no model alias `writter`; the aliases are `writer`
        exit 2
    "#]]
    .assert_eq(&shown(&build(&folder, &["--parallel", "writter=3"]), &folder));
    assert_eq!(build(&folder, &["--parallel", "writer=2"]).code, 0);
    assert!(server.most_in_flight() <= 2, "the last one counts");
}

#[test]
fn a_folder_without_a_build_has_no_state() {
    let folder = with_config("dataset_no_state", CONFIG);
    let status = |of: &str| shown(&in_folder(&folder, &["dataset", "status", of], ""), &folder);
    std::fs::create_dir(folder.join("old")).unwrap();
    std::fs::write(folder.join("old/metadata.json"), "{}").unwrap();
    expect![[r#"
        stderr: error: . holds no build; name the folder that `dataset build --out` wrote
        exit 1
        stderr: error: none does not exist; name the folder that `dataset build --out` wrote
        exit 1
        stderr: error: old holds a dataset without status.json: a build has not begun, or an older version built it; old/metadata.json has its counts
        exit 1
    "#]]
    .assert_eq(&[".", "none", "old"].map(status).concat());
}
