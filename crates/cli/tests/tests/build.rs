//! Plans in TypeScript: built, checked, watched, run; and what hostile ones come to.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::Duration;

use expect_test::{expect, expect_file};

use crate::binary::{CommandOutput, examples, in_folder, scratch};

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

fn build(folder: &Path, args: &[&str]) -> CommandOutput {
    in_folder(folder, &[&["plan", "build"], args].concat(), "")
}

#[test]
fn the_examples_are_as_they_are_built() {
    expect![[r#"
        stderr: 10 plans up to date
        exit 0
    "#]]
    .assert_eq(&in_folder(&examples(), &["plan", "build", "--check"], "").shown());
    let types = in_folder(&examples(), &["plan", "types", "--check"], "");
    assert_eq!(types.code, 0, "{}", types.shown());
}

#[test]
fn plans_are_built_and_found_out_of_date() {
    let (a, b) = (plan("a", "return v;"), plan("b", "return v.take({ count: 1 });"));
    let folder = project("build", &[("a.plan.ts", &a), ("b.plan.ts", &b)]);
    expect![[r#"
        stderr: error: FOLDER/plans/a.plan.json is missing
        stderr: error: FOLDER/plans/b.plan.json is missing
        stderr: 2 plans not up to date
        exit 1
    "#]]
    .assert_eq(&build(&folder, &["--check"]).shown_from(&folder));
    expect![[r#"
        stderr: built FOLDER/plans/a.plan.json
        stderr: built FOLDER/plans/b.plan.json
        stderr: 2 plans built, 2 changed
        exit 0
    "#]]
    .assert_eq(&build(&folder, &[]).shown_from(&folder));
    expect![[r#"
        stderr: 2 plans up to date
        exit 0
    "#]]
    .assert_eq(&build(&folder, &["--check"]).shown_from(&folder));
    expect![[r#"
        stderr: 1 plan built, 0 changed
        exit 0
    "#]]
    .assert_eq(&build(&folder, &["a"]).shown_from(&folder));
    std::fs::write(folder.join("plans/b.plan.ts"), plan("b", "return v.take({ count: 2 });")).unwrap();
    expect![[r#"
        stderr: error: FOLDER/plans/b.plan.json is out of date
        stderr: 2 plans, 1 of them not up to date
        exit 1
    "#]]
    .assert_eq(&build(&folder, &["--check"]).shown_from(&folder));
    std::fs::write(folder.join("plans/a.plan.json"), "{}").unwrap();
    expect![[r#"
        stderr: error: FOLDER/plans/a.plan.json was not built by a compiler; --force overwrites it
        stderr: built FOLDER/plans/b.plan.json
        stderr: 2 plans, 1 of them not built
        exit 1
    "#]]
    .assert_eq(&build(&folder, &[]).shown_from(&folder));
    expect![[r#"
        stderr: built FOLDER/plans/a.plan.json
        stderr: 1 plan built, 1 changed
        exit 0
    "#]]
    .assert_eq(&build(&folder, &["a", "--force"]).shown_from(&folder));
    expect![[r#"
        stderr: error: there is no plan `nothing` in TypeScript (NAME.plan.ts)
        exit 1
    "#]]
    .assert_eq(&build(&folder, &["nothing"]).shown_from(&folder));
    let out = folder.join("out");
    std::fs::create_dir(&out).unwrap();
    expect![[r#"
        stderr: built out/a.plan.json
        stderr: 1 plan built, 1 changed
        exit 0
    "#]]
    .assert_eq(&build(&folder, &["plans/a.plan.ts", "--out", "out"]).shown_from(&folder));
    assert!(out.join("a.plan.json").is_file());
}

#[test]
fn all_errors_of_all_plans() {
    let (a, b) =
        (plan("a", "return v.sort({ key: Key.scroe }).tkae({ count: 1 });"), plan("b", "return v.take({});"));
    let folder = project("build-errors", &[("a.plan.ts", &a), ("b.plan.ts", &b)]);
    expect![[r#"
        stderr: error: FOLDER/plans/a.plan.ts:4:22: there is no key `scroe`
        stderr:   4 | return v.sort({ key: Key.scroe }).tkae({ count: 1 });
        stderr:     |                      ^^^^^^^^^
        stderr:   help: did you mean `score`?
        stderr: error: FOLDER/plans/a.plan.ts:4:35: there is no method `tkae` of rows
        stderr:   4 | return v.sort({ key: Key.scroe }).tkae({ count: 1 });
        stderr:     |                                   ^^^^
        stderr:   help: did you mean `take`?
        stderr: 2 errors
        stderr: error: FOLDER/plans/b.plan.ts:4:10: `take` needs `count`: a whole number
        stderr:   4 | return v.take({});
        stderr:     |          ^^^^
        stderr: 2 plans not built
        exit 1
    "#]]
    .assert_eq(&build(&folder, &[]).shown_from(&folder));
    let said = in_folder(&folder, &["plan", "check", "a", "plans/b.plan.ts"], "");
    expect![[r#"
        stderr: error: FOLDER/plans/a.plan.ts:4:22: there is no key `scroe`
        stderr:   4 | return v.sort({ key: Key.scroe }).tkae({ count: 1 });
        stderr:     |                      ^^^^^^^^^
        stderr:   help: did you mean `score`?
        stderr: error: FOLDER/plans/a.plan.ts:4:35: there is no method `tkae` of rows
        stderr:   4 | return v.sort({ key: Key.scroe }).tkae({ count: 1 });
        stderr:     |                                   ^^^^
        stderr:   help: did you mean `take`?
        stderr: a: refused, 2 errors
        stderr: error: plans/b.plan.ts:4:10: `take` needs `count`: a whole number
        stderr:   4 | return v.take({});
        stderr:     |          ^^^^
        stderr: plans/b.plan.ts: refused, 1 error
        exit 1
    "#]]
    .assert_eq(&said.shown_from(&folder));
    let said = in_folder(&folder, &["plan", "check", "b", "--json"], "");
    expect![[r#"
        [
          {
            "errors": [
              {
                "column": 10,
                "help": null,
                "line": 4,
                "place": "FOLDER/plans/b.plan.ts:4:10",
                "what": "`take` needs `count`: a whole number",
                "width": 4
              }
            ],
            "plan": "b",
            "warnings": []
          }
        ]
        exit 1
    "#]]
    .assert_eq(&said.shown_from(&folder));
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
    assert!(!file.stderr.contains("warning"), "{}", file.stderr);
    // By its name the source counts; a built file that is named runs as it is, with a warning.
    std::fs::write(folder.join("plans/a.plan.ts"), plan("a", "return v;")).unwrap();
    assert_eq!(in_folder(&folder, &["plan", "run", "a", "--request", request], "").ids().len(), 1);
    let file = in_folder(&folder, &["plan", "run", "plans/a.plan.json", "--request", request], "");
    assert_eq!(file.ids(), by_name.ids());
    let warning = "a.plan.ts; `anabranch plan build` compiles it again";
    assert!(file.stderr.contains("differs from") && file.stderr.contains(warning), "{}", file.stderr);
    for verb in ["explain", "info", "list"] {
        let args = if verb == "list" { vec!["plan", verb] } else { vec!["plan", verb, "a"] };
        let said = in_folder(&folder, &args, "");
        assert_eq!(said.code, 0, "{verb}: {}", said.stderr);
    }
}

#[test]
fn a_full_disk_leaves_what_was_built() {
    let folder = project("build-full", &[("a.plan.ts", &plan("a", "return v;"))]);
    let (source, target) = (folder.join("plans/a.plan.ts"), folder.join("plans/a.plan.json"));
    assert_eq!(build(&folder, &[]).code, 0);
    let before = std::fs::read_to_string(&target).unwrap();
    std::fs::write(source, plan("a", "return v.take({ count: 1 });")).unwrap();
    // No file may grow, and who tries is told instead of killed.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" plan build";
    let mut command = Command::new("bash");
    command.args(["-c", script, env!("CARGO_BIN_EXE_anabranch")]).current_dir(&folder);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("a.plan.json: File too large") && !output.status.success(), "{said}");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.join("plans")).unwrap().count(), 2, "nothing is left lying about");
    assert_eq!(build(&folder, &["--check"]).code, 1);
}

/// A `plan build --watch` that is ended with the test.
struct WatchProcess {
    child: Child,
    lines: Receiver<String>,
}

impl WatchProcess {
    fn new(folder: &Path, args: &[&str]) -> WatchProcess {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command.args(["plan", "build"]).args(args).current_dir(folder);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (said, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        // It ends with the child.
        let reading =
            Builder::new().spawn(move || stderr.lines().try_for_each(|line| said.send(line.unwrap())));
        drop(reading.unwrap());
        WatchProcess { child, lines }
    }

    /// Waits for a line with this in it.
    fn until(&self, end: &str) {
        let mut seen = Vec::new();
        while seen.last().is_none_or(|line: &String| !line.contains(end)) {
            let line = self.lines.recv_timeout(Duration::from_secs(600));
            seen.push(line.unwrap_or_else(|_| panic!("no `{end}` in {seen:#?}")));
        }
    }
}

impl Drop for WatchProcess {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn what_changes_is_built_again() {
    let folder = project("build-watch", &[("a.plan.ts", &plan("a", "return v;"))]);
    let watching = WatchProcess::new(&folder, &["--watch"]);
    let until = |end| watching.until(end);
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
    until("plans/a.plan.json");
    until("1 of 1 plan built");
    let text = std::fs::read_to_string(plans.join("a.plan.json")).unwrap();
    assert!(text.contains("\"count\": 42"), "{text}");
    std::fs::write(plans.join("b.plan.ts"), plan("b", "return v;")).unwrap();
    until("plans/b.plan.json");
    std::fs::remove_file(plans.join("b.plan.ts")).unwrap();
    let toml = std::fs::read_to_string(folder.join("anabranch.toml")).unwrap();
    std::fs::write(folder.join("anabranch.toml"), "# As before.\n".to_owned() + &toml).unwrap();
    until("the registry or the project changed");
    until("1 of 1 plan built");
}

#[test]
fn what_goes_away_and_comes_back_is_built_again() {
    let text =
        "import { LIMIT } from './limit';\n".to_owned() + &plan("a", "return v.take({ count: LIMIT });");
    let folder = project("build-return", &[("a.plan.ts", &text), ("limit.ts", "export const LIMIT = 3;")]);
    let watching = WatchProcess::new(&folder, &["a", "--watch"]);
    let until = |end| watching.until(end);
    let plans = folder.join("plans");
    until("watching 1 plan");
    std::fs::remove_file(plans.join("limit.ts")).unwrap();
    until("there is no file `./limit`");
    std::fs::write(plans.join("limit.ts"), "export const LIMIT = 42;").unwrap();
    until("1 of 1 plan built");
    std::fs::remove_file(plans.join("a.plan.ts")).unwrap();
    until("there is no plan `a`");
    std::fs::write(
        plans.join("a.plan.ts"),
        text.replace("LIMIT }", "LIMIT as MOST }").replace(": LIMIT", ": MOST"),
    )
    .unwrap();
    until("1 of 1 plan built");
    std::fs::rename(&plans, folder.join("elsewhere")).unwrap();
    until("cannot read the folder");
    std::fs::rename(folder.join("elsewhere"), &plans).unwrap();
    std::fs::write(plans.join("limit.ts"), "export const LIMIT = 7;").unwrap();
    until("1 of 1 plan built");
}

#[test]
fn odd_files_in_the_plan_folder() {
    let folder = project("build-odd", &[("a.plan.ts", &plan("a", "return v;"))]);
    let plans = folder.join("plans");
    // As an editor's lock, and as something that is gone.
    std::os::unix::fs::symlink("someone@somewhere.1", plans.join(".#a.plan.ts")).unwrap();
    std::fs::create_dir(folder.join("other")).unwrap();
    std::fs::copy(plans.join("a.plan.ts"), folder.join("other/a.plan.ts")).unwrap();
    expect![[r#"
        stderr: built FOLDER/plans/a.plan.json
        stderr: 1 plan built, 1 changed
        exit 0
    "#]]
    .assert_eq(&build(&folder, &[]).shown_from(&folder));
    std::os::unix::fs::symlink("nowhere", plans.join("b.plan.ts")).unwrap();
    expect![[r#"
        stderr: b: error: FOLDER/plans/b.plan.ts: cannot be read: No such file or directory (os error 2)
        stderr: b: refused, 1 error
        exit 1
    "#]]
    .assert_eq(&in_folder(&folder, &["plan", "check", "b"], "").shown_from(&folder));
    expect![[r#"
        stderr: error: ./a.plan.json would be written twice, from plans/a.plan.ts and from other/a.plan.ts
        exit 1
    "#]]
    .assert_eq(&build(&folder, &["plans/a.plan.ts", "other/a.plan.ts", "--out", "."]).shown_from(&folder));
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
    let bodies = [
        ("loop", "for (;;) {}"),
        ("array", "const a: number[][] = []; for (;;) a.push(new Array(1e7).fill(7));"),
        ("recursion", "const f = (): number => f() + 1; f(); return v;"),
        ("prototype", "(Array.prototype as any).push = () => 0; return v;"),
        ("constructor", "return ([] as any).constructor.constructor('return 1')();"),
        ("regex", "/^(a+)+$/.test('a'.repeat(40) + 'b'); return v;"),
        ("nodes", "let r = v; for (;;) r = r.take({ count: 1 });"),
        ("expression", "let x = Key.id + 1; for (let i = 0; i < 40; i++) x = x + x; return v;"),
        ("string", "let s = 'x'; for (;;) s += s;"),
    ];
    let said = bodies.map(|(test, body)| format!("{test}\n{}", hostile(test, &plan("a", body))));
    expect_file!["hostile_code.txt"].assert_eq(&said.join("\n"));
}

#[test]
fn hostile_imports_are_refused() {
    let text = "import '../outside';\nimport './link';\nimport '/etc/passwd';\nimport './folder';\nimport './long';\n";
    let folder = project("hostile-imports", &[("a.plan.ts", text)]);
    let (outside, plans) = (folder.join("outside.ts"), folder.join("plans"));
    std::fs::write(&outside, "export {}").unwrap();
    std::os::unix::fs::symlink(&outside, plans.join("link.ts")).unwrap();
    std::fs::create_dir(plans.join("folder.ts")).unwrap();
    std::fs::write(plans.join("long.ts"), " ".repeat((1 << 20) + 1)).unwrap();
    expect_file!["hostile_imports.txt"].assert_eq(&refused("imports", &folder));
}

#[test]
fn hostile_files_end() {
    let nested = [
        ("parens", "(".repeat(1 << 20)),
        ("bangs", format!("{}1", "!".repeat(1 << 19))),
        ("arrows", format!("{}1", "a=>".repeat(1 << 18))),
        ("blocks", "{".repeat(1 << 20)),
        ("types", format!("let a: {}", "A<".repeat(1 << 18))),
    ];
    for (test, text) in nested {
        // How deep is too deep depends on how this was built.
        let said = hostile(test, &text);
        assert!(said.contains("a.plan.ts: the plan's code ran out of"), "{said}");
    }
    let folder = project("hostile-huge", &[]);
    let huge = std::fs::File::create(folder.join("plans/a.plan.ts")).unwrap();
    huge.set_len(100 << 20).unwrap();
    expect![[r#"
        stderr: error: FOLDER/plans/a.plan.ts: is longer than 1 MiB
        stderr: 1 plan not built
        exit 1
    "#]]
    .assert_eq(&refused("huge", &folder));
}
