//! `anabranch completions`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::Failure;
use crate::out;

/// The end of the help text.
pub(crate) const HELP: &str = "\
stdout: a script for the shell. Where shells look for it:

  anabranch completions bash > ~/.local/share/bash-completion/completions/anabranch
  anabranch completions zsh > ~/.zfunc/_anabranch     # with ~/.zfunc in $fpath
  anabranch completions fish > ~/.config/fish/completions/anabranch.fish

Exit codes: 0 fine; 1 failed (stderr says why); 2 wrong usage.";

/// Writes a shell's completions.
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "anabranch", &mut script);
        out::data(&String::from_utf8_lossy(&script))
    }
}
