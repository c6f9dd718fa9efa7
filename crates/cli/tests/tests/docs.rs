//! The worked examples of the pages in `docs`: files are written and commands run as the pages show them.
//!
//! A block that begins with ` ```LANGUAGE FILE ` is the content of a file. A block of `console` has commands behind `$ `, each
//! with what it says on stdout and stderr; `...` stands for any text. `UPDATE_EXPECT=1` writes what was said into the
//! page.

use std::path::Path;
use std::process::Command;

use crate::binary::{root, scratch};

/// Runs the blocks of a page in an empty folder.
fn check(page: &str) {
    let folder = scratch(&format!("docs_{page}"));
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    let file = root().join("docs").join(page);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut written = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        written.push_str(&format!("{line}\n"));
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match info.split_once(' ') {
            Some((_, name)) => std::fs::write(folder.join(name), block.join("\n") + "\n").unwrap(),
            None if info == "console" => {
                written.push_str(&console(&folder, &block));
                written.push_str("```\n");
                continue;
            }
            None => {}
        }
        block.iter().for_each(|line| written.push_str(&format!("{line}\n")));
        written.push_str("```\n");
    }
    if written != text && std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, &written).unwrap();
    }
    let other = written.lines().zip(text.lines()).find(|(written, text)| written != text);
    assert!(
        written == text,
        "{page}: UPDATE_EXPECT=1 writes what the commands say; the first difference: {other:?}"
    );
}

/// The block with what its commands say, where that is not what it shows.
fn console(folder: &Path, block: &[&str]) -> String {
    let mut written = String::new();
    let mut at = 0;
    while at < block.len() {
        let command = block[at].strip_prefix("$ ").expect("a block begins with a command");
        let shown: Vec<&str> =
            block[at + 1..].iter().take_while(|line| !line.starts_with("$ ")).copied().collect();
        at += 1 + shown.len();
        let said = said(folder, command);
        let said: Vec<&str> = said.lines().map(str::trim_end).collect();
        let kept = if fits(&shown, &said) { &shown } else { &said };
        written.push_str(&format!("$ {command}\n"));
        kept.iter().for_each(|line| written.push_str(&format!("{line}\n")));
    }
    written
}

/// The output of a command on stdout and stderr.
fn said(folder: &Path, command: &str) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_anabranch")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}; }} 2>&1")])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Whether the lines of a page stand for these.
fn fits(shown: &[&str], said: &[&str]) -> bool {
    match shown {
        [] => said.is_empty(),
        ["...", rest @ ..] => (0..=said.len()).any(|skipped| fits(rest, &said[skipped..])),
        [line, rest @ ..] => {
            said.split_first().is_some_and(|(first, said)| fits_line(line, first) && fits(rest, said))
        }
    }
}

fn fits_line(shown: &str, said: &str) -> bool {
    match shown.split_once("...") {
        None => shown == said,
        Some((start, end)) => {
            let rest = said.strip_prefix(start);
            rest.is_some_and(|rest| {
                (0..=rest.len()).any(|at| rest.is_char_boundary(at) && fits_line(end, &rest[at..]))
            })
        }
    }
}

#[test]
fn functions() {
    check("functions.md");
}

#[test]
fn plans() {
    check("plans.md");
}

#[test]
fn why() {
    check("why.md");
}

#[test]
fn captures() {
    check("captures.md");
}

#[test]
fn deadlines() {
    check("deadlines.md");
}

#[test]
fn recipes() {
    check("recipes.md");
}

#[test]
fn folders() {
    check("folders.md");
}
