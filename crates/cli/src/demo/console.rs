//! The last part of the demo: a server with a console that has runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_server::{ApiRequest, Client, ServerAddress, Token};
use clap::Parser;
use serde_json::json;

use super::datasets::{CONFIG, ROWS};
use super::{DATA, DELAYS, Files, PLAN, REGISTRY, STALLED};
use crate::failure::Failure;
use crate::out;
use crate::serve::{Serve, stopped};

/// A second endpoint. Reads of some of its keys never return.
const STALLED_ENDPOINT: &str = r#"
[[endpoint]]
endpoint_id = "ep_0002"
name = "stalled_store"
kind = "redis"

  [endpoint.resolver]
  type = "static"
  host = "127.0.0.1"
  port = 6379

  [endpoint.policy]
  max_inflight = 64
  connect_timeout_ms = 200
  request_timeout_ms = 100
"#;

/// The timeout of the server's work. A busy machine takes longer than usual.
const WAIT: Duration = Duration::from_secs(120);
/// A deadline that no machine misses.
const UNHURRIED: &str = "&timeout=60s";
/// The interval of polling the dataset.
const LOOK: Duration = Duration::from_millis(50);

/// The behaviour after the runs are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DemoEnd {
    /// The server runs until Ctrl-C.
    Serve,
    Exit,
}

/// `serve` as the command line has it.
#[derive(Parser)]
struct ServeCommand {
    #[command(flatten)]
    serve: Serve,
}

