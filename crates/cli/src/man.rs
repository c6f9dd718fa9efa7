//! `anabranch man`: the help pages as manual pages.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory as _};

use crate::args::Cli;
use crate::failure::Failure;
use crate::out;

/// The end of the help text.
pub(crate) const HELP: &str = "\
stdout: one page; with --out nothing.

  anabranch man | man -l -
  anabranch man plan run | man -l -
  anabranch man --out ~/.local/share/man/man1

Exit codes: 0 fine; 1 failed (stderr says why); 2 wrong usage.";

/// Writes manual pages.
#[derive(Args)]
pub(crate) struct Man {
    /// The command whose page to print, for instance `plan run`; the program's own page if not given.
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    command: Vec<String>,
    /// Writes the pages of all commands into this folder, which is made if it is missing.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut program = Cli::command().disable_help_subcommand(true);
        program.build();
        match self.out {
            Some(folder) => write_all(&program, &folder),
            None => out::data(&page(find(&program, &self.command)?)),
        }
    }
}

fn find<'a>(program: &'a Command, words: &[String]) -> Result<&'a Command, Failure> {
    words.iter().try_fold(program, |command, word| {
        command.find_subcommand(word).ok_or_else(|| {
            let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
            Failure::Wrong(format!("`{name}` has no subcommand `{word}`; `{name} --help` lists them"))
        })
    })
}

fn write_all(program: &Command, folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::of(format!("cannot make the folder {}: {error}", folder.display())))?;
    let mut open = vec![program];
    while let Some(command) = open.pop() {
        out::file(&folder.join(format!("{}.1", name(command))), &page(command))?;
        open.extend(command.get_subcommands());
    }
    Ok(())
}

/// The name of a page, such as `anabranch-plan-run`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The page of a command.
fn page(command: &Command) -> String {
    let man = clap_mangen::Man::new(command.clone())
        .source(concat!("anabranch ", env!("CARGO_PKG_VERSION")))
        .manual("Anabranch Manual");
    let mut page = Vec::new();
    let write = |page: &mut Vec<u8>| {
        man.render_title(page)?;
        man.render_name_section(page)?;
        man.render_synopsis_section(page)?;
        man.render_description_section(page)?;
        man.render_options_section(page)?;
        match command.has_subcommands() {
            true => man.render_subcommands_section(page),
            false => Ok(()),
        }
    };
    write(&mut page).expect("writing to memory does not fail");
    let mut page = String::from_utf8_lossy(&page).into_owned();
    if let Some(notes) = command.get_after_help() {
        page.push_str(".SH NOTES\n.nf\n");
        notes.to_string().lines().for_each(|line| verbatim(&mut page, line));
        page.push_str(".fi\n");
    }
    page
}

/// Adds a line that is not wrapped, for examples.
fn verbatim(page: &mut String, line: &str) {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    let guard = if escaped.starts_with(['.', '\'']) { "\\&" } else { "" };
    let _ = writeln!(page, "{guard}{escaped}");
}
