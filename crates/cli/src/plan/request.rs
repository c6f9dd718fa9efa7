//! The request to answer: from an option, or from stdin.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;

use anabranch_plan::{Registries, Request, RequestError};

use crate::failure::Failure;
use crate::out;

/// The size limit of a request on stdin in bytes; real requests are far smaller.
const MOST_BYTES: u64 = 16 << 20;

/// The text of the request.
pub(super) fn text(option: Option<&str>) -> Result<Vec<u8>, Failure> {
    if let Some(text) = option {
        return Ok(text.as_bytes().to_vec());
    }
    let stdin = io::stdin();
    if stdin.is_terminal() {
        let what = "a request is read from stdin, which is a terminal; \
                    give --request '{\"user_id\": 1}', or redirect a file: < request.json";
        return Err(Failure::Wrong(what.to_owned()));
    }
    let mut text = Vec::new();
    let read = stdin.lock().take(MOST_BYTES + 1).read_to_end(&mut text);
    read.map_err(|error| Failure::of(format!("cannot read the request from stdin: {error}")))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Failure::of(format!("the request on stdin has more than {MOST_BYTES} bytes")));
    }
    Ok(text)
}

/// The text of a file with a request.
pub(super) fn file(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| Failure::of(format!("cannot read {}: {error}", file.display())))
}

/// Parses the request. If it is malformed, the error is written to stdout as the response.
pub(super) fn parse(text: &[u8], registries: &Registries) -> Result<Request, Failure> {
    match Request::parse(text, registries) {
        Ok(request) => {
            request.warnings.iter().for_each(|warning| out::note(&format!("warning: request: {warning}")));
            Ok(request)
        }
        Err(error) => {
            out::data(&format!("{}\n", error.to_json()))?;
            Err(Failure::Reported)
        }
    }
}

/// Requests from a file, one per line; empty lines are skipped.
pub(super) fn lines(file: &str, text: &str, registries: &Registries) -> Result<Vec<Request>, Failure> {
    let mut requests = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let refused = |error: RequestError| Failure::of(format!("{file}:{number}: {error}"));
        requests.push(Request::parse(line, registries).map_err(refused)?);
    }
    if requests.is_empty() {
        return Err(Failure::of(format!("{file} has no request in it")));
    }
    Ok(requests)
}
