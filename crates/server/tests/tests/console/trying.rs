//! The form that tries a plan: its fields, its JSON, and numbers that JavaScript rounds.

use anabranch_testkit::Browser;
use serde_json::json;

use super::fake::Fake;
use super::outages::raised_nothing;
use super::samples::LARGE_ID;
use super::{WIDE, is_clean, shows, with_browser};

#[test]
fn a_plan_is_tried_with_a_form_and_with_json() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/plans/feed", fake.url), WIDE);
        browser.click("#parameter-limit");
        browser.type_text("20");
        browser.wait("document.querySelector('textarea').value.includes('\"limit\": 20')");
        browser.evaluate(
            "(() => { const text = document.querySelector('textarea'); const request = JSON.parse(text.value); \
             request.param_overrides.country = 'NL'; text.value = JSON.stringify(request); text.dispatchEvent(new Event('input')); })()",
        );
        assert_eq!(browser.evaluate("document.querySelector('#parameter-country').value"), "NL".into());
        browser.click("#try-deadline");
        browser.type_text("150ms");
        browser.press("Enter");
        let sent = fake.posted("/v1/plans/feed/run");
        assert_eq!(sent["body"], json!({"user_id": 1, "param_overrides": {"limit": 20, "country": "NL"}}));
        assert_eq!(sent["headers"]["request-timeout"], "150ms");
        browser.wait(&shows("degraded: 3 ledger entries"));
        browser.wait(&shows("<b>bold</b> claims"));
        assert_eq!(
            browser.evaluate("document.querySelectorAll('[aria-label=Answer] tbody tr').length").to_json(),
            "20"
        );
        is_clean(browser, &fake, "plan");
        browser.evaluate("document.querySelector('.answer a').click()");
        browser.wait(&shows("Failures and fallbacks"));
        // What is not JSON is told and not sent.
        browser.visit(&format!("{}/#/plans/feed", fake.url), WIDE);
        browser.wait("document.querySelector('textarea')");
        browser.evaluate(
            "(() => { const text = document.querySelector('textarea'); text.value = '{'; text.dispatchEvent(new Event('input')); })()",
        );
        browser.wait("document.querySelector('.try [role=alert]').innerText.includes('JSON')");
    });
}

#[test]
fn large_ids_keep_their_digits() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/plans/feed", fake.url), WIDE);
        browser.wait("document.querySelector('#try-user')");
        browser.evaluate("document.querySelector('#try-user').value = ''");
        browser.click("#try-user");
        browser.type_text("9007199254740995");
        browser.click("#parameter-limit");
        browser.type_text("20");
        browser.wait("document.querySelector('textarea').value.includes('9007199254740995')");
        // By the text, too.
        browser.evaluate(
            "(() => { const text = document.querySelector('textarea'); text.value = text.value.replace('740995', '740997'); \
             text.dispatchEvent(new Event('input')); })()",
        );
        assert_eq!(browser.evaluate("document.querySelector('#try-user').value"), "9007199254740997".into());
        browser.press("Enter");
        let sent = fake.posted("/v1/plans/feed/run");
        assert_eq!(
            sent["body"],
            json!({"user_id": 9_007_199_254_740_997_u64, "param_overrides": {"limit": 20}})
        );
        browser.wait(&shows("degraded: 3 ledger entries"));
        let id = browser.evaluate("document.querySelector('[aria-label=Answer] tbody td').innerText");
        assert_eq!(id, LARGE_ID.to_string().as_str().into());
        raised_nothing(browser);
    });
}

/// The request of the form, as text.
const TEXT: &str = "document.querySelector('textarea').value";

/// Types into an empty field.
fn fill(browser: &mut Browser, field: &str, text: &str) {
    browser.evaluate(&format!("document.querySelector({field:?}).value = ''"));
    browser.click(field);
    browser.type_text(text);
}

/// Replaces the request.
fn write(browser: &mut Browser, request: &str) {
    browser.evaluate(&format!(
        "(() => {{ const text = document.querySelector('textarea'); text.value = {request:?}; text.dispatchEvent(new Event('input')); }})()"
    ));
}

#[test]
fn an_id_that_is_not_an_integer_is_a_string() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        browser.visit(&format!("{}/#/plans/feed", fake.url), WIDE);
        browser.wait("document.querySelector('#try-user')");
        for (typed, sent) in [
            ("42", "42"),
            ("12e4", "\"12e4\""),
            ("1.5", "\"1.5\""),
            ("-3", "\"-3\""),
            ("007", "\"007\""),
            ("anna", "\"anna\""),
        ] {
            fill(browser, "#try-user", typed);
            let id = browser.evaluate(&format!("JSON.stringify(JSON.parse({TEXT}).user_id)"));
            assert_eq!(id, sent.into(), "{typed}");
        }
        // Another field leaves the id as it is written.
        write(browser, "{\"user_id\": \"12\"}");
        assert_eq!(browser.evaluate("document.querySelector('#try-user').value"), "12".into());
        fill(browser, "#parameter-limit", "20");
        let request = browser.evaluate(&format!("JSON.stringify(JSON.parse({TEXT}))"));
        assert_eq!(request, "{\"user_id\":\"12\",\"param_overrides\":{\"limit\":20}}".into());
        is_clean(browser, &fake, "plan");
    });
}

/// Browsers without exact integers: newer ones tell the literals of numbers, older ones do not.
const NO_RAW: &str = "JSON.rawJSON = undefined; true";
const NO_LITERALS: &str = "JSON.rawJSON = undefined; { const { parse } = JSON; \
    JSON.parse = (text, take) => (take ? parse(text, function (key, value) { return take.call(this, key, value); }) : parse(text)); } true";

#[test]
fn a_browser_that_rounds_large_integers_says_so() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        for old in [NO_RAW, NO_LITERALS] {
            browser.visit(&format!("{}/#/plans", fake.url), WIDE);
            browser.wait(&shows("5 plans"));
            browser.evaluate(old);
            browser.evaluate("location.hash = '#/plans/feed'");
            // A default of 1e300 is a float, which is not rounded.
            browser.wait("document.querySelector('#parameter-ceiling')");
            let before = browser.evaluate(TEXT);
            fill(browser, "#try-user", "9007199254740993");
            browser.wait(
                "document.querySelector('.try [role=alert]').innerText.includes('rounds large integers')",
            );
            assert_eq!(browser.evaluate(TEXT), before, "nothing is sent that nobody typed");
            fill(browser, "#parameter-ceiling", "1e200");
            browser.wait("document.querySelector('textarea').value.includes('1e+200')");
            assert_eq!(browser.evaluate("document.querySelector('.try [role=alert]').innerText"), "".into());
            raised_nothing(browser);
        }
    });
}
