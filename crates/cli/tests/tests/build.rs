//! Plans in TypeScript: built, checked, watched, run; and what hostile ones come to.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use expect_test::expect;

use crate::binary::{Said, anabranch, examples, in_folder, scratch};

/// A project of its own with these plan files, on the examples' registry and data.
fn project(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = scratch(test);
    std::fs::remove_dir_all(&folder).unwrap();
    let plans = folder.join("plans");
    std::fs::create_dir_all(&plans).unwrap();
    let examples = examples();
    let (registry, data) = (examples.join("registry"), examples.join("data.json"));
    let text = format!(
        "[plan]\nregistry = '{}'\nplans = 'plans'\n[plan.endpoints.redis_default]\nsource = 'memory'\ndata = ['{}']\n",
        registry.display(),
        data.display()
    );
    std::fs::write(folder.join("anabranch.toml"), text).unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(plans.join(name), text).unwrap());
    folder
}

/// A plan whose `build` has this body.
fn plan(name: &str, body: &str) -> String {
    format!(
        "import {{ definePlan }} from \"anabranch\";\nexport default definePlan({{ name: \"{name}\", build: (ctx) => {{\n\
         const v = ctx.viewer({{ endpoint: EP.redis.redis_default }});\n{body}\n}} }});\n"
    )
}

fn build(folder: &Path, args: &[&str]) -> Said {
    in_folder(folder, &[&["plan", "build"], args].concat(), "")
}

#[test]
fn the_examples_are_as_they_are_built() {
    expect![[""]].assert_eq(&anabranch(&["plan", "build", "--check"], "").shown());
}

#[test]
fn plans_are_built_and_found_out_of_date() {
    let (a, b) = (plan("a", "return v;"), plan("b", "return v.take({ count: 1 });"));
    let folder = project("build", &[("a.plan.ts", &a), ("b.plan.ts", &b)]);
    expect![[""]].assert_eq(&build(&folder, &["--check"]).shown_from(&folder));
    expect![[""]].assert_eq(&build(&folder, &[]).shown_from(&folder));
    expect![[""]].assert_eq(&build(&folder, &["--check"]).shown_from(&folder));
    expect![[""]].assert_eq(&build(&folder, &["a"]).shown_from(&folder));
    std::fs::write(folder.join("plans/b.plan.ts"), plan("b", "return v.take({ count: 2 });")).unwrap();
    expect![[""]].assert_eq(&build(&folder, &["--check"]).shown_from(&folder));
    std::fs::write(folder.join("plans/a.plan.json"), "{}").unwrap();
    expect![[""]].assert_eq(&build(&folder, &[]).shown_from(&folder));
    expect![[""]].assert_eq(&build(&folder, &["a", "--force"]).shown_from(&folder));
    expect![[""]].assert_eq(&build(&folder, &["nothing"]).shown_from(&folder));
    let out = folder.join("out");
    std::fs::create_dir(&out).unwrap();
    expect![[""]].assert_eq(&build(&folder, &["plans/a.plan.ts", "--out", "out"]).shown_from(&folder));
    assert!(out.join("a.plan.json").is_file());
}

#[test]
fn all_errors_of_all_plans() {
    let (a, b) =
        (plan("a", "return v.sort({ key: Key.scroe }).tkae({ count: 1 });"), plan("b", "return v.take({});"));
    let folder = project("build-errors", &[("a.plan.ts", &a), ("b.plan.ts", &b)]);
    expect![[""]].assert_eq(&build(&folder, &[]).shown_from(&folder));
    let said = in_folder(&folder, &["plan", "check", "a", "plans/b.plan.ts"], "");
    expect![[""]].assert_eq(&said.shown_from(&folder));
    let said = in_folder(&folder, &["plan", "check", "b", "--json"], "");
    expect![[""]].assert_eq(&said.shown_from(&folder));
}

#[test]
fn sources_run_without_being_built() {
    let source = plan("a", "return v.follow({ endpoint: EP.redis.redis_default, fanout: 3 });");
    let folder = project("build-run", &[("a.plan.ts", &source)]);
    let request = r#"{"user_id": 7, "request_id": "r"}"#;
    let by_name = in_folder(&folder, &["plan", "run", "a", "--request", request], "");
    assert_eq!(by_name.code, 0, "{}", by_name.stderr);
    let by_file = in_folder(&folder, &["plan", "run", "plans/a.plan.ts", "--request", request], "");
    assert_eq!(by_file.ids(), by_name.ids());
    assert_eq!(by_name.ids().len(), 3);
    assert_eq!(build(&folder, &[]).code, 0);
    let file = in_folder(&folder, &["plan", "run", "plans/a.plan.json", "--request", request], "");
    assert_eq!(file.ids(), by_name.ids());
    // What is built is not what counts while its source is there.
    std::fs::write(folder.join("plans/a.plan.ts"), plan("a", "return v;")).unwrap();
    assert_eq!(in_folder(&folder, &["plan", "run", "a", "--request", request], "").ids().len(), 1);
    for verb in ["explain", "info", "list"] {
        let args = if verb == "list" { vec!["plan", verb] } else { vec!["plan", verb, "a"] };
        let said = in_folder(&folder, &args, "");
        assert_eq!(said.code, 0, "{verb}: {}", said.stderr);
    }
}

