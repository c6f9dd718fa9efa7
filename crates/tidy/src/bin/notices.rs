//! Prints the licence notices that the shipped program carries; `./dev dist` puts them into the archive.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anabranch_tidy::notices;

const PROGRAM: &str = "anabranch-cli";

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let written = notices::linked(&root, PROGRAM).and_then(|notices| {
        let text = notices::document(&notices);
        std::io::stdout().lock().write_all(text.as_bytes()).map_err(|e| e.to_string())
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            // When even this cannot be written, the exit code is left.
            let _ = writeln!(std::io::stderr(), "notices: {what}");
            ExitCode::FAILURE
        }
    }
}
