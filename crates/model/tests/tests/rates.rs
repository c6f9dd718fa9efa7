//! Rate limits in headers.

use std::time::Duration;

use anabranch_model::{RateWindow, Rates};
use expect_test::{Expect, expect};
use proptest::prelude::*;

const DATE: &str = "date: Sun, 06 Nov 1994 08:49:37 GMT";

/// The rate limits of headers, one per line of the text.
fn read(headers: &str) -> Option<Rates> {
    let lines = || headers.lines().filter_map(|line| line.trim().split_once(": "));
    Rates::read(|name| lines().find(|(header, _)| *header == name).map(|(_, value)| value))
}

fn shown(window: Option<RateWindow>) -> String {
    let Some(RateWindow { limit, remaining, full_after }) = window else { return "none".to_owned() };
    let limit = limit.map_or("?".to_owned(), |limit| limit.to_string());
    format!("{remaining}/{limit} {}", full_after.map_or("?".to_owned(), |wait| format!("{wait:?}")))
}

fn check(headers: &str, expected: Expect) {
    let text = match read(headers) {
        Some(Rates { requests, tokens }) => {
            format!("requests {}, tokens {}", shown(requests), shown(tokens))
        }
        None => "nothing".to_owned(),
    };
    expected.assert_eq(&text);
}

#[test]
fn open_ai_headers() {
    check(
        "x-ratelimit-limit-requests: 60
         x-ratelimit-remaining-requests: 59
         x-ratelimit-reset-requests: 1s
         x-ratelimit-limit-tokens: 150000
         x-ratelimit-remaining-tokens: 149984
         x-ratelimit-reset-tokens: 6m0s",
        expect!["requests 59/60 1s, tokens 149984/150000 360s"],
    );
    check("x-ratelimit-remaining-tokens: 7", expect!["requests none, tokens 7/? ?"]);
    // Without a number of what remains, the others say nothing.
    check("x-ratelimit-limit-requests: 60\nx-ratelimit-reset-requests: 1s", expect!["nothing"]);
}

#[test]
fn anthropic_headers() {
    let requests = "anthropic-ratelimit-requests-limit: 50
         anthropic-ratelimit-requests-remaining: 0
         anthropic-ratelimit-requests-reset: 1994-11-06T08:50:00Z";
    let parts = "anthropic-ratelimit-input-tokens-limit: 1000
         anthropic-ratelimit-input-tokens-remaining: 300
         anthropic-ratelimit-input-tokens-reset: 1994-11-06T08:49:38.25Z
         anthropic-ratelimit-output-tokens-limit: 100
         anthropic-ratelimit-output-tokens-remaining: 29
         anthropic-ratelimit-output-tokens-reset: 1994-11-06T10:50:37+02:00";
    check(&format!("{requests}\n{DATE}"), expect!["requests 0/50 23s, tokens none"]);
    // The tighter one: 29 of 100 before 300 of 1000.
    check(&format!("{parts}\n{DATE}"), expect!["requests none, tokens 29/100 60s"]);
    let output_left = parts.replace("remaining: 29", "remaining: 31");
    check(&format!("{output_left}\n{DATE}"), expect!["requests none, tokens 300/1000 1.25s"]);
    check(
        &format!("{parts}\nanthropic-ratelimit-tokens-remaining: 500"),
        expect!["requests none, tokens 500/? ?"],
    );
    // Without the server's clock its points in time mean nothing.
    check(requests, expect!["requests 0/50 ?, tokens none"]);
}

#[test]
fn plain_headers_are_of_requests() {
    let check = |reset: &str, expected| {
        check(
            &format!("x-ratelimit-limit: 100\nx-ratelimit-remaining: 3\nx-ratelimit-reset: {reset}\n{DATE}"),
            expected,
        );
    };
    check("12", expect!["requests 3/100 12s, tokens none"]);
    check("784111787", expect!["requests 3/100 10s, tokens none"]);
    check("784111787500", expect!["requests 3/100 10.5s, tokens none"]);
}

/// The wait until a reset in this form.
fn wait(reset: &str) -> Option<Duration> {
    let rates = read(&format!("x-ratelimit-remaining: 1\nx-ratelimit-reset: {reset}\n{DATE}"));
    rates.unwrap().requests.unwrap().full_after
}

