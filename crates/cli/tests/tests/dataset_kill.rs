//! Builds whose process is killed, again and again: no row is lost, and only calls in flight are paid for twice.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anabranch_content::{Config, Store};
use anabranch_testkit::{ModelCall, ModelScript, ModelServer, Rng};
use serde_json::Value;

use crate::binary::in_folder;
use crate::dataset::with_config;

/// Calls in flight at the same time.
const PARALLEL: usize = 16;

const CHAINED: &str = "
run: {buffer_size: 100}
columns:
  - {name: topic, column_type: sampler, sampler_type: category, params: {values: [tea, rivers, salt]}}
  - {name: n, column_type: sampler, sampler_type: uuid, params: {}}
  - {name: first, column_type: llm-text, model_alias: writer, prompt: 'A {{ topic }} {{ n }}'}
  - {name: second, column_type: llm-text, model_alias: writer, prompt: 'B {{ first }} of row {{ n }}'}
";

const SHUFFLED: &str = "
run: {buffer_size: 50}
seed_config: {source: {seed_type: local, path: ids.csv}, sampling_strategy: shuffle}
columns:
  - {name: said, column_type: llm-text, model_alias: writer, prompt: 'Say {{ id }}'}
";

/// Three rows in ten are accepted; each becomes two in the second stage, of which a few are the same.
const STAGED: &str = "
run: {buffer_size: 60}
stages:
  - name: drafts
    accept: first[-1:] in ['0', '1', '2']
    columns:
      - {name: n, column_type: sampler, sampler_type: uuid, params: {}}
      - {name: first, column_type: llm-text, model_alias: writer, prompt: 'A {{ n }}'}
      - name: parts
        column_type: llm-structured
        model_alias: writer
        prompt: 'Parts of {{ first }}'
        output_format: {type: array, items: {type: string}}
    steps:
      - explode: parts
      - dedupe: [parts]
  - name: words
    columns:
      - {name: word, column_type: llm-text, model_alias: writer, prompt: 'B {{ parts }} of {{ n }}'}
    steps:
      - sort: parts
";

struct Case {
    folder: PathBuf,
    server: ModelServer,
    rows: usize,
}

impl Case {
    fn new(test: &str, config: &str, rows: usize) -> Case {
        Case::scripted(test, config, rows, ModelScript::default())
    }

    fn scripted(test: &str, config: &str, rows: usize, script: ModelScript) -> Case {
        let folder = with_config(test, config);
        let script =
            ModelScript { latency: Duration::from_millis(2), jitter: Duration::from_millis(6), ..script };
        let case = Case { folder, server: ModelServer::start(script), rows };
        let models = format!(
            "model_configs: [{{alias: writer, model: small, provider: here, \
             inference_parameters: {{max_parallel_requests: {PARALLEL}}}}}]\n\
             providers: [{{name: here, endpoint: '{}', api_key: some-key}}]\n",
            case.server.endpoint()
        );
        std::fs::write(case.folder.join("models.yaml"), models).unwrap();
        case
    }

    fn command(&self, out: &str) -> Vec<String> {
        let rows = self.rows.to_string();
        let words =
            ["dataset", "build", "poems.yaml", "--rows", &rows, "--out", out, "--models", "models.yaml"];
        words.map(str::to_owned).to_vec()
    }