#[test]
fn what_changes_is_built_again() {
    let folder = project("build-watch", &[("a.plan.ts", &plan("a", "return v;"))]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(["plan", "build", "--watch"]).current_dir(&folder);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut until = |end: &str| loop {
        let line = lines.next().unwrap().unwrap();
        if line.contains(end) {
            return;
        }
    };
    let plans = folder.join("plans");
    until("watching 1 plan");
    std::fs::write(plans.join("a.plan.ts"), plan("a", "return v.tkae({ count: 1 });")).unwrap();
    until("did you mean `take`?");
    until("0 of 1 plan built");
    let shared =
        "import { LIMIT } from './limit';\n".to_owned() + &plan("a", "return v.take({ count: LIMIT });");
    std::fs::write(plans.join("limit.ts"), "export const LIMIT = 3;").unwrap();
    std::fs::write(plans.join("a.plan.ts"), shared).unwrap();
    until("1 of 1 plan built");
    std::fs::write(plans.join("limit.ts"), "export const LIMIT = 42;").unwrap();
    until("built plans/a.plan.json");
    until("1 of 1 plan built");
    let text = std::fs::read_to_string(plans.join("a.plan.json")).unwrap();
    assert!(text.contains("\"count\": 42"), "{text}");
    std::fs::write(plans.join("b.plan.ts"), plan("b", "return v;")).unwrap();
    until("built plans/b.plan.json");
    std::fs::remove_file(plans.join("b.plan.ts")).unwrap();
    let toml = std::fs::read_to_string(folder.join("anabranch.toml")).unwrap();
    std::fs::write(folder.join("anabranch.toml"), "# As before.\n".to_owned() + &toml).unwrap();
    until("the registry or the project changed");
    until("1 of 1 plan built");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// What becomes of a hostile plan: an error, in time.
fn hostile(test: &str, text: &str) -> String {
    let folder = project(&format!("hostile-{test}"), &[("a.plan.ts", text)]);
    refused(test, &folder)
}

fn refused(test: &str, folder: &Path) -> String {
    let said = build(folder, &[]);
    assert_eq!(said.code, 1, "{test}: {}", said.shown_from(folder));
    assert!(!folder.join("plans/a.plan.json").exists());
    said.shown_from(folder)
}

#[test]
fn hostile_code_ends() {
    let check = |test: &str, body: &str, expected: expect_test::Expect| {
        expected.assert_eq(&hostile(test, &plan("a", body)));
    };
    check("loop", "for (;;) {}", expect![[""]]);
    check("array", "const a: number[][] = []; for (;;) a.push(new Array(1e7).fill(7));", expect![[""]]);
    check("recursion", "const f = (): number => f() + 1; f(); return v;", expect![[""]]);
    check("prototype", "(Array.prototype as any).push = () => 0; return v;", expect![[""]]);
    check("constructor", "return ([] as any).constructor.constructor('return 1')();", expect![[""]]);
    check("regex", "/^(a+)+$/.test('a'.repeat(40) + 'b'); return v;", expect![[""]]);
    check("nodes", "let r = v; for (;;) r = r.take({ count: 1 });", expect![[""]]);
    check("expression", "let x = Key.id + 1; for (;;) x = x + x;", expect![[""]]);
    check("string", "let s = 'x'; for (;;) s += s;", expect![[""]]);
}

#[test]
fn hostile_files_end() {
    expect![[""]].assert_eq(&hostile("outside", "import '../../../../etc/passwd';"));
    expect![[""]].assert_eq(&hostile("absolute", "import '/etc/passwd';"));
    expect![[""]].assert_eq(&hostile("parens", &"(".repeat(1 << 20)));
    expect![[""]].assert_eq(&hostile("bangs", &format!("{}1", "!".repeat(1 << 19))));
    expect![[""]].assert_eq(&hostile("arrows", &format!("{}1", "a=>".repeat(1 << 18))));
    expect![[""]].assert_eq(&hostile("zeros", &"\0".repeat(1000)));
    let folder = project("hostile-huge", &[]);
    let huge = std::fs::File::create(folder.join("plans/a.plan.ts")).unwrap();
    huge.set_len(100 << 20).unwrap();
    expect![[""]].assert_eq(&refused("huge", &folder));
}
