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
        for page in ["", "runs", "recipes"] {
            browser.visit(&format!("{url}/#/{page}"), WIDE);
            browser.wait("document.querySelector('h1').innerText && document.querySelector('main .panel')");
        }
        browser.visit(&format!("{url}/#/runs"), WIDE);
        browser.wait("document.querySelector('.list-line').innerText.includes('guarded')");
        assert_eq!(browser.complaints(), [] as [String; 0]);
    });
}
