//! Files that a plan names are confined to its folder and to those that the project allows.

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_plan::{Config, Engine, Project, Registries, RowsFrom, Setup};
use expect_test::{Expect, expect};
use serde_json::json;

const KEYS: &str = r#"
key = [
    { key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
    { key_id = 10, name = "score", type = "float", nullable = true },
]
"#;

const MODEL: &str = r#"{"intercept": 1.0, "weights": {"id": 2.0}}"#;

/// A new folder with `project/plans`, `project/models/m.json` and `elsewhere/m.json`.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("anabranch-files-{name}-{}", std::process::id()));
    for part in ["project/plans", "project/models", "project/registry", "elsewhere"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    for file in ["project/plans/m.json", "project/models/m.json", "elsewhere/m.json"] {
        fs::write(folder.join(file), MODEL).unwrap();
    }
    fs::write(folder.join("project/registry/keys.toml"), KEYS).unwrap();
    folder.canonicalize().unwrap()
}

/// `fine`, or why the plan in `project/plans` cannot have this model.
fn check(engine: &Engine, folder: &Path, file: &str, expected: Expect) {
    let rows = json!({"node_id": "rows", "op": "test::rows", "inputs": [], "params": {}});
    let params = json!({"out_key": 10, "kind": "linear", "file": file});
    let model = json!({"node_id": "model", "op": "core::model", "inputs": ["rows"], "params": params});
    let plan =
        json!({"schema_version": 1, "plan_name": "test", "nodes": [rows, model], "outputs": ["model"]});
    let told = match engine.compile(&plan.to_string(), &folder.join("project/plans")) {
        Ok(_) => "fine".to_owned(),
        Err(error) => error.to_string().replace(folder.to_str().unwrap(), "HERE"),
    };
    expected.assert_eq(&told);
}

fn alone() -> Engine {
    let (registries, _) = Registries::parse([("keys.toml", KEYS)], None).unwrap();
    let mut config = Config::new(registries, Vec::new());
    config.ops.add(rows::Rows);
    Engine::load(config).unwrap()
}

fn of_project(folder: &Path, more: &str) -> Engine {
    let file = folder.join("project/anabranch.toml");
    let project = Project::parse(&format!("[plan]\n{more}\n"), &file).unwrap();
    let setup = Setup { project: Some(project), rows: RowsFrom::Nowhere, ..Setup::default() };
    let (mut config, _) = setup.config().unwrap_or_else(|problems| panic!("{problems}"));
    config.ops.add(rows::Rows);
    Engine::load(config).unwrap()
}

#[test]
fn a_plan_reads_files_of_its_folder_only() {
    let folder = folder("alone");
    let check = |file: &str, expected| check(&alone(), &folder, file, expected);
    check("m.json", expect!["fine"]);
    check("./../plans/m.json", expect!["fine"]);
    check(folder.join("project/plans/m.json").to_str().unwrap(), expect!["fine"]);
    check(
        "none.json",
        expect![
            "node `model` (core::model), file `none.json`: cannot be read: No such file or directory (os error 2)"
        ],
    );
    check(
        "../models/m.json",
        expect![[
            r#"node `model` (core::model), file `../models/m.json`: is outside of the folders that plans may read (HERE/project/plans); move the file there, or allow its folder in anabranch.toml: `files = ["/models"]` under [plan]"#
        ]],
    );
    check(
        "/etc/hostname",
        expect![[
            r#"node `model` (core::model), file `/etc/hostname`: is outside of the folders that plans may read (HERE/project/plans); move the file there, or allow its folder in anabranch.toml: `files = ["/models"]` under [plan]"#
        ]],
    );
    check(
        "/no/such/file",
        expect![[
            r#"node `model` (core::model), file `/no/such/file`: is outside of the folders that plans may read (HERE/project/plans); move the file there, or allow its folder in anabranch.toml: `files = ["/models"]` under [plan]"#
        ]],
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn links_do_not_lead_outside() {
    let folder = folder("links");
    std::os::unix::fs::symlink(folder.join("elsewhere"), folder.join("project/plans/link")).unwrap();
    std::os::unix::fs::symlink(folder.join("project/models"), folder.join("project/plans/models")).unwrap();
    check(
        &alone(),
        &folder,
        "link/m.json",
        expect![[
            r#"node `model` (core::model), file `link/m.json`: is outside of the folders that plans may read (HERE/project/plans); move the file there, or allow its folder in anabranch.toml: `files = ["/models"]` under [plan]"#
        ]],
    );
    check(
        &of_project(&folder, ""),
        &folder,
        "link/m.json",
        expect![[
            r#"node `model` (core::model), file `link/m.json`: is outside of the folders that plans may read (HERE/project/plans, HERE/project); move the file there, or allow its folder in anabranch.toml: `files = ["/models"]` under [plan]"#
        ]],
    );
    check(&of_project(&folder, ""), &folder, "models/m.json", expect!["fine"]);
    check(&of_project(&folder, "files = [\"../elsewhere\"]"), &folder, "link/m.json", expect!["fine"]);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_project_allows_its_own_folder_and_those_it_lists() {
    let folder = folder("project");
    let elsewhere = folder.join("elsewhere/m.json");
    let elsewhere = elsewhere.to_str().unwrap();
    check(&of_project(&folder, ""), &folder, "../models/m.json", expect!["fine"]);
    check(
        &of_project(&folder, ""),
        &folder,
        elsewhere,
        expect![[
            r#"node `model` (core::model), file `HERE/elsewhere/m.json`: is outside of the folders that plans may read (HERE/project/plans, HERE/project); move the file there, or allow its folder in anabranch.toml: `files = ["/models"]` under [plan]"#
        ]],
    );
    check(&of_project(&folder, "files = [\"../elsewhere\"]"), &folder, elsewhere, expect!["fine"]);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn ops_for_tests_need_leave() {
    let folder = folder("test_ops");
    let rows = json!({"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {}});
    let busy =
        json!({"node_id": "busy", "op": "test::busy_cpu", "inputs": ["rows"], "params": {"busy_wait_ms": 1}});
    let plan = json!({"schema_version": 1, "plan_name": "test", "nodes": [rows, busy], "outputs": ["busy"]});
    let check = |more: &str, expected: Expect| {
        let compiled = of_project(&folder, more).compile(&plan.to_string(), &folder);
        expected.assert_eq(&compiled.map_or_else(|error| error.to_string(), |_| "fine".to_owned()));
    };
    check(
        "",
        expect![
            "node `busy` (test::busy_cpu), op: op `test::busy_cpu` is for tests, and the project does not allow these (`test_ops = true` under [plan] of anabranch.toml, or the option --test-ops, allows them)"
        ],
    );
    check("test_ops = true", expect!["fine"]);
    fs::remove_dir_all(&folder).unwrap();
}

/// A source of rows.
mod rows {
    use anabranch_plan::op::{Contract, Effect, Form, Mark, Node, NodePlan, Op, Spec};
    use anabranch_plan::schema::Schema;

    pub(super) struct Rows;

    static SPEC: Spec = Spec {
        name: "test::rows",
        doc: "No rows.",
        inputs: 0,
        params: &[],
        writes: Effect::Keys(&[]),
        contract: Contract::Dense,
        mark: Mark::Inline,
        distinct: false,
    };

    impl Op for Rows {
        fn spec(&self) -> &Spec {
            &SPEC
        }

        fn plan(&self, _: &mut Node<'_>) -> Option<NodePlan> {
            Some(NodePlan::new(Schema::default(), [], |_, _| {
                Form::compute(0.0, |_, _, _| Ok(anabranch_rows::Rows::empty()))
            }))
        }
    }
}
