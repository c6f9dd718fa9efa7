//! What pages ask for: again and again while somebody looks, once where a user asks for it, and never in a hidden tab.

use anabranch_testkit::Browser;
use serde_json::json;

use super::fake::Fake;
use super::outages::raised_nothing;
use super::samples::{self, DATASET, run_id};
use super::{WIDE, is_clean, shows, with_browser};

const TROUBLE: &str = "document.getElementById('trouble')";
const WRONG: &str = "document.querySelectorAll('main .notice.bad').length";

#[test]
fn a_page_that_is_opened_while_the_server_is_busy_appears_later() {
    let fake = Fake::start(None);
    let run = run_id(7);
    with_browser(|browser| {
        for (page, path, status, text) in [
            (format!("runs/{run}"), format!("/v1/runs/{run}"), 503, "Ledger: degraded parts"),
            (format!("runs/{DATASET}"), "/v1/datasets".to_owned(), 429, "Cells per second"),
            (format!("runs/{run}/timeline"), format!("/v1/runs/{run}/timeline.html"), 503, "Download"),
            (format!("datasets/{DATASET}"), format!("/v1/datasets/{DATASET}"), 429, "Cells per second"),
            (
                format!("datasets/{DATASET}"),
                format!("/v1/datasets/{DATASET}/rows"),
                503,
                "My card was charged twice",
            ),
            (
                format!("datasets/{DATASET}"),
                format!("/v1/datasets/{DATASET}/errors"),
                503,
                "no reply within 30 s",
            ),
            (format!("datasets/{DATASET}/report"), format!("/v1/datasets/{DATASET}/report"), 503, "Download"),
            ("recipes/report.gz".to_owned(), "/v1/recipes/report.gz/graph".to_owned(), 503, "evicted"),
            ("recipes".to_owned(), "/v1/functions".to_owned(), 429, "2 functions"),
        ] {
            fake.refuse(&path, status);
            browser.visit(&format!("{}/#/{page}", fake.url), WIDE);
            browser.wait(&format!("{TROUBLE}.innerText.includes('too many requests') || {WRONG}"));
            assert_eq!(browser.evaluate(WRONG).to_json(), "0", "{page} gives up when {path} is refused");
            fake.accept_all();
            browser.wait(&shows(text));
            browser.wait(&format!("{TROUBLE}.hidden"));
            raised_nothing(browser);
        }
    });
}

/// Requests for these paths do not reach the server.
const CUT: &str = "{ const { fetch } = window; window.fetch = (path, ...rest) => (/cancel|download/.test(path) && !window.isWhole \
    ? Promise.reject(new TypeError('Failed to fetch')) : fetch(path, ...rest)); } true";

#[test]
fn a_request_that_nothing_repeats_fails_where_it_was_made() {
    let fake = Fake::start(Some("word"));
    with_browser(|browser| {
        browser.visit(&format!("{}/#token=word&/datasets/{DATASET}", fake.url), WIDE);
        browser.wait("document.querySelector('[data-state=\"0\"]')?.innerText === '613,500'");
        browser.evaluate(CUT);
        let save =
            "[...document.querySelectorAll('button')].find((button) => button.innerText === 'Download rows')";
        for _ in 0..2 {
            browser.evaluate(&format!("{save}.click()"));
            browser.wait(&format!("{save}.nextElementSibling.innerText.includes('cannot be reached')"));
        }
        assert_eq!(browser.evaluate(WRONG).to_json(), "1", "one note per button");
        for _ in 0..2 {
            browser.click("button.danger");
        }
        browser.wait("document.querySelector('button.danger').nextElementSibling?.innerText.includes('cannot be reached')");
        assert_eq!(
            browser.evaluate("document.querySelector('button.danger').innerText"),
            "Cancel build".into()
        );
        let state = format!("{TROUBLE}.hidden && document.getElementById('live').dataset.state");
        assert_eq!(browser.evaluate(&state), "on".into(), "nothing is tried again");
        browser.evaluate("window.isWhole = true");
        for _ in 0..2 {
            browser.click("button.danger");
        }
        fake.posted(&format!("/v1/datasets/{DATASET}/cancel"));
        raised_nothing(browser);
    });
}

