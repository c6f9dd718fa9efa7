//! Reads runs from the folder of a store, or from a server.

use std::io;

use anabranch_server::runs::{RunDetail, RunFilter, RunId, RunPage, RunSummary, RunsFolder, StoredRun};
use anabranch_server::{ApiRequest, Client, ClientError, Code, ServerAddress};
use serde_json::from_value;

use crate::failure::Failure;
use crate::recipe::{Remote, ask};

/// The most runs in one response of a server.
const PAGE: usize = 1_000;

impl Remote {
    /// The runs that match `filter`, newest first, and the place that they come from.
    pub(super) fn runs(&self, filter: &RunFilter) -> Result<(RunPage, String), Failure> {
        if let Some(server) = self.named()? {
            let page = ask(&server, "stopped", async |client| listed(client, filter).await)?;
            return Ok((page, server.url));
        }
        let folder = self.folder()?.join("runs");
        let page = match RunsFolder::new(&folder).list(filter) {
            // A store has no runs until a server has served it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => RunPage { runs: Vec::new(), next: None },
            page => page.map_err(|error| {
                Failure::of(format!("the runs in {} cannot be read: {error}", folder.display()))
            })?,
        };
        Ok((page, folder.display().to_string()))
    }

    /// One run with its details.
    pub(super) fn run(&self, id: RunId) -> Result<StoredRun, Failure> {
        if let Some(server) = self.named()? {
            return ask(&server, "stopped", async |client| shown(client, &server, id).await);
        }
        let folder = self.folder()?.join("runs");
        RunsFolder::new(&folder).get(id).map_err(|error| {
            Failure::of(match error.kind() {
                io::ErrorKind::NotFound => {
                    format!("no run {id} is kept in {}; `anabranch runs` lists them", folder.display())
                }
                _ => format!("the run {id} cannot be read: {error}"),
            })
        })
    }
}

/// Reads as many pages as needed.
async fn listed(client: &Client, filter: &RunFilter) -> Result<RunPage, Failure> {
    let mut page = RunPage { runs: Vec::new(), next: filter.before };
    loop {
        let missing = (filter.limit - page.runs.len()).min(PAGE);
        let mut path = format!("/v1/runs?limit={missing}");
        let words = [
            ("kind", filter.kind.map(|kind| kind.to_string())),
            ("state", filter.state.map(|state| state.to_string())),
            ("name", filter.name.as_deref().map(escaped)),
            ("before", page.next.map(|before| before.to_string())),
        ];
        for (name, value) in words {
            value.into_iter().for_each(|value| path.push_str(&format!("&{name}={value}")));
        }
        let mut answer = client.api(&ApiRequest::get(path)).await?;
        let runs: Vec<RunSummary> =
            from_value(answer["runs"].take()).map_err(|error| not_understood(&error))?;
        page.runs.extend(runs);
        page.next = from_value(answer["next"].take()).map_err(|error| not_understood(&error))?;
        if page.next.is_none() || page.runs.len() >= filter.limit {
            return Ok(page);
        }
    }
}

async fn shown(client: &Client, server: &ServerAddress, id: RunId) -> Result<StoredRun, Failure> {
    let answer = match client.api(&ApiRequest::get(format!("/v1/runs/{id}"))).await {
        Err(ClientError::Call { code: Code::NotFound, .. }) => {
            let url = &server.url;
            return Err(Failure::of(format!(
                "no run {id} is kept by {url}; `anabranch runs --server {url}` lists them"
            )));
        }
        answer => answer?,
    };
    let run: RunSummary = from_value(answer.clone()).map_err(|error| not_understood(&error))?;
    let detail: Option<RunDetail> =
        run.has_detail.then(|| from_value(answer)).transpose().map_err(|error| not_understood(&error))?;
    Ok(StoredRun { run, detail })
}

fn not_understood(error: &serde_json::Error) -> Failure {
    Failure::of(format!("the server's answer is not understood: {error}"))
}

/// Escapes a text for a query.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a b&c/é"), "a%20b%26c%2F%C3%A9");
    }
}
