//! The files that are shipped with the binary: completions, manual pages, and the archive of all of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use expect_test::expect;

use crate::binary::{anabranch, root, scratch};

/// An empty folder.
fn fresh(test: &str) -> PathBuf {
    std::fs::remove_dir_all(scratch(test)).unwrap();
    scratch(test)
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    std::fs::read_dir(folder).unwrap().map(name).collect()
}

/// The pages that commands should have: this one's, and those of all that its help lists.
fn pages(words: &[&str], found: &mut BTreeSet<String>) {
    found.insert(format!("{}.1", [&["anabranch"], words].concat().join("-")));
    let help = anabranch(&[words, &["--help"]].concat(), "").stdout;
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return };
    let lines = list.lines().take_while(|line| !line.is_empty());
    // Longer descriptions go on in lines that begin further right.
    let names =
        lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    for name in names.filter(|&name| name != "help") {
        pages(&[words, &[name]].concat(), found);
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = fresh("man");
    let said = anabranch(&["man", "--out", folder.to_str().unwrap()], "");
    assert_eq!(said.shown(), "exit 0\n");
    let mut expected = BTreeSet::new();
    pages(&[], &mut expected);
    assert!(expected.contains("anabranch-recipe-ref-set.1"), "{expected:?}");
    assert_eq!(names_in(&folder), expected);
}

#[test]
fn a_manual_page_says_what_the_help_says() {
    expect![[r#"
        .ie \n(.g .ds Aq \(aq
        .el .ds Aq '
        .TH anabranch-version 1  "anabranch 0.1.0" "Anabranch Manual"
        .ie \n(.g .ds Aq \(aq
        .el .ds Aq '
        .SH NAME
        anabranch\-version \- Prints the version
        .ie \n(.g .ds Aq \(aq
        .el .ds Aq '
        .SH SYNOPSIS
        \fBanabranch version\fR [\fB\-\-log\fR] [\fB\-h\fR|\fB\-\-help\fR]
        .ie \n(.g .ds Aq \(aq
        .el .ds Aq '
        .SH DESCRIPTION
        Prints the version
        .ie \n(.g .ds Aq \(aq
        .el .ds Aq '
        .SH OPTIONS
        .TP
        \fB\-\-log\fR \fI<FORMAT>\fR [default: text]
        Log lines on stderr: text or json, a level (off, error, warn, info, debug), or both: json,debug. The level is warn if not given, and info for `serve`
        .TP
        \fB\-h\fR, \fB\-\-help\fR
        Print help
        .SH NOTES
        .nf
        Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage.
        .fi
        exit 0
    "#]]
    .assert_eq(&anabranch(&["man", "version"], "").shown());
    expect![[r#"
        stderr: error: `anabranch plan` has no subcommand `rum`; `anabranch plan --help` lists them
        exit 2
    "#]]
    .assert_eq(&anabranch(&["man", "plan", "rum"], "").shown());
}

#[test]
fn shells_complete_commands_and_options() {
    for (shell, part) in [
        ("bash", "complete -F _anabranch"),
        ("elvish", "set edit:completion:arg-completer[anabranch]"),
        ("fish", "complete -c anabranch"),
        ("powershell", "Register-ArgumentCompleter"),
        ("zsh", "#compdef anabranch"),
    ] {
        let said = anabranch(&["completions", shell], "");
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{shell}");
        for part in [part, "explain", "inline-threshold"] {
            assert!(said.stdout.contains(part), "`{part}` is in the completions for {shell}");
        }
    }
}

#[test]
fn help_and_version_are_commands_too() {
    assert_eq!(
        anabranch(&["help", "plan", "run"], "").stdout,
        anabranch(&["plan", "run", "--help"], "").stdout
    );
    assert_eq!(anabranch(&["version"], "").stdout, anabranch(&["--version"], "").stdout);
}

#[test]
fn the_archive_has_all_parts() {
    let folder = fresh("pack");
    let program = root().join("crates/cli/tests/tests/program.sh");
    let notices = folder.join("notices.txt");
    std::fs::write(&notices, "all notices\n").unwrap();
    let out = folder.join("out");
    let pack = || {
        let mut pack = Command::new(root().join(".ci/pack"));
        pack.args([&program, &notices, &out]).env("ANABRANCH_BINARY", env!("CARGO_BIN_EXE_anabranch"));
        let output = pack.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
    };
    let archive = pack();
    let first = std::fs::read(&archive).unwrap();
    assert!(pack() == archive && std::fs::read(&archive).unwrap() == first, "the same again");

    let name = archive.file_name().unwrap().to_str().unwrap();
    let mut sum = Command::new("sha256sum");
    sum.args(["--check", "--status", &format!("{name}.sha256")]).current_dir(&out);
    assert!(sum.status().unwrap().success());
    let listed = Command::new("tar").arg("--list").arg("--file").arg(&archive).output().unwrap().stdout;
    let listed = String::from_utf8(listed).unwrap();
    let inside = |line: &str| line.split_once('/').unwrap().1.to_owned();
    let listed: Vec<String> =
        listed.lines().map(inside).filter(|line| !line.contains("man1/anabranch-")).collect();
    expect![[r#"
        CHANGELOG.md
        LICENSE-APACHE
        LICENSE-MIT
        LICENSES-THIRD-PARTY.txt
        README.md
        anabranch
        completions/
        completions/_anabranch
        completions/anabranch.bash
        completions/anabranch.elv
        completions/anabranch.fish
        completions/anabranch.ps1
        man/
        man/man1/
        man/man1/anabranch.1
    "#]]
    .assert_eq(&format!("{}\n", listed.join("\n").trim()));
}
