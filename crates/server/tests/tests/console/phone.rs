//! Pages on a phone: nothing is too small to read or to touch.

use anabranch_testkit::View;

use super::fake::Fake;
use super::{is_clean, pages, shows, with_browser};

const PHONE: View = View { width: 375, dark: false };

/// Visible buttons, fields and links of the menu that are lower than 24 px.
const LOW: &str = "[...document.querySelectorAll('#nav a, .brand, button, .button, select, input, summary')]\
    .map((target) => [target, target.getBoundingClientRect()]).filter(([, box]) => box.width > 0 && box.height < 24)\
    .map(([target, box]) => `${target.outerHTML.slice(0, 80)}: ${box.height}`).join('\\n')";

/// Visible texts that are smaller than 12 px, as they are drawn: a picture may be made smaller.
const SMALL: &str = "(() => { const small = []; const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); \
    for (let text; (text = walk.nextNode());) { const of = text.parentElement, box = of.getBoundingClientRect(); \
      if (!text.data.trim() || !box.width || !box.height || of.closest('noscript, title, script')) continue; \
      const scale = of.closest('svg')?.getScreenCTM()?.a ?? 1, size = parseFloat(getComputedStyle(of).fontSize) * scale; \
      if (size < 11.99) small.push(`${of.tagName} ${of.getAttribute('class') ?? ''} ${size}: ${text.data.slice(0, 40)}`); } \
    return [...new Set(small)].slice(0, 12).join('\\n'); })()";

#[test]
fn pages_can_be_read_and_touched() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        for (page, text) in pages() {
            browser.visit(&format!("{}/{page}", fake.url), PHONE);
            browser.wait(&shows(text));
            browser.wait("document.querySelector('h1').innerText");
            assert_eq!(browser.evaluate(LOW), "".into(), "{page}: too low");
            assert_eq!(browser.evaluate(SMALL), "".into(), "{page}: too small");
            is_clean(browser, &fake, &page);
        }
    });
}