#[test]
fn resets_in_all_forms() {
    let resets = "0|0s|1.5|1s|120ms|6m0s|1h2m3.5s|2m59.56s|1d|25h|90000|250us|8784h|1995-11-06T23:59:60Z|\
                  1994-11-06 08:49:39.1239z|1994-11-06T07:49:39-01:00|1994-11-06T08:49:30Z";
    let lines = resets.split('|').map(|reset| format!("{reset} = {:?}", wait(reset).unwrap()));
    expect![[r#"
        0 = 0ns
        0s = 0ns
        1.5 = 1.5s
        1s = 1s
        120ms = 120ms
        6m0s = 360s
        1h2m3.5s = 3723.5s
        2m59.56s = 179.56s
        1d = 86400s
        25h = 86400s
        90000 = 86400s
        250us = 250µs
        8784h = 86400s
        1995-11-06T23:59:60Z = 86400s
        1994-11-06 08:49:39.1239z = 2.123s
        1994-11-06T07:49:39-01:00 = 2s
        1994-11-06T08:49:30Z = 0ns"#]]
    .assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn resets_that_make_no_sense_are_missing() {
    let resets = "-1|-1s|8785h|999999999999999999999999h|1e300|1e999|9999-12-31T23:59:60Z|NaN|inf|-inf|s|1s2|1x|1.2.3s|\
                  .s|1s 2s|soon|1993-11-06T08:49:30Z|1994-13-06T08:49:30Z|1994-11-06T08:49:30|1994-11-06T25:49:30Z|\
                  1994-11-06T08:49:30.Z|1994-11-06T08:49:30+ä|1994-11-06T08:49:99999999999999999999Z|40000000";
    for reset in resets.split('|') {
        assert_eq!(wait(reset), None, "{reset}");
    }
}

#[test]
fn numbers_that_make_no_sense_are_missing() {
    let check = |limit: &str, remaining: &str, expected| {
        check(&format!("x-ratelimit-limit: {limit}\nx-ratelimit-remaining: {remaining}"), expected);
    };
    check(
        "18446744073709551615",
        "18446744073709551615",
        expect!["requests 18446744073709551615/18446744073709551615 ?, tokens none"],
    );
    check("18446744073709551616", "1", expect!["requests 1/? ?, tokens none"]);
    check("-5", "1", expect!["requests 1/? ?, tokens none"]);
    check("100, 100;w=60", "1", expect!["requests 1/? ?, tokens none"]);
    check("0", "0", expect!["nothing"]);
    for remaining in ["-1", "18446744073709551616", "NaN", "1e3", "1.5", "", "many"] {
        check("100", remaining, expect!["nothing"]);
    }
}

const NAMES: &[&str] = &[
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-input-tokens-limit",
    "anthropic-ratelimit-input-tokens-remaining",
    "anthropic-ratelimit-output-tokens-limit",
    "anthropic-ratelimit-output-tokens-remaining",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "date",
];

/// Any text, and texts that are nearly right.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        any::<u64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "[0-9]{1,3}",
        "([0-9.]{0,330}(h|m|s|ms|us|µs|d|é)){1,4}",
        "[0-9]{1,5}-[0-9]{1,3}-[0-9]{1,3}[Tt ][0-9]{1,20}:[0-9]{1,3}:[0-9.]{1,9}[Zz+-]([0-9]{2}:[0-9ä]{2})?",
        "Sun, [0-9]{1,3} (Nov|Jan) [0-9]{1,5} [0-9]{1,20}:[0-9]{1,3}:[0-9]{1,3} GMT",
    ]
}

proptest! {
    #[test]
    fn no_text_of_headers_panics(
        headers in prop::collection::vec((prop::sample::select(NAMES), value()), 0..12),
    ) {
        let find = |name: &str| headers.iter().find(|(header, _)| *header == name);
        let rates = Rates::read(|name| find(name).map(|(_, value)| value.as_str()));
        let windows = rates.iter().flat_map(|rates| [rates.requests, rates.tokens]).flatten();
        for window in windows {
            prop_assert!(window.full_after.is_none_or(|wait| wait <= Duration::from_secs(86_400)));
            prop_assert!(window.limit != Some(0));
        }
    }
}
