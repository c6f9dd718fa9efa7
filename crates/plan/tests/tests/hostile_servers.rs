//! Hostile servers: memory stays bounded and every answer comes by its deadline.
//!
//! Each case runs in a process of its own, the same test binary with a variable set, so that its peak of resident
//! memory is its own. Server and client share that process.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anabranch_plan::source::{Http, HttpConfig, Redis, RedisConfig, Source};
use anabranch_plan::{Config, Engine, Request, RunOptions};
use anabranch_testkit::{Connection, FakeServer};
use serde_json::json;

use crate::naive::world::registries;
use crate::sources::{HANGS, clock};

/// Names the case that a child runs.
const CASE: &str = "ANABRANCH_HOSTILE_CASE";

/// The most resident memory of a process, with the default bounds: 64 MiB per Redis reply, 16 MiB per HTTP reply,
/// 256 MiB per request. A text of 64 MiB is in the read buffer, which doubles, and in its column.
const PEAK: u64 = 400 << 20;

/// The deadline of the request. Refusals come before it, and what drips ends at it.
const DEADLINE: Duration = Duration::from_millis(1_500);

/// A reply: its beginning, and bytes that are sent for as long as the client takes them.
struct Reply {
    name: &'static str,
    head: &'static str,
    more: &'static str,
    /// Words of the error that the request ends with.
    told: &'static str,
}

const fn reply(name: &'static str, head: &'static str, more: &'static str, told: &'static str) -> Reply {
    Reply { name, head, more, told }
}

/// A reply whose bytes come one by one.
const DRIP: &str = "drip";

const REDIS: [Reply; 7] = [
    reply("array header", "*1000000000000\r\n", "$1\r\n1\r\n", "a group of 1000000000000 values"),
    reply("array", "*9000000\r\n", "$1\r\n1\r\n", "9000001 rows, and 1000000 are allowed"),
    reply("nested arrays", "", "*1\r\n", "nested deeper"),
    reply("bulk length", "$9223372036854775807\r\n", "x", "a text of 9223372036854775807 bytes"),
    reply("long bulk", "*1\r\n$60000000\r\n", "x", ""),
    reply("small elements", "*0\r\n", "$1\r\n1\r\n", ""),
    reply(DRIP, "*1000000\r\n", "$1\r\n1\r\n", "deadline"),
];

const OK: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";

const HTTP: [Reply; 7] = [
    reply("body", "{", " ", "more than 16777216 bytes"),
    reply("array", "{\"lists\":[[1", ",1", "1000001 rows, and 1000000 are allowed"),
    reply("nesting", "{\"other\":", "[", "nested deeper"),
    reply("gzip", "\u{0}content-encoding: gzip\r\n\r\n", "\u{1f}", "encoded as \"gzip\""),
    reply("header", "\u{0}x: ", "a", "message head is too large"),
    reply(
        "content length",
        "\u{0}content-length: 999999999999999999\r\n\r\n",
        " ",
        "more than 16777216 bytes",
    ),
    reply(DRIP, "{\"lists\":[[1", ",1", "deadline"),
];

/// Sends a reply for as long as the client takes it; one that drips, a byte per millisecond until the case ends.
fn send(talk: &mut Connection, reply: &Reply, over: &Receiver<()>) {
    if reply.name != DRIP {
        let more = reply.more.repeat(4_000);
        while talk.send(&more) {}
        return;
    }
    for byte in reply.more.as_bytes().iter().cycle() {
        let ended = over.recv_timeout(Duration::from_millis(1));
        if ended != Err(std::sync::mpsc::RecvTimeoutError::Timeout) || !talk.send([*byte]) {
            return;
        }
    }
}

