//! A server that is busy, is started anew, or sends more events than a page can draw.

use anabranch_testkit::Browser;
use serde_json::json;

use super::fake::Fake;
use super::samples::{self, COLUMNS, DATASET};
use super::{WIDE, shows, with_browser};

/// The page raised no error. A refused request is a complaint of the browser, not of the page.
pub(super) fn raised_nothing(browser: &Browser) {
    let raised: Vec<String> =
        browser.complaints().into_iter().filter(|complaint| complaint.starts_with("Runtime.")).collect();
    assert_eq!(raised, [] as [String; 0]);
}

#[test]
fn a_page_goes_on_after_the_server_was_busy() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        for (page, path, status, text) in [
            ("#/plans", "/v1/plans", 503, "5 plans"),
            ("#/", "/v1/plans", 429, "Values from the store"),
            ("#/", "/v1/status", 503, "Values from the store"),
            ("#/datasets", "/v1/datasets", 429, "42,000 of 100,000"),
            ("#/runs", "/v1/runs", 503, "10,000 runs"),
        ] {
            fake.refuse(path, status);
            browser.visit(&format!("{}/{page}", fake.url), WIDE);
            let wrong = "document.querySelectorAll('main .notice.bad, main .empty:not([hidden])').length";
            browser.wait(&format!(
                "document.getElementById('trouble')?.innerText.includes('too many requests') || {wrong}"
            ));
            assert_eq!(browser.evaluate(wrong).to_json(), "0", "{page} says that the server has nothing");
            fake.accept_all();
            browser.wait(&shows(text));
            browser.wait("document.getElementById('trouble').hidden");
            raised_nothing(browser);
        }
    });
}

#[test]
fn a_stream_that_is_refused_is_told() {
    let fake = Fake::start(None);
    fake.refuse("/v1/events", 403);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/runs", fake.url), WIDE);
        browser.wait(&shows("no longer up to date: too many requests"));
        browser.wait(&shows("10,000 runs"));
        raised_nothing(browser);
    });
}

/// A run, as events and the list have it.
fn run(id: &str, state: &str) -> serde_json::Value {
    json!({
        "id": id, "kind": "plan", "name": "fresh", "state": state, "started_ms": 0, "degraded": 0, "failures": 0,
        "duration_ms": (state != "running").then_some(31.5), "rows": null, "has_detail": false,
    })
}

#[test]
fn runs_whose_events_were_lost_are_read_again() {
    const FIRST: &str = "018f3c2b000000-0001";
    const SECOND: &str = "018f3c2b000001-0001";
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/runs", fake.url), WIDE);
        browser.wait(&shows("10,000 runs"));
        let line = |at: usize, text: &str| {
            format!("document.querySelector('[data-at=\"{at}\"]').innerText.includes({text:?})")
        };
        fake.tell("/v1/events", "run", run(FIRST, "running"));
        browser.wait(&line(0, "running"));
        // Its end is among the lost events.
        fake.facts.runs.lock().unwrap().insert(0, run(FIRST, "failed"));
        fake.tell("/v1/events", "lost", json!({"lost": 3}));
        browser.wait(&line(0, "failed"));
        // A server that was started anew has neither the run under way nor its end.
        fake.tell("/v1/events", "run", run(SECOND, "running"));
        browser.wait(&line(0, "running"));
        fake.hang_up();
        browser.wait(&line(0, "failed"));
        raised_nothing(browser);
    });
}

