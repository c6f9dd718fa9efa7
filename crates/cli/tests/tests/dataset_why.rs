//! `dataset why`: the story of one row.

use std::path::Path;
use std::sync::Arc;

use anabranch_testkit::{ModelCall, ModelScript, ModelServer};
use expect_test::{Expect, expect};
use serde_json::Value;

use crate::binary::{in_folder, root};
use crate::dataset::{POEMS, shown, with_config};
use crate::recipe::timeless;

/// A text without moments and times.
fn stable(text: &str) -> String {
    let mut stable = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        for word in ["begun ", "recorded "] {
            if let Some((before, after)) = line.split_once(word)
                && let Some((_, rest)) = after.split_once(" UTC")
            {
                line = format!("{before}{word}WHEN{rest}");
            }
        }
        if let Some((before, after)) = line.split_once("took ") {
            let rest = after.find(',').map_or("", |end| &after[end..]);
            line = format!("{before}took TIME{rest}");
        }
        stable.push_str(&line);
        stable.push('\n');
    }
    stable
}

fn check(folder: &Path, args: &[&str], expected: &Expect) {
    let args = [&["dataset", "why"], args].concat();
    expected.assert_eq(&stable(&shown(&in_folder(folder, &args, ""), folder)));
}

fn build(folder: &Path, args: &[&str]) {
    let said = in_folder(folder, &[&["dataset", "build", "poems.yaml", "--out", "out"], args].concat(), "");
    assert_eq!(said.code, 0, "{}", said.stderr);
}

fn story(folder: &Path, args: &[&str]) -> Value {
    let said = in_folder(folder, &[&["dataset", "why", "out"], args, &["--json"]].concat(), "");
    assert_eq!(said.code, 0, "{}", said.stderr);
    serde_json::from_str(&said.stdout).unwrap()
}

fn models(folder: &Path, server: &ModelServer) {
    let text = format!(
        "model_configs: [{{alias: writer, model: small, provider: here, inference_parameters: {{temperature: 0.5}}}}]\n\
         providers: [{{name: here, endpoint: '{}', api_key: some-key}}]\n",
        server.endpoint()
    );
    std::fs::write(folder.join("models.yaml"), text).unwrap();
}

#[test]
fn a_row_of_the_demo_model() {
    let folder = with_config("dataset_why_demo", POEMS);
    build(&folder, &["--rows", "5", "--demo"]);
    check(&folder, &["out", "2"], &expect![""]);
    check(&folder, &["out", "2", "--column", "poem", "--full"], &expect![""]);
    check(&folder, &["out", "7"], &expect![""]);
    check(&folder, &["out", "2", "--column", "peom"], &expect![""]);
    check(&folder, &["out", "two"], &expect![""]);
    check(&folder, &["nowhere", "2"], &expect![""]);
}

/// Facts that fit for tea at the second attempt, and never for coffee.
const FACTS: &str = "\
run: {max_conversation_restarts: 1}
columns:
  - {name: topic, column_type: sampler, sampler_type: category, params: {values: [tea, coffee]}}
  - name: facts
    column_type: llm-structured
    model_alias: writer
    prompt: 'Facts about {{ topic }}.'
    output_format: {type: object, properties: {cups: {type: integer}}, required: [cups]}
  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ facts.cups }} cups.'}
";

#[test]
fn corrections_and_rows_that_were_dropped() {
    let tries = std::sync::atomic::AtomicUsize::new(0);
    let reply = Arc::new(move |call: &ModelCall| match call.prompt() {
        prompt if prompt.contains("tea") => {
            match tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst) % 2 {
                0 => "no idea".to_owned(),
                _ => "{\"cups\": 3}".to_owned(),
            }
        }
        prompt if prompt.contains("coffee") => "no idea".to_owned(),
        _ => "Three cups.".to_owned(),
    });
    let server = ModelServer::start(ModelScript { reply: Some(reply), ..ModelScript::default() });
    let folder = with_config("dataset_why_dropped", FACTS);
    models(&folder, &server);
    // One call at a time: the second attempt of a row follows its first.
    build(&folder, &["--rows", "6", "--models", "models.yaml", "--parallel", "1"]);
    let calls = server.calls();
    let rows: Vec<Value> = (0..6).map(|row| story(&folder, &[&row.to_string()])).collect();
    let fate = |row: &Value| row["stages"][0]["place"]["fate"].clone();
    let topic = |row: &Value| row["stages"][0]["cells"][0]["value"].clone();
    for row in &rows {
        assert_eq!(fate(row) == "kept", topic(row) == "tea", "{row}");
    }
    let find = |word: &str| rows.iter().position(|row| topic(row) == word).unwrap().to_string();
    check(&folder, &["out", &find("tea")], &expect![""]);
    check(&folder, &["out", &find("coffee")], &expect![""]);
    let kept = &rows[find("tea").parse::<usize>().unwrap()]["stages"][0]["cells"][1];
    assert_eq!(kept["calls"][0]["reply"], "no idea");
    assert_eq!((&kept["calls"][1]["attempt"], &kept["value"]["cups"]), (&2.into(), &3.into()));
    assert_eq!(server.calls(), calls, "no model was asked");

    std::fs::remove_dir_all(folder.join("out/journal")).unwrap();
    check(&folder, &["out", &find("tea")], &expect![""]);
    std::fs::rename(folder.join("poems.yaml"), folder.join("moved.yaml")).unwrap();
    check(&folder, &["out", &find("tea"), "--column", "poem"], &expect![""]);
}

