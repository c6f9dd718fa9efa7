//! The element in focus: it has a ring, and nothing cuts the ring off.

use anabranch_testkit::View;

use super::fake::Fake;
use super::samples::{DATASET, run_id};
use super::{is_clean, shows, with_browser};

/// The most steps through a page.
const STEPS_MOST: usize = 100;

/// What is wrong with the element in focus; `end` if there is none, or it had the focus before. Boxes of graphs have thicker borders instead of rings.
const WRONG: &str = "(() => { const focus = document.activeElement, box = focus.getBoundingClientRect(), style = getComputedStyle(focus); \
    if (focus === document.body || focus.wasHere) return 'end'; \
    focus.wasHere = true; \
    const name = focus.outerHTML.slice(0, 100), isBox = focus.matches('g'); \
    if (!isBox && style.outlineStyle === 'none') return `no ring: ${name}`; \
    const ring = isBox ? 0 : parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset); \
    for (let around = focus.parentElement; around; around = around.parentElement) { \
      if (getComputedStyle(around).overflowX === 'visible') continue; \
      const place = around.getBoundingClientRect(), left = place.left + around.clientLeft, top = place.top + around.clientTop; \
      const isCut = box.left - ring < left - 0.5 || box.top - ring < top - 0.5 || box.bottom + ring > top + around.clientHeight + 0.5 \
        || (box.width <= around.clientWidth && box.right + ring > left + around.clientWidth + 0.5); \
      if (isCut) return `cut off by ${around.className || around.id}: ${name}`; } \
    return ''; })()";

#[test]
fn the_element_in_focus_can_be_seen() {
    let fake = Fake::start(None);
    with_browser(|browser| {
        for (page, text) in [
            ("#/runs".to_owned(), "10,000 runs"),
            (format!("#/runs/{}", run_id(7)), "Ledger: degraded parts of the answer"),
            ("#/plans".to_owned(), "5 plans"),
            ("#/plans/feed".to_owned(), "128,400"),
            ("#/recipes/report.gz".to_owned(), "evicted"),
            (format!("#/datasets/{DATASET}"), "no reply within 30 s"),
        ] {
            for width in [1440, 375] {
                browser.visit(&format!("{}/{page}", fake.url), View { width, dark: false });
                browser.wait(&shows(text));
                let mut steps = 0;
                while steps < STEPS_MOST {
                    browser.press("Tab");
                    let wrong = browser.evaluate(WRONG);
                    if wrong == "end".into() {
                        break;
                    }
                    assert_eq!(wrong, "".into(), "{page} at {width} pixels");
                    steps += 1;
                }
                assert!((10..STEPS_MOST).contains(&steps), "{page}: {steps} elements can have the focus");
                is_clean(browser, &fake, &page);
            }
        }
    });
}
