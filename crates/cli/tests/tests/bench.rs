//! `plan bench`.

use expect_test::expect;

use crate::binary::{anabranch, patient_examples, scratch};

fn bench(args: &[&str]) -> serde_json::Value {
    let args: Vec<&str> = ["plan", "bench", "feed", "--json"].iter().chain(args).copied().collect();
    let said = anabranch(&args, "");
    assert_eq!((said.code, said.stdout.matches('\n').count()), (0, 1), "{}", said.shown());
    serde_json::from_str(&said.stdout).unwrap()
}

#[test]
fn closed_loops_count_what_they_ask() {
    for concurrency in ["1", "8"] {
        let measured = bench(&["--requests", "50", "--concurrency", concurrency, "--warmup", "5"]);
        assert_eq!(measured["iterations"], 50);
        assert_eq!(measured["plan"], "feed");
        assert_eq!(measured["concurrency"].to_string(), concurrency);
        let number = |name: &str| measured[name].as_f64().unwrap_or_else(|| panic!("{name}: {measured}"));
        for name in ["total_ms", "throughput_rps", "avg_us", "cpu_us_per_request"] {
            assert!(number(name) > 0.0, "{name}");
        }
        let ascending = ["min_us", "p50_us", "p90_us", "p99_us", "p999_us"].map(number);
        assert!(ascending.is_sorted(), "{ascending:?}");
        assert_eq!(number("goodput_rps"), number("throughput_rps"), "all in full, and no deadline");
        assert_eq!(number("trips_per_request"), 6.0);
        assert_eq!(measured["errors"].as_object().unwrap().len(), 0);
    }
}

#[test]
fn open_loops_keep_their_rate() {
    let measured = bench(&["--requests", "40", "--rate", "400", "--warmup", "0"]);
    assert_eq!(measured["iterations"], 40);
    // The last of 40 is due after 97.5 ms.
    assert!(measured["total_ms"].as_f64().unwrap() > 90.0, "{measured}");
    let measured = bench(&["--duration", "50ms", "--rate", "200"]);
    assert_eq!(measured["iterations"], 10);
}

#[test]
fn requests_come_from_a_file_in_turn() {
    let file = scratch("requests").join("requests.jsonl");
    std::fs::write(&file, "{\"user_id\": 1}\n\n{\"user_id\": 2}\n").unwrap();
    let measured = bench(&["--requests", "10", "--request-file", file.to_str().unwrap()]);
    assert_eq!(measured["iterations"], 10);
    std::fs::write(&file, "{\"user_id\": 1}\n{\"user_id\": 0}\n").unwrap();
    let said = anabranch(&["plan", "bench", "feed", "--request-file", file.to_str().unwrap()], "");
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("requests.jsonl:2: Invalid request"), "{}", said.stderr);
}

#[test]
fn errors_are_counted_and_not_fatal() {
    let registry = patient_examples().join("registry");
    let args = ["plan", "bench", "home", "--redis", "127.0.0.1:1", "--registry", registry.to_str().unwrap()];
    let args: Vec<&str> =
        args.iter().copied().chain(["--requests", "5", "--warmup", "0", "--json"]).collect();
    let said = anabranch(&args, "");
    assert_eq!(said.code, 1, "no answer at all");
    let measured: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(measured["errors"]["source: no connection"]["count"], 5, "{measured}");
}