#[test]
fn replies_of_an_earlier_build_are_told_from_its_own() {
    let server = ModelServer::start(ModelScript::default());
    let folder = with_config("dataset_why_reused", POEMS);
    models(&folder, &server);
    let text = std::fs::read_to_string(folder.join("models.yaml")).unwrap();
    std::fs::write(folder.join("models.yaml"), format!("{text}prices: {{small: {{input: 1, output: 2}}}}\n"))
        .unwrap();
    build(&folder, &["--rows", "2", "--models", "models.yaml"]);
    let paid = |column: &str| {
        let found = story(&folder, &["0", "--column", column]);
        let call = &found["stages"][0]["cells"][0]["calls"][0];
        let tokens = |name: &str| call[name].as_f64().unwrap();
        assert_eq!(call["cost"], (tokens("input_tokens") + 2.0 * tokens("output_tokens")) / 1e6);
        call["paid_by_this_build"].as_bool().unwrap()
    };
    assert!(paid("poem"));
    let edited = format!(
        "{POEMS}  - {{name: title, column_type: llm-text, model_alias: writer, prompt: 'A title for {{{{ poem }}}}.'}}\n"
    );
    std::fs::write(folder.join("poems.yaml"), edited).unwrap();
    build(&folder, &["--rows", "2", "--models", "models.yaml", "--replace"]);
    assert!(!paid("poem"));
    assert!(paid("title"));
    // A build that is continued stays the same one.
    build(&folder, &["--rows", "3", "--models", "models.yaml"]);
    assert!(paid("title"));
}

#[test]
fn an_edited_configuration_is_told() {
    let folder = with_config("dataset_why_edited", POEMS);
    build(&folder, &["--rows", "3", "--demo"]);
    std::fs::write(folder.join("poems.yaml"), POEMS.replace("{{ topic }}", "{{ topic }} now")).unwrap();
    check(&folder, &["out", "1", "--column", "poem"], &expect![""]);
}

#[test]
fn a_terminal_never_gets_control_characters() {
    let reply =
        Arc::new(|_: &ModelCall| "red \u{1b}[31m\u{7} \u{202e}and\r back\nsecond\u{9b}2J line".to_owned());
    let server = ModelServer::start(ModelScript { reply: Some(reply), ..ModelScript::default() });
    let config = "columns:\n  - {name: topic, column_type: sampler, sampler_type: category, params: {values: [\"a\\x1b[2Jb\"]}}\n  \
         - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'On {{ topic }}.'}\n";
    let folder = with_config("dataset_why_hostile", config);
    models(&folder, &server);
    build(&folder, &["--rows", "1", "--models", "models.yaml"]);
    for args in [&["out", "0"][..], &["out", "0", "--full"], &["out", "0", "--json"]] {
        let said = in_folder(&folder, &[&["dataset", "why"], args].concat(), "");
        assert_eq!(said.code, 0, "{}", said.stderr);
        let is_wrong = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
        assert!(said.stdout.contains("2J"), "{}", said.stdout);
        if !args.contains(&"--json") {
            assert!(!said.stdout.contains(is_wrong), "{:?}", said.stdout);
        } else {
            assert!(!said.stdout.contains('\u{1b}'), "{:?}", said.stdout);
        }
    }
}

/// Rows of a seed that are filtered and taken apart before a model sees them.
const STAGES: &str = "\
seed_config: {source: {seed_type: local, path: pets.jsonl}}
stages:
  - name: pets
    columns:
      - {name: title, column_type: expression, expr: 'The {{ pet }}'}
    steps:
      - filter: pet != 'eel'
      - explode: names
  - name: poems
    columns:
      - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ names }}, {{ title }}.'}
";

/// The commands of `docs/dataset-why.md` say what the page shows. UPDATE_EXPECT=1 rewrites the page.
#[test]
fn the_page_is_right() {
    let page = root().join("docs/dataset-why.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let config = text.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = with_config("dataset_why_page", "");
    std::fs::write(folder.join("questions.yaml"), config).unwrap();
    let mut parts = text.split("```console\n");
    let mut rewritten = parts.next().unwrap().to_owned();
    for part in parts {
        let (shown, rest) = part.split_once("```").unwrap();
        let mut said = String::new();
        for command in shown.lines().filter_map(|line| line.strip_prefix("$ anabranch ")) {
            let got = in_folder(&folder, &command.split(' ').collect::<Vec<_>>(), "");
            said.push_str(&format!("$ anabranch {command}\n{}{}", got.stdout, got.stderr));
        }
        let steady = |text: &str| stable(&timeless(text));
        let is_right = steady(&said) == steady(shown);
        rewritten.push_str(&format!("```console\n{}```{rest}", if is_right { shown } else { &said }));
    }
    match std::env::var_os("UPDATE_EXPECT") {
        Some(_) => std::fs::write(&page, &rewritten).unwrap(),
        None => assert_eq!(rewritten, text),
    }
}

#[test]
fn a_row_is_followed_through_the_stages() {
    let folder = with_config("dataset_why_stages", STAGES);
    let pets = "{\"pet\": \"cat\", \"names\": [\"Tom\", \"Kit\"]}\n{\"pet\": \"eel\", \"names\": [\"Al\"]}\n{\"pet\": \"dog\", \"names\": []}\n";
    std::fs::write(folder.join("pets.jsonl"), pets).unwrap();
    build(&folder, &["--rows", "3", "--demo"]);
    check(&folder, &["out", "0"], &expect![""]);
    check(&folder, &["out", "0.1"], &expect![""]);
    check(&folder, &["out", "0.7"], &expect![""]);
    check(&folder, &["out", "1"], &expect![""]);
    check(&folder, &["out", "2"], &expect![""]);
    // The number that files have for the row.
    let found = story(&folder, &["0.1"]);
    let id = found["stages"][1]["id"].as_str().unwrap();
    assert_eq!(story(&folder, &[id])["row"], "0.1");
}
