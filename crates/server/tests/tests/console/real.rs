//! The console with the real server behind it: a plan is run from the page, and its run looked at.

use super::{WIDE, shows, with_browser};
use crate::plans::Shop;

#[test]
fn a_real_plan_is_tried_and_its_run_is_shown() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let shop = runtime.block_on(Shop::start());
    let url = shop.http.server.url;
    with_browser(|browser| {
        browser.visit(&format!("{url}/#/plans"), WIDE);
        browser.wait(&shows("4 plans"));
        browser.visit(&format!("{url}/#/plans/guarded"), WIDE);
        browser.wait("document.querySelector('.graph .node')");
        browser.wait("document.querySelector('textarea').value.includes('candidates')");
        browser.click("button.primary");
        browser.wait(&shows("degraded: 1 ledger entry"));
        assert_eq!(browser.complaints(), [] as [String; 0]);
        browser.evaluate("document.querySelector('.answer a').click()");
        browser.wait(&shows("Failures and fallbacks"));
        browser.wait("document.querySelector('.run-timeline .bar.fell_back')");
        browser.wait(&shows("timeout"));
        assert_eq!(browser.complaints(), [] as [String; 0]);
        browser.wait("document.querySelector('[aria-label=Ledger] tbody th').innerText");
        let run = browser.evaluate("location.hash.split('/').at(-1)");
        browser.visit(&format!("{url}/#/runs/{}/timeline", run.as_text().unwrap()), WIDE);
        browser.evaluate("window.ready = 0; addEventListener('message', () => { window.ready += 1; }); true");
        browser.wait("document.querySelector('iframe.file') && frames.length === 1");
        // By itself it is a page with its styles and its script.
        browser.visit(&format!("{url}/v1/runs/{}/timeline.html", run.as_text().unwrap()), WIDE);
        browser.wait("document.querySelector('svg') && getComputedStyle(document.body).fontFamily.includes('system-ui')");
        assert_eq!(browser.complaints(), [] as [String; 0]);
        for page in ["", "runs", "recipes"] {
            browser.visit(&format!("{url}/#/{page}"), WIDE);
            browser.wait("document.querySelector('h1').innerText && document.querySelector('main .panel')");
        }
        browser.visit(&format!("{url}/#/runs"), WIDE);
        browser.wait("document.querySelector('.list-line').innerText.includes('guarded')");
        assert_eq!(browser.complaints(), [] as [String; 0]);
    });
}
