//! Lists that are longer than a page of the API, and what is read again while somebody looks.

use anabranch_testkit::{Browser, View};
use serde_json::json;

use super::fake::Fake;
use super::samples::{DATASET, LONG, run_id};
use super::{WIDE, is_clean, shows, with_browser};

/// The lines of a list that are elements.
const LINES: &str = "document.querySelectorAll('.list-line').length";

/// How many requests there were for a path.
fn asked(browser: &Browser, path: &str) -> usize {
    browser.requests().iter().filter(|url| url.contains(path)).count()
}

#[test]
fn all_datasets_are_listed_counted_and_found() {
    let fake = Fake::start(None);
    *fake.facts.newer.lock().unwrap() = 450;
    with_browser(|browser| {
        browser.visit(&format!("{}/#/datasets", fake.url), WIDE);
        browser.wait(&shows("451 datasets"));
        let lines = browser.wait(LINES).as_number().unwrap();
        assert!(lines < 100.0, "only lines that can be seen are elements: {lines}");
        browser.evaluate("document.querySelector('.list').scrollTop = 1e9");
        browser.wait("document.querySelector('[data-at=\"450\"]')?.innerText.includes('support-tickets')");
        browser.click("input[type=search]");
        browser.type_text("newer-44");
        browser.wait(&shows("11 datasets"));
        is_clean(browser, &fake, "datasets");
        // A run shows the dataset that it builds, on whatever page of the list that is.
        browser.visit(&format!("{}/#/runs/{DATASET}", fake.url), WIDE);
        browser.wait(&shows("42,000"));
        browser.wait("document.querySelector('.grid-canvas')");
        is_clean(browser, &fake, "run");
    });
}

#[test]
fn the_overview_counts_datasets_without_reading_all_of_them() {
    let fake = Fake::start(None);
    *fake.facts.newer.lock().unwrap() = 450;
    with_browser(|browser| {
        browser.visit(&format!("{}/#/", fake.url), WIDE);
        browser.wait(
            "[...document.querySelectorAll('.tiles > div')].some((tile) => tile.innerText.startsWith('Datasets') && \
             tile.innerText.includes('100') && tile.innerText.includes('or more') && tile.innerText.includes('1 running'))",
        );
        assert_eq!(asked(browser, "/v1/datasets?limit=100"), asked(browser, "/v1/datasets"));
        is_clean(browser, &fake, "overview");
    });
}

/// The cells of lists that are cut off, or whose head is.
const CUT_OFF: &str = "[...document.querySelectorAll('.list')].flatMap((list) => \
    [...list.querySelectorAll('.list-head > span, .list-line > span')].filter((cell) => \
      cell.getBoundingClientRect().right > list.getBoundingClientRect().right || (cell.parentElement.matches('.list-head') && cell.scrollWidth > cell.clientWidth)))\
    .map((cell) => cell.innerText).join()";

#[test]
fn no_column_is_cut_off() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        for width in [1440, 1280, 1024, 830, 375] {
            for page in ["runs", "datasets", "recipes"] {
                browser.visit(&format!("{}/#/{page}", fake.url), View { width, dark: false });
                browser.wait(&format!("{LINES} > 0"));
                assert_eq!(browser.evaluate(CUT_OFF), "".into(), "{page} at {width} pixels");
                is_clean(browser, &fake, page);
            }
        }
        // What there is room for again comes back.
        browser.visit(&format!("{}/#/runs", fake.url), View { width: 1024, dark: false });
        let last = "document.querySelector('.list-head').lastElementChild.innerText";
        browser.wait(&format!("{LINES} > 0 && {last} !== 'Id'"));
        browser.look(WIDE);
        browser.wait(&format!("{last} === 'Id'"));
    });
}

#[test]
fn a_server_without_runs_says_so_until_there_is_one() {
    let fake = Fake::start(None);
    let run = std::mem::take(&mut *fake.facts.runs.lock().unwrap()).remove(2);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/runs", fake.url), WIDE);
        browser.wait(&shows("No runs yet"));
        let heads = browser.evaluate("document.querySelector('.list').checkVisibility()");
        assert_eq!(heads, false.into(), "there is no empty list below the note");
        fake.tell("/v1/events", "run", run);
        browser.wait("document.querySelector('[data-at=\"0\"]')?.innerText.includes('search')");
        browser.wait(&format!("!{}", shows("No runs yet")));
        is_clean(browser, &fake, "runs");
    });
}

/// Tables that are wider than the page.
const WIDER: &str = "[...document.querySelectorAll('main table')]\
    .filter((table) => table.scrollWidth > table.parentElement.clientWidth).map((table) => table.ariaLabel).join()";

#[test]
fn a_long_name_hides_no_figure() {
    let fake = Fake::start(None);
    // A degraded run of the plan.
    let run = run_id(28);
    with_browser(|browser| {
        for width in [1440, 375] {
            for page in ["plans".to_owned(), String::new(), format!("runs/{run}")] {
                browser.visit(&format!("{}/#/{page}", fake.url), View { width, dark: false });
                browser.wait(&format!("{} && document.querySelector('main table')", shows(LONG)));
                let fits = browser.evaluate("document.documentElement.scrollWidth <= innerWidth");
                assert_eq!(fits, true.into(), "{page} at {width} pixels");
                if !page.starts_with("runs/") {
                    assert_eq!(browser.evaluate(WIDER), "".into(), "{page} at {width} pixels");
                }
                is_clean(browser, &fake, &page);
            }
            // The name of a line that is cut off is in its tooltip.
            browser.visit(&format!("{}/#/runs", fake.url), View { width, dark: false });
            browser.wait(&format!("document.querySelector('.list-line [title={LONG:?}]')"));
        }
    });
}

