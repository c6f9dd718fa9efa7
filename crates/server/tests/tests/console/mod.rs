//! The console in a real browser.

mod demo;
mod fake;
mod images;
mod keyboard;
mod lists;
mod live;
mod loads;
mod outages;
mod phone;
mod real;
mod samples;
mod sites;
mod trying;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use anabranch_testkit::{Browser, View};

use fake::Fake;
use samples::{DATASET, run_id};

const WIDE: View = View { width: 1440, dark: false };

/// Tests that run at the same time take turns with one browser, which ends with the last of them.
fn with_browser(work: impl FnOnce(&mut Browser)) {
    static SHARED: Mutex<Weak<Mutex<Browser>>> = Mutex::new(Weak::new());
    let browser = {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let browser = Arc::new(Mutex::new(Browser::start()));
            *shared = Arc::downgrade(&browser);
            browser
        })
    };
    work(&mut browser.lock().unwrap_or_else(PoisonError::into_inner));
}

/// An expression that is true once the page shows a text.
fn shows(text: &str) -> String {
    format!("document.getElementById('main').innerText.includes({text:?})")
}

/// Neither a complaint, nor a request to another server, nor markup out of data.
fn is_clean(browser: &mut Browser, fake: &Fake, page: &str) {
    assert_eq!(browser.complaints(), [] as [String; 0], "{page}");
    for request in browser.requests() {
        assert!(request.starts_with(&fake.url), "{page} asks for {request}");
    }
    assert_eq!(browser.evaluate("typeof window.harmed"), "undefined".into(), "{page}");
    assert_eq!(browser.evaluate("document.querySelectorAll('main img, main b b').length").to_json(), "0");
}

/// Each page, and a text that it has.
fn pages() -> [(String, &'static str); 11] {
    let page = |path: &str, text| (path.to_owned(), text);
    [
        page("#/", "2 stored values are damaged"),
        page("#/runs", "10,000 runs"),
        page(&format!("#/runs/{}", run_id(7)), "Ledger: degraded parts of the answer"),
        page(&format!("#/runs/{}", run_id(23)), "connection reset by peer <img src=x"),
        page(&format!("#/runs/{DATASET}"), "Cells per second"),
        page("#/plans", "5 plans"),
        page("#/plans/feed", "128,400"),
        page("#/recipes", "report.gz"),
        page("#/recipes/report.gz", "evicted"),
        page("#/datasets", "42,000 of 100,000"),
        page(&format!("#/datasets/{DATASET}"), "no reply within 30 s"),
    ]
}

#[test]
fn every_page_shows_what_the_server_has() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        let views = [1440, 375].into_iter().flat_map(|width| [false, true].map(|dark| View { width, dark }));
        for view in views {
            for (page, text) in pages() {
                browser.visit(&format!("{}/{page}", fake.url), view);
                browser.wait(&shows(text));
                browser.wait("document.querySelector('h1').innerText");
                is_clean(browser, &fake, &page);
                let fits = browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth");
                assert_eq!(fits, true.into(), "{page} is wider than {view:?}");
            }
        }
    });
}

#[test]
fn the_page_is_as_light_as_the_system_until_it_is_switched() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        let ground = "getComputedStyle(document.body).backgroundColor";
        browser.visit(&fake.url, View { width: 1440, dark: true });
        assert_eq!(browser.evaluate(ground), "rgb(13, 17, 23)".into());
        browser.look(WIDE);
        assert_eq!(browser.evaluate(ground), "rgb(255, 255, 255)".into());
        browser.press("t");
        assert_eq!(browser.evaluate(ground), "rgb(13, 17, 23)".into());
        browser.visit(&fake.url, WIDE);
        assert_eq!(browser.evaluate(ground), "rgb(13, 17, 23)".into(), "it is remembered");
        browser.click("#theme");
        assert_eq!(browser.evaluate(ground), "rgb(255, 255, 255)".into());
    });
}

/// Until what was planned is drawn.
const FRAMES: &str = "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(resolve))))";

/// The texts of a timeline that a mark is in, or that begin or end outside of it.
const CROSSED: &str = "[...document.querySelectorAll('.run-timeline .lane')].filter((lane) => { \
    const text = lane.querySelector('.remark').getBoundingClientRect(), mark = lane.querySelector('.timeout')?.getBoundingClientRect(); \
    const plot = document.querySelector('.run-timeline .ground').getBoundingClientRect(); \
    return text.left < plot.left || text.right > plot.right + 1 || (mark && mark.left > text.left && mark.left < text.right); })\
    .map((lane) => lane.textContent).join('; ')";