/// Holds back all pauses until the test releases them, by the function that waits, and counts requests and the heads of
/// their responses.
const HOLD: &str = "window.held = []; window.asked = 0; window.answered = 0; \
    { const { fetch } = window, later = setTimeout; \
      window.fetch = (...rest) => { window.asked++; return fetch(...rest).finally(() => { window.answered++; }); }; \
      window.setTimeout = (work, ms, ...rest) => (ms >= 500 ? window.held.push({ work, by: new Error().stack }) : later(work, ms, ...rest)); } true";

/// Ends the pauses of a function, or of all.
fn release(browser: &mut Browser, by: &str) {
    browser.evaluate(&format!(
        "(() => {{ const due = window.held.filter((one) => one.by.includes({by:?})); \
         window.held = window.held.filter((one) => !due.includes(one)); due.forEach((one) => one.work()); return due.length; }})()"
    ));
}

/// Opens a page behind `HOLD`.
fn open_held(browser: &mut Browser, fake: &Fake, page: &str) {
    browser.visit(&format!("{}/#/nothing", fake.url), WIDE);
    browser.evaluate(HOLD);
    browser.evaluate(&format!("location.hash = '#/{page}'"));
}

#[test]
fn a_page_is_busy_until_the_same_request_succeeds() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        fake.refuse("/v1/events", 503);
        fake.refuse("/v1/runs", 503);
        open_held(browser, &fake, "runs");
        browser.wait(&format!("window.held.length === 2 && !{TROUBLE}.hidden"));
        fake.accept("/v1/events");
        release(browser, "hear");
        let mut fresh = fake.facts.runs.lock().unwrap()[0].clone();
        fresh["id"] = "018f3c2b000000-0007".into();
        fresh["name"] = "fresh".into();
        fake.facts.runs.lock().unwrap().insert(0, fresh.clone());
        fake.tell("/v1/events", "run", fresh);
        browser.wait("document.querySelector('[data-at=\"0\"]').innerText.includes('fresh')");
        assert_eq!(
            browser.evaluate(&format!("{TROUBLE}.innerText.includes('busy')")),
            true.into(),
            "the list cannot be read"
        );
        fake.accept_all();
        release(browser, "");
        browser.wait(&shows("10,000 runs"));
        browser.wait(&format!("{TROUBLE}.hidden"));
        raised_nothing(browser);
    });
}

const SET_HIDDEN: &str = "window.isHidden = true; Object.defineProperty(document, 'hidden', { configurable: true, get: () => window.isHidden }); true";
const SHOW: &str = "window.isHidden = false; document.dispatchEvent(new Event('visibilitychange')); true";
/// Lets everything that is due happen.
const SETTLE: &str = "new Promise((resolve) => { const turn = (left) => (left ? setTimeout(turn, 0, left - 1) : resolve(true)); turn(20); })";

/// Requests of every kind are made behind a pause: of a page that is read again, and of a stream that broke.
#[test]
fn a_hidden_page_sends_no_requests() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        for (page, pauses, text) in [
            (String::new(), 1, "Values from the store"),
            ("plans".to_owned(), 1, "5 plans"),
            ("plans/feed".to_owned(), 1, "128,400"),
            ("datasets".to_owned(), 1, "1 dataset"),
            // The list is not read again so soon, and its events are heard again.
            ("runs".to_owned(), 2, "10,000 runs"),
            (format!("runs/{}", run_id(7)), 1, "Ledger: degraded parts"),
            (format!("datasets/{DATASET}"), 1, "no reply within 30 s"),
        ] {
            open_held(browser, &fake, &page);
            browser.wait(&shows(text));
            // A stream that has not begun yet would not be hung up.
            browser.wait("window.asked === window.answered");
            browser.evaluate(SET_HIDDEN);
            fake.hang_up();
            browser.wait(&format!("window.held.length === {pauses}"));
            browser.evaluate(SETTLE);
            let before = browser.evaluate("window.asked");
            release(browser, "");
            browser.evaluate(SETTLE);
            assert_eq!(browser.evaluate("window.asked"), before, "{page} asks while nobody looks");
            browser.evaluate(SHOW);
            browser.wait(&format!("window.asked > {}", before.to_json()));
            is_clean(browser, &fake, &page);
        }
        // Opened in a tab behind this one.
        browser.visit(&format!("{}/#/nothing", fake.url), WIDE);
        browser.evaluate(SET_HIDDEN);
        browser.evaluate(HOLD);
        browser.evaluate("location.hash = '#/plans'");
        browser.evaluate(SETTLE);
        assert_eq!(browser.evaluate("window.asked").to_json(), "0");
        browser.evaluate(SHOW);
        browser.wait(&shows("5 plans"));
    });
}