#[test]
fn a_list_that_is_cut_says_so() {
    let fake = Fake::start(None);
    *fake.facts.newer.lock().unwrap() = 10_050;
    let mut newest = fake.facts.runs.lock().unwrap()[2].clone();
    newest["id"] = "018f3c2b000000-0007".into();
    fake.facts.runs.lock().unwrap().insert(0, newest);
    with_browser(|browser| {
        for (page, text) in [("datasets", "the newest 10,000 datasets"), ("runs", "the newest 10,000 runs")] {
            browser.visit(&format!("{}/#/{page}", fake.url), WIDE);
            browser.wait(&shows(text));
            is_clean(browser, &fake, page);
        }
    });
}

#[test]
fn all_names_are_listed_and_few_are_elements() {
    let fake = Fake::start(None);
    *fake.facts.names.lock().unwrap() = 25_000;
    with_browser(|browser| {
        browser.visit(&format!("{}/#/recipes", fake.url), WIDE);
        browser.wait(&shows("25,000 names"));
        assert_eq!(asked(browser, "/v1/refs"), 3);
        let lines = browser.wait(LINES).as_number().unwrap();
        assert!(lines < 100.0, "only lines that can be seen are elements: {lines}");
        browser.evaluate("document.querySelector('.list').scrollTop = 1e9");
        browser.wait("document.querySelector('[data-at=\"24999\"]')?.innerText.includes('sales.csv')");
        browser.wait(&shows("2 functions"));
        browser.press("j");
        browser.press("j");
        browser.press("Enter");
        browser.wait("location.hash === '#/recipes/name-000003'");
        is_clean(browser, &fake, "recipes");
    });
}

/// Holds back the pauses behind readings of all runs until the test releases them.
const HOLD: &str = "window.held = []; window.later = window.setTimeout; window.setTimeout = (work, ms, ...rest) => \
    (ms === 2000 ? window.held.push(work) : window.later(work, ms, ...rest)); true";
const RELEASE: &str = "window.held.splice(0).forEach((work) => work())";

#[test]
fn runs_are_read_again_with_a_pause_however_often_events_are_lost() {
    let fake = Fake::start(None);
    let lose = || fake.tell("/v1/events", "lost", json!({"lost": 3}));
    // A reading has ten pages, and a pause behind it.
    let read = |readings: usize| {
        format!(
            "window.held.length === 1 && performance.getEntriesByType('resource')\
             .filter(({{ name }}) => name.includes('/v1/runs?limit=1000')).length === {}",
            10 * readings
        )
    };
    with_browser(|browser| {
        browser.visit(&format!("{}/#/", fake.url), WIDE);
        browser.evaluate(HOLD);
        browser.evaluate("location.hash = '#/runs'");
        browser.wait(&read(1));
        lose();
        lose();
        // Later than those, so that they have been heard.
        fake.tell(
            "/v1/events",
            "run",
            json!({
                "id": "018f3c2b000000-0001", "kind": "plan", "name": "fresh", "state": "running", "started_ms": 0,
                "duration_ms": null, "degraded": 0, "failures": 0, "rows": null, "has_detail": false,
            }),
        );
        browser.wait("document.querySelector('[data-at=\"0\"]').innerText.includes('fresh')");
        assert_eq!(browser.evaluate(&read(1)), true.into(), "the list is not read at once");
        browser.evaluate(RELEASE);
        browser.wait(&read(2));
        browser.evaluate(RELEASE);
        lose();
        browser.wait(&read(3));
        is_clean(browser, &fake, "runs");
    });
}

#[test]
fn the_page_of_a_plan_stays_up_to_date_and_keeps_what_is_typed() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/plans/feed", fake.url), WIDE);
        browser.wait(&shows("128,400"));
        browser.click("#parameter-limit");
        browser.type_text("20");
        browser.evaluate("window.form = document.querySelector('form'); window.graph = document.querySelector('.graph'); true");
        *fake.facts.timed.lock().unwrap() = 128_777;
        browser.wait(&shows("128,777"));
        let kept = "document.querySelector('form') === window.form && document.querySelector('.graph') === window.graph \
                    && document.activeElement.id === 'parameter-limit' && document.activeElement.value === '20'";
        assert_eq!(browser.evaluate(kept), true.into(), "what has not changed is left alone");
        is_clean(browser, &fake, "plan");
    });
}

#[test]
fn the_line_in_focus_stays_in_focus_when_its_table_is_drawn_again() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/", fake.url), WIDE);
        browser.wait(&shows("Values from the store"));
        browser.press("j");
        browser.press("j");
        let line = browser.evaluate("(window.line = document.activeElement).dataset.open");
        assert!(line.as_text().unwrap().starts_with("#/runs/"));
        browser.wait("!window.line.isConnected");
        assert_eq!(browser.evaluate("document.activeElement.dataset.open ?? ''"), line);
        is_clean(browser, &fake, "overview");
    });
}
