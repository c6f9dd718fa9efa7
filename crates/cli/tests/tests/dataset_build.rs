//! `dataset build`: files, report, events, a server of models, and Ctrl-C.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anabranch_testkit::{ModelFault, ModelFaultKind, ModelScript, ModelServer};
use expect_test::expect;
use serde_json::Value;

use crate::binary::in_folder;
use crate::dataset::{POEMS, check, shown, with_config};

/// The names of the files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned()),
            }
        }
    }
    found.sort();
    found
}

/// The same, without those of the journal.
fn beside_journal(folder: &Path) -> Vec<String> {
    let found = files(folder);
    assert!(found.iter().any(|name| name.starts_with("journal/")));
    found.into_iter().filter(|name| !name.starts_with("journal/")).collect()
}

/// A models file that names a server.
fn models(folder: &Path, server: &ModelServer) {
    let text = format!(
        "model_configs: [{{alias: writer, model: small, provider: here}}]\n\
         providers: [{{name: here, endpoint: '{}', api_key: some-key}}]\n",
        server.endpoint()
    );
    std::fs::write(folder.join("models.yaml"), text).unwrap();
}

#[test]
fn rows_come_into_a_folder() {
    let folder = with_config("dataset_build", POEMS);
    let build = [
        "build",
        "poems.yaml",
        "--rows",
        "25",
        "--out",
        "out",
        "--seed",
        "3",
        "--demo",
        "--buffer-size",
        "10",
    ];
    check(
        &folder,
        &build,
        &expect![[r#"
            poems: 25 of 25 rows, seed 3, in TIME
              the demo model wrote the texts: they are made up
              rows    out/parquet-files
              errors  none

              alias   model       calls  reused  tokens in  tokens out
              ------  ----------  -----  ------  ---------  ----------
              writer  demo model     50       0       3007        1305
            exit 0
        "#]],
    );
    expect![[r#"
        build.lock
        config.yaml
        errors.jsonl
        errors.parquet
        events.jsonl
        metadata.json
        parquet-files/batch_00000.parquet
        parquet-files/batch_00001.parquet
        parquet-files/batch_00002.parquet
        sources.json
        status.json"#]]
    .assert_eq(&beside_journal(&folder.join("out")).join("\n"));
    let metadata: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("out/metadata.json")).unwrap()).unwrap();
    assert_eq!(metadata["is_complete"], true);
    assert_eq!((&metadata["actual_num_records"], &metadata["seed"]), (&25.into(), &3.into()));

    check(
        &folder,
        &build,
        &expect![[r#"
        poems: 25 of 25 rows, seed 3, in TIME
          complete already: nothing was left to do, no call was made
          rows    out/parquet-files
          errors  none
        exit 0
    "#]],
    );
    std::fs::write(folder.join("out/notes.txt"), "mine").unwrap();
    let again = in_folder(&folder, &[&["dataset"], &build[..], &["--replace"]].concat(), "");
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(folder.join("out/notes.txt").exists(), "files of others stay");
    assert!(
        again.stdout.contains("0 rows were on disk, 50 replies came from the journal"),
        "{}",
        again.stdout
    );
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let folder = with_config("dataset_seeds", POEMS);
    let rows = |out: &str, seed: &str, size: &str, groups: &str| {
        let options = [
            "--rows",
            "30",
            "--demo",
            "--out",
            out,
            "--seed",
            seed,
            "--buffer-size",
            size,
            "--row-groups",
            groups,
        ];
        let said = in_folder(&folder, &[&["dataset", "build", "poems.yaml"], &options[..]].concat(), "");
        assert_eq!(said.code, 0, "{}", said.stderr);
        in_folder(&folder, &["dataset", "export", out, "--format", "jsonl"], "").stdout
    };
    let first = rows("a", "1", "1000", "1");
    assert_eq!(first.lines().count(), 30);
    assert_eq!(first, rows("b", "1", "7", "3"), "whatever the row groups are");
    assert_ne!(first, rows("c", "2", "1000", "1"));
}

#[test]
fn a_server_of_models_is_asked() {
    let folder = with_config("dataset_server", POEMS);
    // The first try of some calls meets a fault that passes.
    let fault = |percent, kind| ModelFault { percent, times: Some(1), kind };
    let faults =
        vec![fault(20, ModelFaultKind::Status(503, Some("0".to_owned()))), fault(10, ModelFaultKind::Reset)];
    let server = ModelServer::start(ModelScript { seed: 5, faults, ..ModelScript::default() });
    models(&folder, &server);
    let options = ["--rows", "20", "--out", "out", "--models", "models.yaml"];
    check(
        &folder,
        &[&["build", "poems.yaml"], &options[..]].concat(),
        &expect![[r#"
            poems: 20 of 20 rows, seed 0, in TIME
              rows    out/parquet-files
              errors  none

              alias   model  calls  reused  tokens in  tokens out
              ------  -----  -----  ------  ---------  ----------
              writer  small     40       0       1580         160
            exit 0
        "#]],
    );
    assert!(server.calls() > 40, "some calls were made twice");
    assert!(server.most_in_flight() <= 4, "max_parallel_requests is 4 if not set");
    assert!(server.requests().iter().all(|call| call.header("authorization") == Some("Bearer some-key")));
}

#[test]
fn dropped_rows_are_in_the_report() {
    let folder = with_config(
        "dataset_dropped",
        &POEMS.replace("values: [tea, coffee]", &format!("values: {:?}", (0..50).collect::<Vec<_>>())),
    );
    let faults = vec![ModelFault { percent: 10, times: None, kind: ModelFaultKind::Status(400, None) }];
    let server = ModelServer::start(ModelScript { seed: 3, faults, ..ModelScript::default() });
    models(&folder, &server);
    let options = ["--rows", "20", "--out", "out", "--models", "models.yaml"];
    let said = in_folder(&folder, &[&["dataset", "build", "poems.yaml"], &options[..]].concat(), "");
    // The port is another one each time.
    let text = shown(&said, &folder).replace(&format!(":{}", server.port()), ":PORT");
    expect![[r#"
        poems: 13 of 20 rows, seed 0, in TIME
          rows    out/parquet-files
          errors  7 failed cells, 7 rows dropped: out/errors.parquet and errors.jsonl

          column  class        cells  their rows  first message
          ------  -----------  -----  ----------  -----------------------------------------------------------
          facts   bad_request      3  dropped     here/small: request not accepted (400): scripted status 400
          poem    bad_request      4  dropped     here/small: request not accepted (400): scripted status 400

          alias   model  calls  reused  tokens in  tokens out
          ------  -----  -----  ------  ---------  ----------
          writer  small     29       0       1026         119
        exit 0
    "#]]
    .assert_eq(&text);
    let errors = std::fs::read_to_string(folder.join("out/errors.jsonl")).unwrap();
    let rows = in_folder(&folder, &["dataset", "export", "out", "--format", "jsonl"], "").stdout;
    assert_eq!(errors.lines().count() + rows.lines().count(), 20, "no row vanishes");
}

#[test]
fn a_build_without_rows_fails() {
    let folder = with_config("dataset_none", POEMS);
    let faults = vec![ModelFault { percent: 100, times: None, kind: ModelFaultKind::Status(401, None) }];
    let server = ModelServer::start(ModelScript { faults, ..ModelScript::default() });
    models(&folder, &server);
    let options = ["--rows", "5", "--out", "out", "--models", "models.yaml"];
    let said = in_folder(&folder, &[&["dataset", "build", "poems.yaml"], &options[..]].concat(), "");
    assert_eq!(said.code, 1, "{}", said.stdout);
    assert!(!said.stdout.contains("some-key") && !said.stderr.contains("some-key"), "keys are never shown");
}

#[test]
fn a_column_can_end_the_build() {
    let config = "\
columns:
  - {name: n, column_type: sampler, sampler_type: category, params: {values: [one]}}
  - {name: number, column_type: expression, dtype: int, expr: '{{ n }}', on_error: fail_run}
";
    let folder = with_config("dataset_fail_run", config);
    check(
        &folder,
        &["build", "poems.yaml", "--rows", "3", "--out", "out"],
        &expect![[r#"
            stderr: failed after TIME
            stderr: on disk: 0 of 3 rows in out/parquet-files
            stderr: remove the cause, then run the same command again to go on
            stderr: error: column `number`, row 0: cast: "one" is not a number
            exit 1
        "#]],
    );
}

#[test]
fn events_are_json_lines() {
    let folder = with_config("dataset_events", POEMS);
    let options = ["--rows", "10", "--out", "out", "--demo", "--json"];
    let said = in_folder(&folder, &[&["dataset", "build", "poems.yaml"], &options[..]].concat(), "");
    assert_eq!((said.code, said.stderr.as_str()), (0, ""));
    let events: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((names[0], &names[names.len() - 3..]), ("start", &["progress", "errors", "end"][..]));
    let end = &events[events.len() - 1];
    assert_eq!((&end["status"], &end["rows"]), (&"complete".into(), &10.into()));
    assert_eq!(end["models"]["writer"]["calls"], 20);
    let progress = &events[events.len() - 3];
    assert_eq!((&progress["rows_done"], &progress["rows_written"]), (&10.into(), &10.into()));
}

#[test]
fn ctrl_c_keeps_what_is_on_disk() {
    let folder = with_config("dataset_stopped", POEMS);
    let server =
        ModelServer::start(ModelScript { latency: Duration::from_millis(20), ..ModelScript::default() });
    models(&folder, &server);
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let options =
        ["--rows", "100000", "--out", "out", "--models", "models.yaml", "--buffer-size", "4", "--json"];
    command.args(["dataset", "build", "poems.yaml"]).args(options).current_dir(&folder);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let written = |line: &String| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["rows_written"].as_u64().is_some_and(|rows| rows > 0)
    };
    assert!(lines.any(|line| written(&line)), "a row group is on disk");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let last: Value = serde_json::from_str(&lines.last().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["status"]), (&"end".into(), &"stopped".into()));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.starts_with("stopping: ") && told.contains(" rows in out/parquet-files"), "{told}");
    let rows = in_folder(&folder, &["dataset", "export", "out", "--format", "jsonl"], "");
    assert!(rows.code == 0 && rows.stdout.lines().count() >= 4, "whole row groups can be read");
}