#[test]
fn a_run_shows_its_failures_before_everything_else() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/runs/{}", fake.url, run_id(7)), WIDE);
        browser.wait("document.querySelector('.run-timeline .deadline')");
        let titles = browser
            .evaluate("[...document.querySelectorAll('main h2')].map((title) => title.innerText).join()");
        assert_eq!(
            titles,
            "Failures and fallbacks,Ledger: degraded parts of the answer,Timeline,Graph,Request,Events"
                .into()
        );
        let counts = "['.bar.fell_back', '.bar.failed', '.edge', '.timeout', '.deadline', '.lane'].map((part) => \
                      document.querySelectorAll(`.run-timeline ${part}`).length).join()";
        assert_eq!(browser.evaluate(counts), "1,1,9,2,1,13".into());
        let nodes = "[...document.querySelectorAll('[aria-label=Ledger] tbody th')].map((node) => node.innerText).join()";
        assert_eq!(browser.evaluate(nodes), "recent_items recent,media,hydrate (lookup)".into());
        // A sign per kind of bar that is drawn: the dropped node has none.
        let legend = "[...document.querySelectorAll('[aria-label=Timeline] .legend .key')].map((key) => key.innerText).join()";
        let signs = "queued,waits,computes,fell back,failed,critical path,timeout,deadline";
        assert_eq!(browser.evaluate(legend), signs.into());
        let graph = "['.node', '.wire', '.wire.path', '.node.bad', '.node.soft', '.node.gone'].map((part) => \
                     document.querySelectorAll(`.graph ${part}`).length).join()";
        assert_eq!(browser.evaluate(graph), "13,15,7,1,1,1".into());
        // A timeout is drawn where it is: 20 ms behind the start, at the end of its bar.
        let gap = "(() => { const lane = document.querySelector('.run-timeline [data-node=n2]'), bar = lane.querySelector('.bar'), \
                   line = lane.querySelector('.timeout'); return Math.abs(+bar.getAttribute('x') + +bar.getAttribute('width') - line.getAttribute('x1')) < 2; })()";
        assert_eq!(browser.evaluate(gap), true.into());
        // A text is beside the marks of its line, and inside of the picture.
        for view in [WIDE, View { width: 375, dark: false }] {
            browser.look(view);
            browser.wait("document.querySelector('.run-timeline').clientWidth <= innerWidth");
            browser.evaluate(FRAMES);
            assert_eq!(browser.evaluate(CROSSED), "".into(), "{view:?}");
        }
        browser.look(WIDE);
        // The graph does not overlap itself.
        let apart = "(() => { const boxes = [...document.querySelectorAll('.graph .node rect')].map((box) => box.getBoundingClientRect()); \
                     return boxes.every((one, at) => boxes.slice(at + 1).every((other) => one.right < other.left || other.right < one.left \
                     || one.bottom < other.top || other.bottom < one.top)); })()";
        assert_eq!(browser.evaluate(apart), true.into());
        is_clean(browser, &fake, "run");
    });
}

/// A timeline of 10 ms with a deadline: its texts about the deadline, and the number of its lines.
const DEADLINES: &str = "import('/console/timeline.js').then(async ({ Timeline }) => { const told = []; \
    for (const deadline of [null, 12, 150]) { \
      const node = { id: 'n0', queued_ms: 0, start_ms: 0, end_ms: 10, state: 'finished', reason: null, timeout_ms: null, critical: true }; \
      const { element } = new Timeline({ wall_ms: 10, nodes: [node] }, new Map(), deadline); \
      document.getElementById('main').append(element); \
      while (!element.querySelector('.lane')) await new Promise(requestAnimationFrame); \
      told.push([...element.querySelectorAll('.deadline')].map((mark) => `${mark.textContent}, ${mark.querySelectorAll('line').length}`).join()); } \
    return told.join('; '); })";

#[test]
fn a_deadline_is_drawn_wherever_it_is() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/nothing", fake.url), WIDE);
        let told = browser.evaluate(DEADLINES);
        assert_eq!(told, "; deadline 12 ms, 1; deadline 150 ms →, 0".into());
        is_clean(browser, &fake, "timeline");
    });
}

/// Notes what a file in a frame says of itself.
const HEAR_FILES: &str =
    "window.told = []; addEventListener('message', ({ data }) => { if (data.color) told.push(data); }); true";

