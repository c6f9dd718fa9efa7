//! The clients in `examples/clients`, each in its own language, where that is installed.

use std::path::Path;
use std::process::Command;

use expect_test::expect;

use crate::binary::{patient_examples, root, scratch};
use crate::recipe_served::Server;

/// Whether a program is on the path; a test without it says that it was skipped.
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn is_installed(program: &str, version: &str) -> bool {
    let found = Command::new(program).arg(version).output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: `{program}` is not installed");
    }
    found
}

/// Runs a client against a server with the example plans: it prints the rows of a plan and the events of a dataset.
fn check(test: &str, program: &str, arguments: &[&str]) {
    let folder = scratch(test);
    // What an earlier run left would be continued.
    let _ = std::fs::remove_dir_all(folder.join("store"));
    let project = patient_examples().join("anabranch.toml");
    let options = ["--project", project.to_str().unwrap(), "--data", "store", "--token-file", "token"];
    let server = Server::begin_with(&folder, &options);
    let token = folder.join("token");
    let mut command = Command::new(program);
    let output = command.args(arguments).arg(&server.url).arg(&token).current_dir(&folder).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // How often progress is told depends on the time.
    let lines: Vec<&str> = said.lines().filter(|line| !line.contains("progress")).collect();
    expect![[r#"
        posts: 1301 4304 1302 5502 5904 4202 4303 4203 2504 5902
        event: start
        event: built
        event: end"#]]
    .assert_eq(&lines.join("\n"));
}

fn client(name: &str) -> String {
    root().join("examples/clients").join(name).to_str().unwrap().to_owned()
}

#[test]
fn python() {
    if is_installed("python3", "--version") {
        check("client_python", "python3", &[&client("client.py")]);
    }
}

/// The part of Node's types that the client uses.
const NODE_TYPES: &str = "declare module \"node:fs\" { export function readFileSync(path: string, encoding: \"utf8\"): string; }\n\
                          declare const process: { argv: string[] };\n";

#[test]
fn typescript() {
    let folder = scratch("client_typescript");
    std::fs::write(folder.join("package.json"), r#"{"type": "module"}"#).unwrap();
    std::fs::write(folder.join("node.d.ts"), NODE_TYPES).unwrap();
    let options = "--strict --noUncheckedIndexedAccess --target es2022 --module es2022 --moduleResolution bundler \
                   --lib es2022,dom,dom.asynciterable --outDir . node.d.ts";
    let options: Vec<&str> = options.split_whitespace().collect();
    let source = client("client.ts");
    let told =
        anabranch_testkit::tsc(env!("CARGO_TARGET_TMPDIR"), &folder, &[&options[..], &[&source]].concat());
    assert!(told.is_empty(), "{told:?}");
    let compiled = folder.join("client.js");
    std::fs::rename(&compiled, folder.join("client.mjs")).unwrap();
    check("client_typescript", "node", &["client.mjs"]);
}

#[test]
fn go() {
    if is_installed("go", "version") {
        check("client_go", "go", &["run", &client("client.go")]);
    }
}

/// A client that is refused says why, in the server's words.
#[test]
fn go_says_why_it_is_refused() {
    if !is_installed("go", "version") {
        return;
    }
    let folder = scratch("client_go_refused");
    let server = Server::begin_with(&folder, &["--data", "store"]);
    std::fs::write(folder.join("wrong"), "anb_wrong").unwrap();
    let client = client("client.go");
    let mut command = Command::new("go");
    let output =
        command.args(["run", &*client, &*server.url, "wrong"]).current_dir(&folder).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && told.contains("401") && told.contains("token"), "{told}");
}

/// They are short enough to read before lunch.
#[test]
fn clients_are_short() {
    for name in ["client.py", "client.ts", "client.go"] {
        let text = std::fs::read_to_string(Path::new(&client(name))).unwrap();
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= 25, "{name} has {lines} lines");
    }
}
