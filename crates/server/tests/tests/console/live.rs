//! What changes while one looks, what is large, and what a user starts and stops.

use anabranch_testkit::Browser;
use serde_json::json;

use super::fake::Fake;
use super::samples::{self, COLUMNS, DATASET};
use super::{WIDE, is_clean, shows, with_browser};

/// The most elements of a page, however many runs or cells it shows.
const ELEMENTS_MOST: f64 = 3_000.0;

/// Counts the cells that change and the lines of cells that are drawn at once: in one piece of work, before clicks and frames
/// have their turn. For the page one look at the clock takes 5 ms, so that a frame has time for one strip.
const COUNT_WORK: &str = "window.clock = 0; performance.now = () => (window.clock += 5); window.lines = []; window.pieces = []; \
    { let drawn = 0, taken = 0; const { copyWithin } = Uint32Array.prototype, { putImageData } = CanvasRenderingContext2D.prototype, later = setTimeout, Bytes = Uint8Array; \
      Uint32Array.prototype.copyWithin = function (...rest) { drawn++; return copyWithin.apply(this, rest); }; \
      CanvasRenderingContext2D.prototype.putImageData = function (...rest) { window.lines.push(drawn); drawn = 0; return putImageData.apply(this, rest); }; \
      window.Uint8Array = function (of) { const bytes = new Bytes(of); \
        return of instanceof ArrayBuffer ? new Proxy(bytes, { get: (_, name) => { if (/^\\d/.test(name)) taken++; return bytes[name]; } }) : bytes; }; \
      window.setTimeout = (work, ms, ...rest) => { if (ms === 0) { window.pieces.push(taken); taken = 0; } return later(work, ms, ...rest); }; } true";

fn elements(browser: &mut Browser) -> f64 {
    browser.evaluate("document.querySelectorAll('*').length").as_number().unwrap()
}

#[test]
fn ten_thousand_runs_are_a_live_list() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/runs", fake.url), WIDE);
        browser.wait(&shows("10,000 runs"));
        let lines = browser.wait("document.querySelectorAll('.list-line').length").as_number().unwrap();
        assert!(lines < 100.0, "only lines that can be seen are elements: {lines}");
        fake.tell("/v1/events", "run", json!({
            "id": "018f3c2b000000-0001", "kind": "plan", "name": "fresh", "state": "running", "started_ms": 0,
            "duration_ms": null, "degraded": 0, "failures": 0, "rows": null, "has_detail": false,
        }));
        let first = "document.querySelector('[data-at=\"0\"]').innerText";
        browser.wait(&format!("{first}.includes('fresh') && {first}.includes('running')"));
        fake.tell("/v1/events", "run", json!({
            "id": "018f3c2b000000-0001", "kind": "plan", "name": "fresh", "state": "failed", "started_ms": 0,
            "duration_ms": 31.5, "degraded": 0, "failures": 1, "rows": null, "has_detail": false,
        }));
        browser.wait(&format!("{first}.includes('31.5 ms') && {first}.includes('failed')"));
        browser.evaluate("document.querySelector('.list').scrollTop = 1e9");
        browser.wait("document.querySelector('[data-at=\"9999\"]')");
        browser.evaluate(
            "(() => { const state = document.querySelector('select[aria-label=\"All states\"]'); state.value = 'stopped'; \
             state.dispatchEvent(new Event('change')); })()",
        );
        browser.wait("[...document.querySelectorAll('.list-line .chip')].every((chip) => chip.innerText === 'stopped')");
        assert_eq!(browser.evaluate("location.hash"), "#/runs?state=stopped".into());
        let elements = elements(browser);
        assert!(elements < ELEMENTS_MOST, "{elements}");
        is_clean(browser, &fake, "runs");
    });
}

/// Cancels the dataset, which asks once more.
fn cancel(browser: &mut Browser, fake: &Fake) {
    browser.click("button.danger");
    browser.wait("document.querySelector('button.danger').innerText.startsWith('Really')");
    browser.click("button.danger");
    fake.posted(&format!("/v1/datasets/{DATASET}/cancel"));
}