/// A folder of its own with the examples' project, in which each trip takes this long, a few at a time.
fn slow_project(name: &str, delay_ms: u32) -> String {
    let (folder, examples) = (scratch(name), patient_examples());
    let text = format!(
        "[plan]\nregistry = {:?}\nplans = {:?}\nenv = \"dev\"\n[plan.endpoints.ep_0001]\nsource = \"memory\"\n\
         data = [{:?}]\ndelay_ms = {delay_ms}\n",
        examples.join("registry"),
        examples.join("plans"),
        examples.join("data.json"),
    );
    let file = folder.join("anabranch.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn goodput_is_what_comes_by_the_deadline() {
    let project = slow_project("late", 25);
    let args = ["plan", "bench", "home", "--project", &project, "--requests", "6", "--warmup", "0"];
    let with = |deadline: &str| {
        let args: Vec<&str> = args.iter().copied().chain(["--deadline-ms", deadline, "--json"]).collect();
        let said = anabranch(&args, "");
        serde_json::from_str::<serde_json::Value>(&said.stdout).unwrap_or_else(|_| panic!("{}", said.shown()))
    };
    let late = with("10");
    let counts =
        ["iterations", "late", "refused", "failed", "answered"].map(|name| late[name].as_u64().unwrap());
    assert_eq!(counts, [6, 6, 0, 0, 0], "{late}");
    assert_eq!(late["goodput_rps"], 0.0);
    let good = with("60000");
    assert_eq!(good["goodput_rps"], good["throughput_rps"]);
    assert_eq!((good["late"].as_u64(), good["deadline_ms"].as_u64()), (Some(0), Some(60_000)));
}

#[test]
fn what_would_be_late_under_load_is_refused() {
    let mut tries = Vec::new();
    // Two trips of 20 ms at a time are enough for 25 requests a second or so, not for 300. A machine that is too busy
    // to ask in time is given more of it.
    for slower in [1, 4, 16] {
        let project = slow_project("overload", 20 * slower);
        let text = std::fs::read_to_string(&project).unwrap();
        std::fs::write(&project, text + "max_inflight = 2\n").unwrap();
        let [rate, duration, deadline] =
            [(300 / slower).to_string(), format!("{}ms", 1500 * slower), (300 * slower).to_string()];
        let args =
            ["plan", "bench", "trending", "--project", &project, "--rate", &rate, "--duration", &duration];
        let args = [&args[..], &["--deadline-ms", &deadline, "--warmup", "0", "--json"]].concat();
        let said = anabranch(&args, "");
        let measured: serde_json::Value =
            serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{}", said.shown()));
        assert!(measured["iterations"].as_u64() > Some(400), "{measured}");
        if measured["refused"].as_u64() > Some(100) {
            return;
        }
        tries.push(measured);
    }
    panic!("{tries:#?}");
}

#[test]
fn people_get_lines() {
    let said = anabranch(&["plan", "bench", "feed", "--requests", "10"], "");
    let heads: Vec<&str> = said.stdout.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(heads, ["plan", "throughput", "goodput", "latency", "CPU", "sources"], "{}", said.stdout);
}

#[test]
fn without_answers_there_is_nothing_to_measure() {
    let args = ["plan", "bench", "home", "--redis", "127.0.0.1:1", "--requests", "2", "--warmup", "0"];
    expect![[r#"
        plan home: 2 requests, 1 at once, on 1 thread, after 0 to warm up
        errors      2 times source: no connection, the first: node `followed` (core::follow): no connection to redis_default: 127.0.0.1:1: Connection refused (os error 111)
        stderr: error: not one request was answered
        exit 1
    "#]].assert_eq(&anabranch(&args, "").shown());
}

#[test]
fn numbers_out_of_range_are_wrong_values() {
    let wrong = [
        ["--requests", "-5"],
        ["--concurrency", "0"],
        ["--rate", "-1"],
        ["--duration", "-1s"],
        ["--duration", "0"],
        ["--rate", "1e-300"],
        ["--duration", "1e19s"],
        ["--warmup", "-1"],
        ["--deadline-ms", "0"],
        ["--cpu-threads", "-2"],
    ];
    let first = |option: &[&str; 2]| {
        let said = anabranch(&["plan", "bench", "feed", option[0], option[1]], "");
        assert_eq!(said.code, 2, "{}", said.shown());
        said.stderr.lines().next().unwrap_or_default().to_owned()
    };
    expect![[r#"
        error: invalid value '-5' for '--requests <N>': must be a whole number from 1
        error: invalid value '0' for '--concurrency <C>': 0 is not in 1..=100000
        error: invalid value '-1' for '--rate <R>': a rate is a number of requests per second, from 0.00001 to 1000000000
        error: invalid value '-1s' for '--duration <TIME>': a duration is a number and a unit: 50us, 1.5ms, 2s, 5m, 24h, or 0
        error: invalid value '0' for '--duration <TIME>': no time at all
        error: invalid value '1e-300' for '--rate <R>': a rate is a number of requests per second, from 0.00001 to 1000000000
        error: invalid value '1e19s' for '--duration <TIME>': a load lasts at most a year
        error: invalid value '-1' for '--warmup <N>': must be a whole number from 0
        error: invalid value '0' for '--deadline-ms <N>': must be a whole number from 1 to 86400000
        error: invalid value '-2' for '--cpu-threads <N>': -2 is not in 1..=65535"#]]
    .assert_eq(&wrong.iter().map(first).collect::<Vec<_>>().join("\n"));
}