fn server(http: bool, reply: &'static Reply) -> (FakeServer, std::sync::mpsc::Sender<()>) {
    let (end, over) = channel();
    let over = std::sync::Mutex::new(Some(over));
    let server = FakeServer::start(move |talk| {
        let ready = match http {
            true => talk.http_request().is_some(),
            false => talk.answer_hello() && talk.command().is_some(),
        };
        if !ready {
            return;
        }
        match (http, reply.head.strip_prefix('\0')) {
            (true, Some(head)) => talk.send(format!("HTTP/1.1 200 OK\r\n{head}")),
            (true, None) => talk.send(format!("{OK}{}", reply.head)),
            (false, _) => talk.send(reply.head),
        };
        let over = over.lock().unwrap().take();
        send(talk, reply, &over.unwrap_or_else(|| channel().1));
    });
    (server, end)
}

/// Runs the case that the variable names, and prints the peak of memory.
#[tokio::test]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
async fn child() {
    let Ok(case) = std::env::var(CASE) else { return };
    let (kind, at) = case.split_once(' ').unwrap();
    let (http, at) = (kind == "http", at.parse::<usize>().unwrap());
    let reply = if http { &HTTP[at] } else { &REDIS[at] };
    let (server, end) = server(http, reply);
    let source: Arc<dyn Source> = if http {
        let url = format!("http://127.0.0.1:{}/read", server.port());
        Arc::new(Http::new(HttpConfig { response_timeout: HANGS, ..HttpConfig::new(url) }, clock()))
    } else {
        let config = RedisConfig::new("127.0.0.1", server.port());
        Arc::new(Redis::new(RedisConfig { response_timeout: HANGS, ..config }, clock()))
    };
    let engine = Engine::load(Config::new(registries(), vec![Arc::clone(&source), source])).unwrap();
    let plan = json!({"schema_version": 1, "plan_name": "hostile", "outputs": ["fan"], "nodes": [
        {"node_id": "one", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 1}},
        {"node_id": "fan", "op": "core::fanout", "inputs": ["one"],
            "params": {"endpoint": "ep_0001", "key": "follow:{id}", "limit": 9_500_000}}]});
    let plan = engine.compile(&plan.to_string(), Path::new(".")).unwrap();
    let began = clock().now();
    let options = RunOptions { deadline: Some(began + DEADLINE), ..RunOptions::default() };
    let answer = plan.run_with(Request::new(1, engine.registries()), &options).await;
    let took = clock().now() - began;
    drop(end);
    let told =
        answer.map_or_else(|error| error.to_string(), |answer| format!("{} rows", answer.outputs[0].len()));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!("\nHOSTILE {} {} {told}", peak.trim().trim_end_matches(" kB"), took.as_millis());
}

fn check(kind: &str, replies: &[Reply]) {
    for (at, reply) in replies.iter().enumerate() {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "hostile_servers::child", "--nocapture"])
            .env(CASE, format!("{kind} {at}"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout).into_owned();
        let line = said.lines().find_map(|line| line.strip_prefix("HOSTILE "));
        let line = line.unwrap_or_else(|| panic!("{kind}, {}: {said}", reply.name));
        let mut words = line.splitn(3, ' ');
        let peak = 1_024 * words.next().unwrap().parse::<u64>().unwrap();
        let took = Duration::from_millis(words.next().unwrap().parse().unwrap());
        let told = words.next().unwrap();
        let name = reply.name;
        assert!(peak < PEAK, "{kind}, {name}: {} MiB, {told}", peak >> 20);
        // Late by half a minute is the machine; a reply without end would take for ever.
        assert!(took < DEADLINE + Duration::from_secs(30), "{kind}, {name}: {took:?}, {told}");
        let late = told.contains("deadline");
        assert!(told.contains(reply.told) || late, "{kind}, {name}: {told}");
        if reply.name == DRIP {
            assert!(late && took >= DEADLINE, "{kind}, {name}: {took:?}, {told}");
        }
    }
}

#[test]
fn a_hostile_redis_takes_neither_memory_nor_time() {
    check("redis", &REDIS);
}

#[test]
fn a_hostile_http_server_takes_neither_memory_nor_time() {
    check("http", &HTTP);
}