#[test]
fn files_open_in_the_page_and_reach_nothing() {
    for token in [None, Some("correct horse")] {
        let fake = Fake::start(token);
        let entry = if token.is_some() { "#token=correct%20horse&/" } else { "#/" };
        with_browser(|browser| {
            let run = run_id(7);
            for (page, link) in
                [(format!("runs/{run}"), "Timeline page"), (format!("datasets/{DATASET}"), "Report")]
            {
                browser.visit(&format!("{}/{entry}{page}", fake.url), WIDE);
                browser.evaluate(HEAR_FILES);
                let anchor = format!(
                    "[...document.querySelectorAll('a.button')].find((link) => link.innerText === {link:?})"
                );
                browser.wait(&anchor);
                browser.evaluate(&format!("{anchor}.click()"));
                browser.wait("told.length");
                let told = browser.evaluate("JSON.stringify(told[0])");
                assert_eq!(
                    told,
                    "{\"color\":\"rgb(1, 2, 3)\",\"kept\":\"refused\",\"origin\":\"null\",\"theme\":\"system\"}".into(),
                    "its styles and scripts work, without the token and the origin of the page"
                );
                let hidden = "(() => { try { return String(frames[0].document?.title); } catch { return 'refused'; } })()";
                assert_eq!(browser.evaluate(hidden), "refused".into());
                browser.press("t");
                browser.wait("told.at(-1).theme === 'dark'");
                browser.press("t");
                browser.wait("told.at(-1).theme === 'light'");
                browser.evaluate("localStorage.clear()");
                is_clean(browser, &fake, link);
                browser.press("Escape");
                browser.wait(&format!("location.hash === '#/{page}'"));
            }
        });
    }
}

#[test]
fn the_console_can_be_used_without_a_mouse() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&fake.url, WIDE);
        browser.press("Tab");
        assert_eq!(
            browser.evaluate("document.activeElement.className"),
            "skip".into(),
            "the first link skips the menu"
        );
        browser.press("?");
        browser.wait("document.getElementById('help').open");
        browser.press("Escape");
        browser.wait("!document.getElementById('help').open");
        for (key, hash) in
            [("r", "#/runs"), ("p", "#/plans"), ("c", "#/recipes"), ("d", "#/datasets"), ("o", "#/")]
        {
            browser.press("g");
            browser.press(key);
            browser.wait(&format!("location.hash === {hash:?}"));
        }
        browser.press("g");
        browser.press("r");
        browser.wait(&shows("10,000 runs"));
        browser.press("j");
        browser.press("ArrowDown");
        browser.press("j");
        browser.press("k");
        browser.wait("document.querySelector('[data-at=\"1\"]').getAttribute('aria-selected') === 'true'");
        let told = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).dataset.at";
        browser.wait(&format!("{told} === '1'"));
        browser.press("Enter");
        browser.wait(&format!("location.hash === '#/runs/{DATASET}'"));
        // The page follows its address a little later.
        browser.wait("(document.querySelector('#main h1')?.textContent ?? 'Runs') !== 'Runs'");
        browser.press("Escape");
        browser.wait("location.hash === '#/runs'");
        browser.wait(&shows("10,000 runs"));
        browser.press("/");
        browser.wait("document.activeElement.type === 'search'");
        browser.type_text("notify");
        browser.wait(&shows("1,882 of 10,000 runs"));
        browser.press("Escape");
        browser.wait("document.activeElement.type !== 'search'");
        browser.press("g");
        browser.press("p");
        browser.wait(&shows("5 plans"));
        browser.press("j");
        browser.press("j");
        browser.press("Enter");
        browser.wait("location.hash === '#/plans/home'");
        is_clean(browser, &fake, "keys");
    });
}

#[test]
fn a_token_is_asked_for_and_leaves_the_address() {
    let fake = Fake::start(Some("correct horse"));
    with_browser(|browser| {
        browser.visit(&format!("{}/#/plans", fake.url), WIDE);
        browser.wait(&shows("anabranch token"));
        browser.wait("document.activeElement.id === 'token'");
        browser.type_text("wrong");
        browser.press("Enter");
        browser.wait(&shows("does not know this token"));
        browser.wait("document.activeElement.id === 'token'");
        browser.type_text("correct horse");
        browser.press("Enter");
        browser.wait(&shows("5 plans"));
        browser.click("#sign-out");
        browser.wait(&shows("anabranch token"));

        browser.visit(&format!("{}/#token=correct%20horse&/datasets", fake.url), WIDE);
        browser.wait(&shows("42,000 of 100,000"));
        assert_eq!(browser.evaluate("location.hash"), "#/datasets".into());
        let kept = "[sessionStorage.getItem('anabranch-token'), localStorage.length, document.cookie].join()";
        assert_eq!(browser.evaluate(kept), "correct horse,0,".into(), "the tab has it, and nothing else");
        is_clean(browser, &fake, "sign-in");
    });
}
