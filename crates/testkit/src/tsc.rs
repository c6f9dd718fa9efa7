//! The real TypeScript type checker.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where it is, unless it is where `./dev test` puts it.
const VARIABLE: &str = "ANABRANCH_TSC";

/// What `tsc` says in a folder: a line for each complaint, without the lines that go into detail. `scratch` is a folder
/// in the target folder, the `CARGO_TARGET_TMPDIR` of tests.
pub fn tsc(scratch: &str, folder: &Path, args: &[&str]) -> Vec<String> {
    let installed = || Path::new(scratch).join("../tsc/node_modules/typescript/bin/tsc");
    let tsc = std::env::var_os(VARIABLE).map_or_else(installed, PathBuf::from);
    assert!(
        tsc.is_file(),
        "there is no {} (or what {VARIABLE} says); `./dev test` installs it",
        tsc.display()
    );
    let output =
        Command::new("node").arg(tsc).args(["--pretty", "false"]).args(args).current_dir(folder).output();
    let output = output.expect("node should run tsc; `./dev test` installs it");
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.success(), said.is_empty(), "{said}");
    said.lines().filter(|line| !line.starts_with(' ')).map(str::to_owned).collect()
}
