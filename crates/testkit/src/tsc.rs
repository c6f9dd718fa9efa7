//! The real TypeScript type checker.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable with the path of `tsc`, if it is not where `./dev test` installs it.
const VARIABLE: &str = "ANABRANCH_TSC";

/// Runs `tsc` in `folder` and returns one line per error, without the indented lines that give details.
///
/// `scratch` is the `CARGO_TARGET_TMPDIR` of the calling test; `tsc` is installed beside that folder.
pub fn tsc(scratch: &str, folder: &Path, args: &[&str]) -> Vec<String> {
    let installed = || Path::new(scratch).join("../tsc/node_modules/typescript/bin/tsc");
    let tsc = std::env::var_os(VARIABLE).map_or_else(installed, PathBuf::from);
    assert!(
        tsc.is_file(),
        "no file {}; run `./dev test`, which installs tsc, or set {VARIABLE} to its path",
        tsc.display()
    );
    let output =
        Command::new("node").arg(tsc).args(["--pretty", "false"]).args(args).current_dir(folder).output();
    let output = output.expect("node runs tsc; `./dev test` installs it");
    let printed = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.success(), printed.is_empty(), "{printed}");
    printed.lines().filter(|line| !line.starts_with(' ')).map(str::to_owned).collect()
}
