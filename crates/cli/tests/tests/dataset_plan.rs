//! `dataset plan`: the cost of a build before it runs.

use expect_test::{expect, expect_file};
use serde_json::Value;

use crate::binary::{anabranch, in_folder};
use crate::dataset::{POEMS, check, with_config};

const PLAN: [&str; 8] = ["plan", "poems.yaml", "--rows", "40", "--out", "out", "--demo", "--buffer-size=10"];

fn plan(folder: &std::path::Path, more: &[&str]) -> Value {
    let said = in_folder(folder, &[&["dataset"], &PLAN[..], more, &["--json"]].concat(), "");
    assert_eq!(said.code, 0, "{}", said.shown());
    serde_json::from_str(&said.stdout).unwrap()
}

#[test]
fn help_of_plan() {
    let said = anabranch(&["dataset", "plan", "--help"], "");
    expect_file!["dataset_plan_help.txt"].assert_eq(&said.shown());
    assert!(said.stdout.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn a_first_plan_guesses_and_makes_nothing() {
    let folder = with_config("dataset_plan_first", POEMS);
    check(
        &folder,
        &PLAN,
        &expect![[r#"
        poems: a plan of 40 rows in out

          column  alias   cells  reused  generate  calls  tokens in  tokens out  cost      figures  why
          ------  ------  -----  ------  --------  -----  ---------  ----------  --------  -------  -------------
          poem    writer     40       0        40     40        179        8000  no price  guess    not built yet
          facts   writer     40       0        40     40      11270        8000  no price  guess    not built yet

          80 calls, about 27.4 k tokens, money unknown (no prices), 9 s; 0 cells reused
          a guess: `poem`: 4 bytes per token
          a guess: `poem`: 200 tokens per reply
          a guess: `poem`: 2 seconds per call
          a guess: `facts`: every reply fits at once
          a guess: `facts`: 4 bytes per token
          a guess: `facts`: 200 tokens per reply
          a guess: `facts`: 2 seconds per call
        exit 0
    "#]],
    );
    assert!(!folder.join("out").exists());
    let planned = plan(&folder, &["--save"]);
    assert_eq!(planned["calls"], 80);
    assert!(folder.join("out/plan.json").is_file());
}

#[test]
fn a_plan_is_shown_beside_its_build() {
    let folder = with_config("dataset_plan_check", POEMS);
    let build = |rows: &str, more: &[&str]| {
        let build =
            ["dataset", "build", "poems.yaml", "--out", "out", "--demo", "--buffer-size=10", "--rows", rows];
        in_folder(&folder, &[&build[..], more].concat(), "")
    };
    assert_eq!(build("20", &[]).code, 0);
    let planned = plan(&folder, &[]);
    assert_eq!(
        (&planned["calls"], &planned["rows_on_disk"], &planned["reused"]),
        (&40.into(), &20.into(), &40.into())
    );
    assert_eq!(planned["guesses"], serde_json::json!([]));
    let said = build("40", &["--json"]);
    let end: Value = serde_json::from_str(said.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&end["plan"]["estimated"]["calls"], &end["plan"]["actual"]["calls"]),
        (&40.into(), &40.into())
    );
    let metadata = std::fs::read_to_string(folder.join("out/metadata.json")).unwrap();
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    assert_eq!(metadata["plan"]["actual"]["calls"], 40);
    let said = build("40", &[]);
    assert!(said.stdout.contains("the plan beside the build"), "{}", said.shown());
    // Now there is nothing to do.
    let planned = plan(&folder, &[]);
    assert_eq!((&planned["calls"], &planned["is_complete"]), (&0.into(), &true.into()));
}

#[test]
fn no_key_is_needed() {
    let folder = with_config("dataset_plan_key", POEMS);
    let models = "model_configs: [{alias: writer, model: small, provider: far}]\n\
                  providers: [{name: far, endpoint: 'https://example.invalid/v1', api_key: NO_SUCH_KEY_IS_SET}]\n\
                  prices: {writer: {input: 1, output: 2}}\n";
    std::fs::write(folder.join("models.yaml"), models).unwrap();
    let args = [
        "dataset",
        "plan",
        "poems.yaml",
        "--rows",
        "40",
        "--out",
        "out",
        "--models",
        "models.yaml",
        "--json",
    ];
    let said = in_folder(&folder, &args, "");
    let planned: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{}", said.shown()));
    assert_eq!((&planned["calls"], planned["cost"].as_f64().unwrap() > 0.0), (&80.into(), true));
}
