//! `dataset why`: the story of one row.

use std::path::{Path, PathBuf};
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
        if let Some((before, after)) = line.split_once(", took ") {
            let rest = after.find(',').map_or("", |end| &after[end..]);
            line = format!("{before}, took TIME{rest}");
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
    check(
        &folder,
        &["out", "2"],
        &expect![[r#"
            row 2 of poems (out): at position 2 of 5 in parquet-files/batch_00000.parquet
            built from poems.yaml, seed 0, the demo model, begun WHEN

            topic (sampler): coffee

            poem (llm-text, writer: the demo model)
              asked     A poem about coffee.
              answered  Here is a short take on coffee. It took a few attempts to get this right. Please note that this is demo text and not a model's answer.
              reasoning Demo text: the demo model does not reason.
                        5 tokens in, 34 out, took TIME, recorded WHEN, paid for by this build

            facts (llm-structured, writer: the demo model)
              asked     Facts about Here is a short take on coffee. It took a few attempts to get this right. Please note that this is demo text and not a model's answer..

                        Reply with one JSON value and nothing else, inside a ```json code block. The value must be valid under this JSON schema:
                        <response_schema>
                        {"type":"object","properties":{"lines":{"type":"integer","minimum":1,"maximum":9}},"required":["lines"]}
                        </response_schema>
              answered  ```json
                        {"lines":9}
                        ```
              reasoning Demo text: the demo model does not reason.
                        103 tokens in, 6 out, took TIME, recorded WHEN, paid for by this build
              value     {"lines":9}

            title (expression): COFFEE, 9 lines
            exit 0
        "#]],
    );
    check(
        &folder,
        &["out", "2", "--column", "poem", "--full"],
        &expect![[r#"
            row 2 of poems (out): at position 2 of 5 in parquet-files/batch_00000.parquet
            built from poems.yaml, seed 0, the demo model, begun WHEN

            poem (llm-text, writer: the demo model)
              asked     A poem about coffee.
              answered  Here is a short take on coffee. It took a few attempts to get this right. Please note that this is demo text and not a model's answer.
              reasoning Demo text: the demo model does not reason.
                        5 tokens in, 34 out, took TIME, recorded WHEN, paid for by this build
            exit 0
        "#]],
    );
}

#[test]
fn rows_and_columns_that_are_not_there() {
    let folder = with_config("dataset_why_nothing", POEMS);
    build(&folder, &["--rows", "5", "--demo"]);
    check(
        &folder,
        &["out", "7"],
        &expect![[r#"
        row 7 of poems (out): not in the files: the build did not come to it, or had enough rows before
        built from poems.yaml, seed 0, the demo model, begun WHEN
        exit 0
    "#]],
    );
    check(
        &folder,
        &["out", "2", "--column", "peom"],
        &expect![[r#"
        stderr: error: the row has no column `peom`; did you mean `poem`?
        exit 1
    "#]],
    );
    check(
        &folder,
        &["out", "two"],
        &expect![[r#"
        stderr: error: invalid value 'two' for '<ROW>': a row is a number such as `17`, or `17.3` for a part of it
        stderr:
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
    check(
        &folder,
        &["nowhere", "2"],
        &expect![[r#"
        stderr: error: nowhere does not exist; name the folder that `dataset build --out` wrote
        exit 1
    "#]],
    );
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

/// A dataset of facts, with the server that answered, and the first rows about tea and about coffee.
fn facts(test: &str) -> (PathBuf, ModelServer, [String; 2]) {
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
    let folder = with_config(test, FACTS);
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
    let found = ["tea", "coffee"].map(find);
    assert_eq!(server.calls(), calls, "no model was asked for the stories");
    (folder, server, found)
}

#[test]
fn corrections_are_told() {
    let (folder, _server, [tea, _]) = facts("dataset_why_corrected");
    check(
        &folder,
        &["out", &tea],
        &expect![[r#"
        row 0 of poems (out): at position 0 of 5 in parquet-files/batch_00000.parquet
        built from poems.yaml, seed 0, begun WHEN

        topic (sampler): tea

        facts (llm-structured, writer: here/small)
          asked     Facts about tea.

                    Reply with one JSON value and nothing else, inside a ```json code block. The value must be valid under this JSON schema:
                    <response_schema>
                    {"type":"object","properties":{"cups":{"type":"integer"}},"required":["cups"]}
                    </response_schema>
          with      temperature 0.5
          answered  no idea
                    64 tokens in, 2 out, took TIME, recorded WHEN, paid for by this build
          asked     the same once more (attempt 2)
          answered  {"cups": 3}
                    64 tokens in, 3 out, took TIME, recorded WHEN, paid for by this build
          value     {"cups":3}

        poem (llm-text, writer: here/small)
          asked     A poem about 3 cups.
          with      temperature 0.5
          answered  Three cups.
                    5 tokens in, 3 out, took TIME, recorded WHEN, paid for by this build
        exit 0
    "#]],
    );
    let found = story(&folder, &[&tea]);
    let kept = &found["stages"][0]["cells"][1];
    assert_eq!(kept["calls"][0]["reply"], "no idea");
    assert_eq!((&kept["calls"][1]["attempt"], &kept["value"]["cups"]), (&2.into(), &3.into()));
}

#[test]
fn a_row_that_was_dropped() {
    let (folder, _server, [_, coffee]) = facts("dataset_why_dropped");
    check(
        &folder,
        &["out", &coffee],
        &expect![[r#"
        row 2 of poems (out): dropped, because `facts` failed
        built from poems.yaml, seed 0, begun WHEN

        topic (sampler): coffee

        facts (llm-structured, writer: here/small)
          asked     Facts about coffee.

                    Reply with one JSON value and nothing else, inside a ```json code block. The value must be valid under this JSON schema:
                    <response_schema>
                    {"type":"object","properties":{"cups":{"type":"integer"}},"required":["cups"]}
                    </response_schema>
          with      temperature 0.5
          answered  no idea
                    65 tokens in, 2 out, took TIME, recorded WHEN, paid for by this build
          asked     the same once more (attempt 2)
          answered  no idea
                    65 tokens in, 2 out, took TIME, recorded WHEN, paid for by this build
          failed    reply_format after 2 tries, the row is dropped: here/small: no reply of 2 calls fits: the reply is not JSON: expected ident at line 1 column 2; it begins with `no idea`
        exit 0
    "#]],
    );
}

#[test]
fn what_is_gone_is_told() {
    let (folder, _server, [tea, _]) = facts("dataset_why_gone");
    std::fs::remove_dir_all(folder.join("out/journal")).unwrap();
    check(
        &folder,
        &["out", &tea],
        &expect![[r#"
        row 0 of poems (out): at position 0 of 5 in parquet-files/batch_00000.parquet
        built from poems.yaml, seed 0, begun WHEN

        topic (sampler): tea

        facts (llm-structured): {"cups":3}

        poem (llm-text): Three cups.

        note: the journal FOLDER/out/journal is gone, and the prompts and replies with it; name another one (--journal DIR) if it was moved
        exit 0
    "#]],
    );
    std::fs::rename(folder.join("poems.yaml"), folder.join("moved.yaml")).unwrap();
    check(
        &folder,
        &["out", &tea, "--column", "poem"],
        &expect![[r#"
        row 0 of poems (out): at position 0 of 5 in parquet-files/batch_00000.parquet
        built from poems.yaml, seed 0, begun WHEN

        poem: Three cups.

        note: the configuration FOLDER/poems.yaml is not there any more: name it (--config FILE) to see prompts and replies
        exit 0
    "#]],
    );
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
        "{POEMS}  - {{name: heading, column_type: llm-text, model_alias: writer, prompt: 'A title for {{{{ poem }}}}.'}}\n"
    );
    std::fs::write(folder.join("poems.yaml"), edited).unwrap();
    build(&folder, &["--rows", "2", "--models", "models.yaml", "--replace"]);
    assert!(!paid("poem"));
    assert!(paid("heading"));
    // A build that is continued stays the same one.
    build(&folder, &["--rows", "3", "--models", "models.yaml"]);
    assert!(paid("heading"));
}

#[test]
fn an_edited_configuration_is_told() {
    let folder = with_config("dataset_why_edited", POEMS);
    build(&folder, &["--rows", "3", "--demo"]);
    std::fs::write(folder.join("poems.yaml"), POEMS.replace("{{ topic }}", "{{ topic }} now")).unwrap();
    check(
        &folder,
        &["out", "1", "--column", "poem"],
        &expect![[r#"
        row 1 of poems (out): at position 1 of 3 in parquet-files/batch_00000.parquet
        built from poems.yaml, seed 0, the demo model, begun WHEN

        poem (llm-text, writer: the demo model)
          asked     A poem about tea now.
          answered  the journal has no reply to this request
          value     A few words about the topic. A good example says more than a long definition. All of this is demo text from an offline stand-in.

        note: the dataset was made with another configuration (since then edited: `poem`): prompts are shown as they are now
        exit 0
    "#]],
    );
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
    let mut parts = text.split("````console\n");
    let mut rewritten = parts.next().unwrap().to_owned();
    for part in parts {
        let (shown, rest) = part.split_once("````").unwrap();
        let mut said = String::new();
        for command in shown.lines().filter_map(|line| line.strip_prefix("$ anabranch ")) {
            let got = in_folder(&folder, &command.split(' ').collect::<Vec<_>>(), "");
            said.push_str(&format!("$ anabranch {command}\n{}{}", got.stdout, got.stderr));
        }
        let steady = |text: &str| stable(&timeless(text));
        let is_right = steady(&said) == steady(shown);
        rewritten.push_str(&format!("````console\n{}````{rest}", if is_right { shown } else { &said }));
    }
    match std::env::var_os("UPDATE_EXPECT") {
        Some(_) => std::fs::write(&page, &rewritten).unwrap(),
        None => assert_eq!(rewritten, text),
    }
}

/// A cat with two names, an eel that is filtered out, and a dog without a name.
fn pets(test: &str) -> PathBuf {
    let folder = with_config(test, STAGES);
    let pets = "{\"pet\": \"cat\", \"names\": [\"Tom\", \"Kit\"]}\n{\"pet\": \"eel\", \"names\": [\"Al\"]}\n{\"pet\": \"dog\", \"names\": []}\n";
    std::fs::write(folder.join("pets.jsonl"), pets).unwrap();
    build(&folder, &["--rows", "3", "--demo"]);
    folder
}

#[test]
fn a_row_is_followed_through_the_stages() {
    let folder = pets("dataset_why_stages");
    check(
        &folder,
        &["out", "0"],
        &expect![[r#"
            row 0 of poems (out): taken apart by step 2 (explode) behind the stage `pets`
            built from poems.yaml, seed 0, the demo model, begun WHEN

            stage `pets`, row 0: at position 0 of 3 in stages/1-pets/parquet-files/batch_00000.parquet

            pet (seed): cat

            names (seed): ["Tom","Kit"]

            title (expression): The cat

            step 2 (explode) took the row apart: 0.0, 0.1
            exit 0
        "#]],
    );
    check(
        &folder,
        &["out", "0.1"],
        &expect![[r#"
            row 0.1 of poems (out): at position 1 of 2 in parquet-files/batch_00000.parquet
            built from poems.yaml, seed 0, the demo model, begun WHEN

            stage `pets`, row 0: at position 0 of 3 in stages/1-pets/parquet-files/batch_00000.parquet

            pet (seed): cat

            names (seed): ["Tom","Kit"]

            title (expression): The cat

            stage `poems`, row 0.1: at position 1 of 2 in parquet-files/batch_00000.parquet

            names (seed): Kit

            poem (llm-text, writer: the demo model)
              asked     A poem about Kit, The cat.
              answered  Here is a short take on the topic. The numbers are modest, and the effect is not. All of this is demo text from an offline stand-in.
              reasoning Demo text: the demo model does not reason.
                        7 tokens in, 33 out, took TIME, recorded WHEN, paid for by this build
            exit 0
        "#]],
    );
    // The number that files have for the row.
    let found = story(&folder, &["0.1"]);
    let id = found["stages"][1]["id"].as_str().unwrap();
    assert_eq!(story(&folder, &[id])["row"], "0.1");
}

#[test]
fn rows_that_steps_dropped() {
    let folder = pets("dataset_why_steps");
    check(
        &folder,
        &["out", "0.7"],
        &expect![[r#"
            row 0.7 of poems (out): there is no row 0.7
            built from poems.yaml, seed 0, the demo model, begun WHEN

            stage `pets`, row 0: at position 0 of 3 in stages/1-pets/parquet-files/batch_00000.parquet

            pet (seed): cat

            names (seed): ["Tom","Kit"]

            title (expression): The cat

            step 2 (explode) took the row apart into 2 rows; 0.7 is not among them
            exit 0
        "#]],
    );
    check(
        &folder,
        &["out", "1"],
        &expect![[r#"
            row 1 of poems (out): dropped by step 1 (filter) behind the stage `pets`
            built from poems.yaml, seed 0, the demo model, begun WHEN

            stage `pets`, row 1: at position 1 of 3 in stages/1-pets/parquet-files/batch_00000.parquet

            pet (seed): eel

            names (seed): ["Al"]

            title (expression): The eel

            step 1 (filter) dropped the row: its condition was not met
            exit 0
        "#]],
    );
    check(
        &folder,
        &["out", "2"],
        &expect![[r#"
            row 2 of poems (out): dropped by step 2 (explode) behind the stage `pets`
            built from poems.yaml, seed 0, the demo model, begun WHEN

            stage `pets`, row 2: at position 2 of 3 in stages/1-pets/parquet-files/batch_00000.parquet

            pet (seed): dog

            names (seed): []

            title (expression): The dog

            step 2 (explode) dropped the row: there was no item to make a row of
            exit 0
        "#]],
    );
}

#[test]
fn a_row_that_was_not_accepted() {
    let config = "\
columns:
  - {name: level, column_type: sampler, sampler_type: uniform, params: {low: 1, high: 9}, convert_to: int}
  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem for level {{ level }}.'}
accept: level > 5
";
    let folder = with_config("dataset_why_accept", config);
    build(&folder, &["--rows", "5", "--demo"]);
    let mut fates = (0..10).map(|row| {
        let found = story(&folder, &[&row.to_string()]);
        let level = found["stages"][0]["cells"][0]["value"].as_i64();
        (row, found["stages"][0]["place"]["fate"].clone(), level)
    });
    let (row, ..) = fates
        .find(|(_, fate, level)| {
            let is_rejected = fate == "not_accepted";
            assert!(level.is_none_or(|level| (level > 5) != is_rejected), "{fate} {level:?}");
            is_rejected
        })
        .unwrap();
    check(
        &folder,
        &["out", &row.to_string()],
        &expect![[r#"
        row 0 of poems (out): not accepted: `accept` was not met (`level > 5`)
        built from poems.yaml, seed 0, the demo model, begun WHEN

        level (sampler): 1
        exit 0
    "#]],
    );
}
