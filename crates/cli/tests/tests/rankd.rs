//! Plans of rankd, where they are at hand: the answers it gives, the files it refuses.

use std::path::PathBuf;

use serde_json::Value;

use crate::binary::{in_folder, root, scratch};

/// Where they are. Without them a test says that it was skipped.
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn rankd() -> Option<PathBuf> {
    let folder = root().join("../shared/compat/rankd");
    if !folder.is_dir() {
        eprintln!("skipped: ../shared/compat/rankd is not there");
        return None;
    }
    Some(folder.canonicalize().unwrap())
}

#[test]
fn golden_answers() {
    let Some(rankd) = rankd() else { return };
    let path = |name: &str| rankd.join(name).to_str().unwrap().to_owned();
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path("golden.json")).unwrap()).unwrap();
    for case in golden.as_array().unwrap() {
        let plan = path(&format!("plans/{}.plan.json", case["plan"].as_str().unwrap()));
        let args = [
            "plan",
            "run",
            &plan,
            "--registry",
            &path("registry"),
            "--data",
            &path("data.json"),
            "--test-ops",
        ];
        let said = in_folder(&scratch("golden"), &args, &case["request"].to_string());
        assert_eq!(Value::from(said.ids()), case["ids"], "{plan}");
        if let Some(scores) = case.get("final_score") {
            let answer = said.answer();
            let rows = answer["candidates"].as_array().unwrap();
            let found: Vec<&Value> = rows.iter().map(|row| &row["fields"]["final_score"]).collect();
            assert_eq!(found, scores.as_array().unwrap().iter().collect::<Vec<_>>(), "{plan}");
        }
    }
}

#[test]
fn every_rejected_file_is_refused_with_its_place() {
    let Some(rankd) = rankd() else { return };
    let registry = rankd.join("registry");
    for entry in std::fs::read_dir(rankd.join("rejected")).unwrap() {
        let file = entry.unwrap().path();
        let args =
            ["plan", "check", file.to_str().unwrap(), "--registry", registry.to_str().unwrap(), "--test-ops"];
        let said = in_folder(&scratch("rejected"), &args, "");
        assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{}", said.shown());
        let text = std::fs::read_to_string(&file).unwrap();
        let plan: Value = serde_json::from_str(&text).unwrap();
        let nodes = plan["nodes"].as_array().unwrap().iter().filter_map(|node| node["node_id"].as_str());
        let mut places = nodes.map(|node| format!("`{node}`")).chain(
            ["pred_table", "expr_table", "capabilities_required", "extensions", "outputs"].map(str::to_owned),
        );
        assert!(places.any(|place| said.stderr.contains(&place)), "{}", said.shown());
    }
}

#[test]
fn what_they_measure_with_loads() {
    let Some(rankd) = rankd() else { return };
    let registry = rankd.join("registry");
    for entry in std::fs::read_dir(rankd.join("perf")).unwrap() {
        let file = entry.unwrap().path();
        let args =
            ["plan", "check", file.to_str().unwrap(), "--registry", registry.to_str().unwrap(), "--test-ops"];
        let said = in_folder(&scratch("perf"), &args, "");
        assert_eq!(said.code, 0, "{}", said.shown());
    }
}