#[test]
fn a_million_cells_fill_while_one_looks_and_can_be_stopped() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/datasets/{DATASET}", fake.url), WIDE);
        let waiting = "document.querySelector('[data-state=\"0\"]').innerText";
        browser.wait(&format!("{waiting} === '613,500'"));
        browser.wait(&shows("Lines of a strip, from the top: topic, persona, subject, "));
        browser.wait("document.querySelector('.ends').innerText.includes('elapsed')");
        // A row of each state is where it should be, and the pointer tells.
        let left =
            browser.evaluate("+document.querySelector('.grid-canvas').dataset.left").as_number().unwrap();
        browser.point(".grid-canvas", left + 0.05, 1.0);
        browser.wait("document.querySelector('.readout').innerText.startsWith('row 0 · topic · ')");
        // By a canvas of its own: a picture that is read again and again draws a warning of the browser.
        let pixel = "(() => { const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true }); \
             const canvas = document.querySelector('.grid-canvas'); probe.drawImage(canvas, +canvas.dataset.left + 1, 1, 1, 1, 0, 0, 1, 1); \
             return [...probe.getImageData(0, 0, 1, 1).data].join(); })()";
        let finished = "(() => { const hex = getComputedStyle(document.documentElement).getPropertyValue('--green').trim().slice(1); \
                        return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)).join() + ',255'; })()";
        browser.evaluate("document.querySelector('[aria-label=\"zoom in\"]').click()");
        browser.evaluate("document.querySelector('.grid-scroll').scrollTop = 0");
        browser.wait(&format!("{pixel} === {finished}"));
        // The first rows are run again, says an event.
        let running =
            |count: &str| format!("document.querySelector('[data-state=\"1\"]').innerText === '{count}'");
        let tell = |done: usize, cells: serde_json::Value| {
            let mut progress = samples::progress("running", done, 190.0);
            progress["cells"] = cells;
            fake.tell(&format!("/v1/runs/{DATASET}/events"), "progress", progress);
        };
        let asked =
            |browser: &Browser| browser.requests().iter().filter(|url| url.contains("/cells?")).count();
        tell(43_000, json!([[0, 1, 1000 * COLUMNS.len()]]));
        browser.wait(&running("17,000"));
        browser.wait(&shows("43,000"));
        tell(43_001, json!([[0, 2, COLUMNS.len()], [70, 2, 5, 1, 5]]));
        browser.wait(&running("16,985"));
        assert_eq!(asked(browser), 1, "the cells were read once, then changed by events");
        // More changed than an event has room for, or events were lost: the cells are read again.
        tell(43_002, serde_json::Value::Null);
        browser.wait(&running("7,000"));
        tell(43_003, json!([[0, 1, 1000 * COLUMNS.len()]]));
        browser.wait(&running("17,000"));
        fake.tell(&format!("/v1/runs/{DATASET}/events"), "lost", json!({"lost": 3}));
        browser.wait(&running("7,000"));
        assert_eq!(asked(browser), 3);
        tell(43_004, json!([[0, 1, 1000 * COLUMNS.len()]]));
        browser.wait(&running("17,000"));
        // Zooming to the largest cells and back.
        for label in ["zoom in", "zoom in", "zoom in", "fit", "zoom out"] {
            browser.evaluate(&format!("document.querySelector('[aria-label={label:?}]').click()"));
        }
        browser.evaluate("document.querySelector('.grid-scroll').focus()");
        browser.press("ArrowRight");
        browser.press("ArrowRight");
        browser.press("ArrowDown");
        browser.wait("document.querySelector('.readout').innerText === 'row 1 · persona · running'");
        let elements = elements(browser);
        assert!(elements < ELEMENTS_MOST, "{elements}");

        cancel(browser, &fake);
        fake.set_state("stopped");
        fake.tell(&format!("/v1/runs/{DATASET}/events"), "stopping", json!({"calls_in_flight": 3}));
        browser.wait(&shows("stopping"));
        fake.tell(&format!("/v1/runs/{DATASET}/events"), "end", json!({"status": "stopped"}));
        browser.wait("document.querySelector('main .chip').innerText === 'stopped' && !document.querySelector('button.danger')");
        is_clean(browser, &fake, "dataset");
    });
}

#[test]
fn a_million_cells_are_taken_and_drawn_in_pieces() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        // In the same document, before there is a grid.
        browser.visit(&format!("{}/#/datasets", fake.url), WIDE);
        browser.evaluate(COUNT_WORK);
        browser.evaluate(&format!("location.hash = '#/datasets/{DATASET}'"));
        browser.wait("document.querySelector('[data-state=\"0\"]')?.innerText === '613,500'");
        let taken = "window.pieces.reduce((sum, cells) => sum + cells, 0)";
        let (all, most) = (samples::ROWS * COLUMNS.len(), 32_768.0);
        assert!(browser.evaluate(taken).as_number().unwrap() >= all as f64 - most, "pieces have cells");
        let longest = browser.evaluate("Math.max(...window.pieces)").as_number().unwrap();
        assert!(longest <= most, "{longest} cells at once");
        // A strip has a line per column, and each of them is copied once at this size.
        let strips = "Math.floor(document.querySelector('.grid-canvas').height / (2 * 10 + 4))";
        browser.wait(&format!("window.lines.filter((lines) => lines > 0).length >= {strips}"));
        let most = browser.evaluate("Math.max(...window.lines)").as_number().unwrap();
        assert!(most <= COLUMNS.len() as f64, "{most} lines in a frame");
        is_clean(browser, &fake, "dataset");
    });
}

/// Events and an answer come over connections of their own.
#[test]
fn changes_that_come_before_an_older_answer_are_kept() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/datasets/{DATASET}", fake.url), WIDE);
        let running =
            |count: &str| format!("document.querySelector('[data-state=\"1\"]').innerText === '{count}'");
        browser.wait(&format!("document.querySelector('[data-state=\"1\"]') && {}", running("7,000")));
        fake.hold_cells(true);
        let events = format!("/v1/runs/{DATASET}/events");
        fake.tell(&events, "lost", json!({"lost": 3}));
        let mut progress = samples::progress("running", 43_000, 190.0);
        progress["cells"] = json!([[0, 1, 1000 * COLUMNS.len()]]);
        fake.tell(&events, "progress", progress);
        browser.wait(&running("17,000"));
        fake.hold_cells(false);
        browser.wait(
            "performance.getEntriesByType('resource').filter(({ name }) => name.includes('/cells?')).length === 2",
        );
        // What the answer changes is changed back by the same piece of work, or a later one.
        browser.wait(&running("17,000"));
        fake.tell(&events, "progress", samples::progress("running", 43_001, 191.0));
        browser.wait(&shows("43,001"));
        browser.wait(&running("17,000"));
        is_clean(browser, &fake, "dataset");
    });
}