/// Serves the example's project from the demo's folder, fills the console with runs, and prints where to look: at the
/// console while the server runs, later at its files if they stay.
pub(super) async fn serve(files: &Files, user: i64, afterwards: DemoEnd) -> Result<(), Failure> {
    let folder = &files.folder();
    write_project(folder)?;
    let token_file = folder.join("store/token");
    let path = |path: PathBuf| path.into_os_string();
    let arguments = [
        "serve".into(),
        "--project".into(),
        path(folder.join("anabranch.toml")),
        "--data".into(),
        path(folder.join("store")),
        "--token-file".into(),
        path(token_file.clone()),
        "--listen".into(),
        "127.0.0.1:0".into(),
    ];
    let config = ServeCommand::try_parse_from(arguments).map_err(Failure::Usage)?.serve.settings()?;
    let (stop, stop_asked) = tokio::sync::oneshot::channel::<()>();
    let until = || {
        let signal = stopped()?;
        Ok(async move {
            tokio::select! {
                () = signal => {}
                _ = stop_asked => {}
            }
        })
    };
    let mut failed = None;
    let meanwhile = async |address: SocketAddr| {
        let filled = fill(address, &token_file, user).await;
        let filled = filled.and_then(|token| {
            out::data(&match afterwards {
                DemoEnd::Serve => console(address, &token, &token_file, user),
                DemoEnd::Exit => runs(files),
            })
        });
        let is_fine = filled.is_ok();
        failed = filled.err();
        match afterwards {
            DemoEnd::Serve if is_fine => std::future::pending().await,
            // The receiver is gone if the server has ended.
            _ => drop(stop.send(())),
        }
    };
    crate::serve::serve(config, until, meanwhile).await?;
    match failed {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// Writes the served project: the example's plan twice, once on an endpoint that stalls.
fn write_project(folder: &Path) -> Result<(), Failure> {
    let fault = |(prefix, delay): &(&str, u64), stall: bool| {
        let stall = if stall && STALLED.contains(prefix) { ", stall_after = 1" } else { "" };
        format!("{{ prefix = \"{prefix}\", delay_ms = {delay}{stall} }}")
    };
    let endpoint = |name: &str, stall: bool| {
        let faults: Vec<String> = DELAYS.iter().map(|delay| fault(delay, stall)).collect();
        let faults = faults.join(", ");
        format!("[plan.endpoints.{name}]\nsource = \"memory\"\ndata = [\"data.json\"]\nfaults = [{faults}]\n")
    };
    let project = format!(
        "[plan]\nregistry = \"registry\"\nplans = \"plans\"\nenv = \"dev\"\n\n{}\n{}",
        endpoint("redis_default", false),
        endpoint("stalled_store", true)
    );
    let stalled = PLAN.replace("\"ep_0001\"", "\"ep_0002\"");
    let stalled = stalled.replacen("\"plan_name\": \"feed\"", "\"plan_name\": \"feed_stalled\"", 1);
    let mut files = vec![
        ("anabranch.toml".to_owned(), project),
        ("data.json".to_owned(), DATA.to_owned()),
        ("plans/feed.plan.json".to_owned(), PLAN.to_owned()),
        ("plans/feed_stalled.plan.json".to_owned(), stalled),
    ];
    files.extend(REGISTRY.iter().map(|(name, text)| {
        let more = if name.starts_with("endpoints") { STALLED_ENDPOINT } else { "" };
        (format!("registry/{name}"), format!("{text}{more}"))
    }));
    for (name, text) in files {
        let file = folder.join(name);
        let parent = file.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .map_err(|error| Failure::of(format!("cannot make {}: {error}", parent.display())))?;
        out::file(&file, &text)?;
    }
    Ok(())
}

/// Runs the parts of the demo on the server. Returns the server's token.
async fn fill(address: SocketAddr, token_file: &Path, user: i64) -> Result<String, Failure> {
    let token = std::fs::read_to_string(token_file)
        .map_err(|error| Failure::of(format!("cannot read {}: {error}", token_file.display())))?;
    let server = ServerAddress {
        token: Token::parse(token.trim()),
        ..ServerAddress::new(&format!("http://{address}"))
    };
    let client = Client::connect_to(&server).await?;
    rank(&client, user).await?;
    let word = client.put("anabranch ").await?.address.to_string();
    let added = client
        .api(&ApiRequest::post(
            "/v1/recipes",
            json!([
                { "function": "repeat/1.0.0", "inputs": [word], "params": { "count": 2_000_000 } },
                { "function": "brotli_compress/1.0.0", "inputs": [0], "params": { "quality": 11 } },
                { "function": "sha256/1.0.0", "inputs": [1] },
                { "function": "hex_encode/1.0.0", "inputs": [2] },
            ]),
        ))
        .await?;
    let page = added.as_array().and_then(|all| all.last()?["address"].as_str()).unwrap_or_default();
    client.api(&ApiRequest::put("/v1/refs/page", json!({ "address": page }))).await?;
    for _ in 0..2 {
        client.get("page", 0..u64::MAX, None).await?;
    }
    let job = json!({ "name": "support_tickets", "config": CONFIG, "rows": ROWS, "seed": 1, "demo": true });
    let accepted = client.api(&ApiRequest::post("/v1/datasets", job)).await?;
    until_built(&client, accepted["id"].as_str().unwrap_or_default()).await?;
    Ok(token.trim().to_owned())
}

/// Runs the feed, and twice the one whose store hangs from its second read on.
async fn rank(client: &Client, user: i64) -> Result<(), Failure> {
    let run = async |plan: &str, terms: &str| {
        let path = format!("/v1/plans/{plan}/run?trace=true{terms}");
        client.api(&ApiRequest::post(path, json!({ "user_id": user }))).await
    };
    for plan in ["feed", "feed_stalled"] {
        run(plan, UNHURRIED).await?;
    }
    // By the deadline of the plan, which a busy machine may miss.
    if run("feed_stalled", "").await.is_err() {
        run("feed_stalled", UNHURRIED).await?;
    }
    Ok(())
}

/// How to look at a server that runs.
fn console(address: SocketAddr, token: &str, token_file: &Path, user: i64) -> String {
    format!(
        "\nThe same once more on a server, for its console to show: {}.\n\n  \
         open    http://{address}/#token={token}\n  \
         call    curl -H \"Authorization: Bearer $(cat {})\" -H 'Content-Type: application/json' \\\n            \
         -d '{{\"user_id\": {user}}}' http://{address}/v1/plans/feed/run\n  \
         stop    Ctrl-C\n",
        contents(),
        token_file.display(),
    )
}

/// How to look at the runs of a server that has ended.
fn runs(files: &Files) -> String {
    let contents = contents();
    match files.are_kept() {
        true => format!(
            "\nThe same once more on a server: {contents}. Its runs: anabranch runs --data {}\n",
            files.folder().join("store").display()
        ),
        false => format!("\nThe same once more on a server: {contents}.\n"),
    }
}

fn contents() -> String {
    format!("two plans, a graph of recipes, a dataset of {ROWS} rows")
}

async fn until_built(client: &Client, id: &str) -> Result<(), Failure> {
    let end = SystemClock.now() + WAIT;
    loop {
        let job = client.api(&ApiRequest::get(format!("/v1/datasets/{id}"))).await?;
        match job["state"].as_str() {
            Some("complete" | "degraded") => return Ok(()),
            Some("running" | "queued") if SystemClock.now() < end => {
                SystemClock.sleep_until(SystemClock.now() + LOOK).await;
            }
            _ => return Err(Failure::of(format!("the demo's dataset was not built: {job}"))),
        }
    }
}