#[test]
fn a_dataset_goes_on_after_a_restart_of_the_server() {
    const NEXT: &str = "018f3c2b000000-0002";
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/datasets/{DATASET}", fake.url), WIDE);
        browser.wait("document.querySelector('[data-state=\"0\"]').innerText === '613,500'");
        // The old run is not known any more.
        let old = "/v1/runs/018f3c2afffffe-0007/events";
        fake.set_run(NEXT);
        fake.refuse(old, 404);
        fake.hang_up();
        // The page is shown anew, with the cells of now.
        browser.wait("performance.getEntriesByType('resource').filter(({ name }) => name.includes('/cells?')).length === 2");
        browser.wait("document.querySelector('[data-state=\"0\"]').innerText === '613,500'");
        let events = format!("/v1/runs/{NEXT}/events");
        let mut progress = samples::progress("running", 43_000, 190.0);
        progress["cells"] = json!([[0, 1, 1000 * COLUMNS.len()]]);
        fake.tell(&events, "progress", progress);
        browser.wait(&shows("43,000"));
        browser.wait("document.querySelector('[data-state=\"1\"]').innerText === '17,000'");
        browser.wait("document.querySelector('button.danger')");
        // Its end comes while the server is busy.
        fake.set_state("stopped");
        fake.refuse("/v1/datasets/018f3c2afffffe-0007", 503);
        fake.tell(&events, "end", json!({"status": "stopped"}));
        browser.wait("document.getElementById('trouble').innerText.includes('busy')");
        fake.accept_all();
        browser.wait("document.querySelector('main .chip').innerText === 'stopped' && !document.querySelector('button.danger')");
        raised_nothing(browser);
    });
}

/// More events than a page can draw one by one.
const BURST: usize = 50_000;

/// Counts how often a page goes over all entries of a map.
const COUNT_WALKS: &str = "window.walks = 0; for (const name of ['keys', 'values', 'entries']) { \
    const walk = Map.prototype[name]; Map.prototype[name] = function () { window.walks++; return walk.call(this); }; } true";

#[test]
fn a_page_of_runs_keeps_up_with_a_burst_of_events() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/runs", fake.url), WIDE);
        browser.wait(&shows("10,000 runs"));
        browser.evaluate(COUNT_WALKS);
        fake.tell_all(
            "/v1/events",
            "run",
            (0..BURST).map(|at| run(&format!("018f3c2b{at:06x}-0001"), "complete")),
        );
        let newest = format!("018f3c2b{:06x}", BURST - 1);
        browser.wait(&format!("document.querySelector('[data-at=\"0\"]').innerText.includes({newest:?})"));
        assert_eq!(browser.evaluate(&shows("10,000 runs")), true.into());
        // All rows are gone over once per picture, not once per event.
        let walks = browser.evaluate("window.walks").as_number().unwrap();
        assert!(walks < BURST as f64 / 10.0, "{walks}");
        raised_nothing(browser);
    });
}

/// Holds back the drawing of the list, and notes the largest map and the last key.
const COUNT_ENTRIES: &str = "window.largest = 0; window.held = []; \
    { const { set } = Map.prototype, later = setTimeout; \
      Map.prototype.set = function (...rest) { set.apply(this, rest); window.largest = Math.max(window.largest, this.size); window.last = rest[0]; return this; }; \
      window.setTimeout = (work, ms, ...rest) => (ms === 120 ? window.held.push(work) : later(work, ms, ...rest)); } true";

#[test]
fn runs_that_are_not_drawn_yet_are_bounded() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/runs", fake.url), WIDE);
        browser.wait(&shows("10,000 runs"));
        browser.evaluate(COUNT_ENTRIES);
        let id = |at: usize| format!("018f3c2b{at:06x}-0001");
        fake.tell_all("/v1/events", "run", (0..BURST).map(|at| run(&id(at), "complete")));
        browser.wait(&format!("window.last === {:?}", id(BURST - 1)));
        let largest = browser.evaluate("window.largest").as_number().unwrap();
        assert!(largest <= 20_001.0, "{largest} runs are held");
        browser.evaluate("window.held.splice(0).forEach((work) => work())");
        browser.wait(&shows("10,000 runs"));
        browser.wait(&format!(
            "document.querySelector('[data-at=\"9999\"], .list-line').innerText.includes({:?})",
            &id(BURST - 1)[..14]
        ));
        raised_nothing(browser);
    });
}
