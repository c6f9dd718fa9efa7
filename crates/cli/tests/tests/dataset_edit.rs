//! `dataset build` after an edit of the configuration: the server is called for the cells that changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_testkit::{ModelCall, ModelScript, ModelServer};
use expect_test::expect;
use serde_json::Value;

use crate::binary::in_folder;
use crate::dataset::{shown, with_config};

const ROWS: usize = 300;

const CONFIG: &str = "\
columns:
  - {name: id, column_type: sampler, sampler_type: uuid, params: {short_form: true}}
  - {name: pet, column_type: sampler, sampler_type: category, params: {values: [cat, dog, eel]}}
  - {name: name, column_type: llm-text, model_alias: writer, prompt: 'Name a {{ pet }} {{ id }}'}
  - {name: mood, column_type: llm-text, model_alias: writer, prompt: 'Mood of {{ name }}'}
  - {name: story, column_type: llm-text, model_alias: writer, prompt: 'Story of {{ id }}, {{ mood }}'}
  - {name: food, column_type: llm-text, model_alias: writer, prompt: 'Food of {{ name }}'}
";

/// Moods are few, so that an edited prompt often gets the reply of the prompt before it.
fn server() -> ModelServer {
    let reply = Arc::new(|call: &ModelCall| {
        let prompt = call.prompt();
        let sum = prompt.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        if prompt.starts_with("Mood") || prompt.starts_with("Temper") {
            ["calm", "wild"][(sum >> 7) as usize % 2].to_owned()
        } else {
            format!("reply {sum:x}")
        }
    });
    ModelServer::start(ModelScript { reply: Some(reply), ..ModelScript::default() })
}

struct Pets {
    folder: PathBuf,
    server: ModelServer,
    /// Calls that were counted already.
    counted: std::cell::Cell<usize>,
}

impl Pets {
    fn new(test: &str) -> Pets {
        let (folder, server) = (with_config(test, CONFIG), server());
        let models = format!(
            "model_configs: [{{alias: writer, model: small, provider: here}}]\n\
             providers: [{{name: here, endpoint: '{}', api_key: some-key}}]\n",
            server.endpoint()
        );
        std::fs::write(folder.join("models.yaml"), models).unwrap();
        Pets { folder, server, counted: std::cell::Cell::new(0) }
    }

    /// Builds a configuration. Returns the calls by the first word of the prompt.
    fn build(&self, config: &str, more: &[&str]) -> BTreeMap<String, usize> {
        std::fs::write(self.folder.join("poems.yaml"), config).unwrap();
        let rows = ROWS.to_string();
        let args = ["dataset", "build", "poems.yaml", "--rows", &rows, "--models", "models.yaml", "--json"];
        let said = in_folder(&self.folder, &[&args, more].concat(), "");
        assert_eq!(said.code, 0, "{}", said.stderr);
        let requests = self.server.requests();
        let new = requests[self.counted.replace(requests.len())..].iter();
        let mut words = BTreeMap::new();
        new.for_each(|call| {
            *words.entry(call.prompt().split(' ').next().unwrap().to_owned()).or_default() += 1;
        });
        words
    }

    fn rows(&self, out: &str) -> Vec<Value> {
        rows(&self.folder, out)
    }
}

fn rows(folder: &Path, out: &str) -> Vec<Value> {
    let said = in_folder(folder, &["dataset", "export", out, "--format", "jsonl"], "");
    assert_eq!(said.code, 0, "{}", said.stderr);
    said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn counts<const N: usize>(counts: [(&str, usize); N]) -> BTreeMap<String, usize> {
    counts.into_iter().filter(|(_, count)| *count > 0).map(|(word, count)| (word.to_owned(), count)).collect()
}

#[test]
fn an_edited_prompt_costs_its_cells_and_the_dependants_that_changed() {
    let pets = Pets::new("dataset_edit_prompt");
    let all = [("Name", ROWS), ("Mood", ROWS), ("Story", ROWS), ("Food", ROWS)];
    assert_eq!(pets.build(CONFIG, &["--out", "out"]), counts(all));
    let before = pets.rows("out");

    let edited = CONFIG.replace("Mood of", "Temper of");
    std::fs::write(pets.folder.join("poems.yaml"), &edited).unwrap();
    let refused =
        ["dataset", "build", "poems.yaml", "--rows", "300", "--models", "models.yaml", "--out", "out"];
    expect![[r#"
        stderr: error: out holds a dataset that was made with another configuration (since then edited: `mood`); --replace builds it again: replies in the journal that still fit are used again, and cost nothing (`anabranch dataset plan` tells the cost before); or choose another folder
        exit 1
    "#]].assert_eq(&shown(&in_folder(&pets.folder, &refused, ""), &pets.folder));

    let paid = pets.build(&edited, &["--out", "out", "--replace"]);
    let after = pets.rows("out");
    let changed = before.iter().zip(&after).filter(|(before, after)| before["mood"] != after["mood"]).count();
    assert!((50..250).contains(&changed), "{changed} moods changed");
    assert_eq!(paid, counts([("Temper", ROWS), ("Story", changed)]));
    for (before, after) in before.iter().zip(&after) {
        let is_same = |name: &str| before[name] == after[name];
        assert!(["id", "pet", "name", "food"].into_iter().all(is_same), "{before} {after}");
        assert_eq!(is_same("mood"), is_same("story"), "{before} {after}");
    }
    assert_eq!(pets.build(CONFIG, &["--out", "out", "--replace"]), counts([]));
    assert_eq!(pets.rows("out"), before);
}

#[test]
fn other_names_places_and_folders_cost_nothing() {
    let pets = Pets::new("dataset_edit_names");
    let journal = ["--journal", "replies"];
    pets.build(CONFIG, &[&["--out", "out"], &journal[..]].concat());
    let before = pets.rows("out");
    let renamed = CONFIG
        .replace("name: pet", "name: animal")
        .replace("{{ pet }}", "{{ animal }}")
        .replace("name: mood", "name: temper")
        .replace("{{ mood }}", "{{ temper }}");
    let mut lines: Vec<&str> = renamed.lines().skip(1).collect();
    lines.reverse();
    let moved = format!("columns:\n{}\n", lines.join("\n"));
    assert_eq!(pets.build(&moved, &[&["--out", "elsewhere"], &journal[..]].concat()), counts([]));
    for (before, after) in before.iter().zip(pets.rows("elsewhere")) {
        let names =
            [("id", "id"), ("pet", "animal"), ("mood", "temper"), ("story", "story"), ("food", "food")];
        names.into_iter().for_each(|(old, new)| assert_eq!(before[old], after[new]));
    }
    let added = format!(
        "{CONFIG}  - {{name: song, column_type: llm-text, model_alias: writer, prompt: 'Song for {{{{ name }}}}'}}\n"
    );
    let added = pets.build(&added, &[&["--out", "out", "--replace"], &journal[..]].concat());
    assert_eq!(added, counts([("Song", ROWS)]));
    let removed: String =
        CONFIG.lines().filter(|line| !line.contains("name: food")).map(|line| format!("{line}\n")).collect();
    assert_eq!(pets.build(&removed, &[&["--out", "out", "--replace"], &journal[..]].concat()), counts([]));
}
