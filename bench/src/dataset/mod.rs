//! Datasets: the scheduler by itself, and builds over HTTP beside a plain client and DataDesigner.

mod cells;
mod http;

use std::io;
use std::process::ExitCode;

use crate::report::Report;

pub(crate) const USAGE: &str = "dataset [--only cells|http] [--quick | --full]";

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// Few rows and one turn, to try the bench: nothing is kept.
    Quick,
    Usual,
    /// DataDesigner builds as many rows as the others, which takes it minutes per case.
    Full,
}

const PARTS: [(&str, Part); 2] = [("cells", cells::report), ("http", http::report)];

type Part = fn(&mut Report, Scale) -> io::Result<()>;

/// Measures all parts and keeps the report, or one part and keeps nothing.
pub(crate) fn bench(settings: &[String]) -> io::Result<()> {
    let (mut only, mut scale) = (None, Scale::Usual);
    let mut settings = settings.iter().map(String::as_str);
    let wrong = || io::Error::other(format!("usage: anabranch-bench {USAGE}"));
    while let Some(setting) = settings.next() {
        match setting {
            "--quick" => scale = Scale::Quick,
            "--full" => scale = Scale::Full,
            "--only" => {
                let name = settings.next().ok_or_else(wrong)?;
                only = Some(PARTS.iter().find(|(part, _)| *part == name).ok_or_else(wrong)?);
            }
            _ => return Err(wrong()),
        }
    }
    let mut report = Report::new("dataset");
    for (_, part) in PARTS.iter().filter(|part| only.is_none_or(|only| only.0 == part.0)) {
        part(&mut report, scale)?;
    }
    match scale == Scale::Quick || only.is_some() {
        true => Ok(()),
        false => report.keep(),
    }
}

/// A process of its own that the bench started: the server, or one turn of a contender.
pub(crate) fn child(settings: &[&str]) -> ExitCode {
    match http::child(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("anabranch-bench dataset child {}: {error}", settings.join(" "));
            ExitCode::FAILURE
        }
    }
}