#[test]
fn a_fault_of_the_page_is_not_called_an_outage() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/runs", fake.url), WIDE);
        browser.wait(&shows("10,000 runs"));
        // A run that no page understands.
        fake.tell("/v1/events", "run", json!(null));
        browser.wait(&format!("{} || !{TROUBLE}.hidden", shows("no longer up to date")));
        assert_eq!(browser.evaluate(&format!("{TROUBLE}.hidden")), true.into(), "the server is reached");
        let heard = browser.requests().iter().filter(|url| url.ends_with("/v1/events")).count();
        assert_eq!(heard, 1);
        raised_nothing(browser);
    });
}

/// What is not there leads back to what is.
#[test]
fn a_page_of_nothing_has_a_heading_and_a_way_back() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        for (page, path, back) in [
            ("#/plans/gone", "/v1/plans/gone", "#/plans"),
            ("#/runs/018f3c2b000000-0001/timeline", "/v1/runs/018f3c2b000000-0001/timeline.html", "#/runs"),
        ] {
            fake.refuse(path, 404);
            browser.visit(&format!("{}/{page}", fake.url), WIDE);
            browser.wait("document.querySelector('main .notice.bad')");
            browser.wait("document.querySelector('main h1').innerText");
            let link = browser.evaluate("document.querySelector('main .crumb a').getAttribute('href')");
            assert_eq!(link, back.into(), "{page}");
            raised_nothing(browser);
        }
    });
}

#[test]
fn a_run_that_ended_with_its_server_says_so() {
    let fake = Fake::start(None);
    let mut run = fake.facts.runs.lock().unwrap()[0].clone();
    (run["id"], run["state"], run["kind"]) =
        ("018f3c2b000000-0007".into(), "running".into(), "recipe".into());
    fake.facts.runs.lock().unwrap().insert(0, run);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/runs/018f3c2b000000-0007", fake.url), WIDE);
        browser.wait("document.querySelector('button.danger')");
        fake.refuse("/v1/runs/018f3c2b000000-0007/events", 404);
        fake.hang_up();
        browser.wait(&shows("ended with the server"));
        assert_eq!(browser.evaluate("document.querySelectorAll('button.danger').length").to_json(), "0");
        assert_eq!(browser.evaluate("document.querySelector('main .chip').innerText"), "ended".into());
        raised_nothing(browser);
    });
}

/// The page of the old run of a dataset goes to the dataset, which the server started anew builds with another run.
#[test]
fn the_run_of_a_dataset_that_goes_on_after_a_restart_leads_to_the_dataset() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/runs/{DATASET}", fake.url), WIDE);
        browser.wait("document.querySelector('[data-state=\"0\"]')?.innerText === '613,500'");
        fake.set_run("018f3c2b000000-0002");
        fake.facts.runs.lock().unwrap().retain(|run| run["id"] != DATASET);
        fake.refuse(&format!("/v1/runs/{DATASET}/events"), 404);
        fake.hang_up();
        browser.wait(&format!("location.hash === '#/datasets/{DATASET}'"));
        browser.wait(&shows("Cells per second"));
        assert_eq!(browser.evaluate(WRONG).to_json(), "0");
        raised_nothing(browser);
    });
}

/// Rows that are written while somebody looks, and errors that are counted.
#[test]
fn sample_rows_and_counts_of_errors_come_while_a_dataset_is_built() {
    let fake = Fake::start(None);
    fake.facts.rows.lock().unwrap().clear();
    with_browser(|browser| {
        browser.visit(&format!("{}/#/datasets/{DATASET}", fake.url), WIDE);
        browser.wait(&shows("no rows are written yet"));
        fake.facts.rows.lock().unwrap().push(json!({"topic": "delivery", "ticket": "My parcel is lost."}));
        let mut progress = samples::progress("running", 42_100, 190.0);
        progress["rows_written"] = 42_000.into();
        progress["errors"] = json!({"timeout": 4_321});
        fake.tell(&format!("/v1/runs/{DATASET}/events"), "progress", progress);
        browser.wait(&shows("My parcel is lost."));
        browser
            .wait("document.querySelector('section[aria-label=Errors] .legend').innerText.includes('4,321')");
        is_clean(browser, &fake, "dataset");
    });
}