    fn start(&self, out: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_anabranch"))
            .args(self.command(out))
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Builds to the end.
    fn finish(&self, out: &str) {
        let command = self.command(out);
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let done = in_folder(&self.folder, &words, "");
        assert_eq!(done.code, 0, "{}", done.stderr);
    }

    fn rows(&self, out: &str) -> String {
        let done = in_folder(&self.folder, &["dataset", "export", out, "--format", "jsonl"], "");
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stdout
    }

    /// Kills a build when the server has begun so many more replies, or so early that it has made no call. False if the
    /// build ended before: on a busy machine, it may make many calls before it is killed.
    fn kill_after(&self, out: &str, replies: usize) -> bool {
        let goal = self.server.paid() + replies;
        let mut child = self.start(out);
        while self.server.paid() < goal {
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        true
    }

    /// Kills a build at most so often, each time after some replies. Returns the number of kills.
    fn kill_often(&self, out: &str, most: usize, seed: u64, replies: u64) -> usize {
        let mut rng = Rng::new(seed);
        let kills = (0..most).take_while(|_| self.kill_after(out, rng.within(0..replies) as usize)).count();
        assert!(kills > most / 4, "only {kills} kills");
        kills
    }
}

/// The replies in a journal that was closed.
fn recorded(journal: &Path) -> usize {
    Store::open(journal, Config::default()).unwrap().stats().memos as usize
}

#[test]
fn fifty_kills_lose_no_row_and_repeat_only_calls_in_flight() {
    let case = Case::new("dataset_kill_chained", CHAINED, 2000);
    let calls = 2 * case.rows;
    case.finish("whole");
    assert_eq!(case.server.paid(), calls);
    let kills = case.kill_often("killed", 50, 18, 120);
    case.finish("killed");
    assert_eq!(recorded(&case.folder.join("killed/journal")), calls);
    let extra = case.server.paid() - 2 * calls;
    assert!(extra <= kills * PARALLEL, "{extra} calls beyond the least possible");
    assert_eq!(case.rows("killed"), case.rows("whole"));
    // No request is made again once its reply is recorded, so each has one counted call, and the rest was in flight.
    let metadata: Value =
        serde_json::from_slice(&std::fs::read(case.folder.join("killed/metadata.json")).unwrap()).unwrap();
    for column in ["first", "second"] {
        assert_eq!(metadata["spent"][column]["calls"], case.rows, "{}", metadata["spent"]);
    }
    assert_eq!(metadata["models"]["writer"]["calls"], calls);
    let status = in_folder(&case.folder, &["dataset", "status", "killed", "--json"], "");
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["spent"], metadata["spent"]);
    let whole: Value =
        serde_json::from_slice(&std::fs::read(case.folder.join("whole/metadata.json")).unwrap()).unwrap();
    let tokens = |of: &Value| of["models"]["writer"]["output_tokens"].clone();
    assert_eq!(tokens(&metadata), tokens(&whole), "the same replies have the same tokens");
}

#[test]
fn kills_of_stages_with_accepted_rows_change_nothing() {
    // The last digit of a draft follows from its prompt.
    let reply = |call: &ModelCall| {
        let prompt = call.prompt();
        let sum = prompt.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
        match prompt.starts_with("Parts") {
            true => format!("[\"x{}\", \"y{}\"]", sum / 7 % 150, sum % 1000),
            false => format!("{} {}", &prompt[..prompt.len().min(8)], sum / 7 % 10),
        }
    };
    let script = ModelScript { reply: Some(Arc::new(reply)), ..ModelScript::default() };
    let case = Case::scripted("dataset_kill_staged", STAGED, 200, script);
    case.finish("whole");
    let calls = case.server.paid();
    assert_eq!(recorded(&case.folder.join("whole/journal")), calls);
    let rows = case.rows("whole");
    let kills = case.kill_often("killed", 30, 20, 60);
    case.finish("killed");
    let metadata = |out: &str| -> Value {
        let path = case.folder.join(out).join("stages/1-drafts/metadata.json");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    for out in ["whole", "killed"] {
        let stage = &metadata(out)["stages"][0];
        let (rows, dropped) = (&stage["rows"], &stage["dropped"]);
        assert_eq!((rows, dropped), (&200.into(), &0.into()), "{out}: {}", metadata(out)["errors"]);
    }
    assert_eq!(case.rows("killed"), rows);
    let stage = &metadata("killed")["stages"][0];
    let share = 200.0 / stage["candidates"].as_f64().unwrap();
    assert!((0.2..0.4).contains(&share), "{share} of the candidates became rows");
    // Groups that were begun anew may have other sizes, so some candidates more or less were begun.
    let paid = case.server.paid() - calls;
    assert!(paid <= calls + kills * PARALLEL + calls / 10, "{paid} calls for {calls} and {kills} kills");
}

#[test]
fn kills_of_a_shuffled_seed_lose_no_id() {
    let case = Case::new("dataset_kill_shuffled", SHUFFLED, 1000);
    let ids: String = (0..case.rows).map(|id| format!("{id}\n")).collect();
    std::fs::write(case.folder.join("ids.csv"), format!("id\n{ids}")).unwrap();
    case.kill_often("killed", 12, 19, 120);
    case.finish("killed");
    let mut found: Vec<u64> = case
        .rows("killed")
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).unwrap()["id"].as_u64().unwrap())
        .collect();
    assert!(!found.is_sorted(), "the seed is shuffled");
    found.sort_unstable();
    assert!(found.iter().copied().eq(0..case.rows as u64), "{} ids", found.len());
}

#[test]
fn a_full_disk_stops_the_build_and_nothing_is_paid_for_twice() {
    let case = Case::new("dataset_full_disk", CHAINED, 300);
    // A file can have 40 blocks; the signal that a larger one raises is ignored, so that the write fails.
    let script = "trap '' XFSZ; ulimit -f 40; exec \"$0\" \"$@\"";
    let full = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_anabranch")])
        .args(case.command("out"))
        .current_dir(&case.folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&full.stderr).into_owned();
    assert_eq!(full.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write the journal out/journal: "), "{said}");
    let paid = case.server.paid();
    assert!((10..580).contains(&paid), "{paid} calls before the disk was full");
    case.finish("out");
    let extra = case.server.paid() - 600;
    assert!(extra <= PARALLEL, "{extra} calls were paid for twice");
    assert_eq!(case.rows("out").lines().count(), 300);
}
