//! Pictures of the console, for the README.

use std::path::Path;

use anabranch_testkit::View;

use super::fake::Fake;
use super::samples::{DATASET, run_id};
use super::{shows, with_browser};

/// `CONSOLE_IMAGES=1 cargo test -p anabranch-server --test tests console::images` writes `docs/images/*.png`.
#[test]
fn the_pages_have_pictures() {
    let fake = Fake::start(None);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    let is_wanted = std::env::var_os("CONSOLE_IMAGES").is_some();
    let pages = [
        ("run", format!("#/runs/{}", run_id(7)), false, 1000, "Events"),
        ("plan", "#/plans/feed".to_owned(), true, 860, "Try it"),
        ("dataset", format!("#/datasets/{DATASET}"), true, 900, "no reply within 30 s"),
        ("runs", "#/runs".to_owned(), false, 700, "10,000 runs"),
    ];
    with_browser(|browser| {
        for (name, page, dark, height, text) in &pages {
            browser.visit(&format!("{}/{page}", fake.url), View { width: 1280, dark: *dark });
            browser.wait(&shows(text));
            browser.evaluate(
                "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))",
            );
            let picture = browser.screenshot(1280, *height);
            assert!(picture.starts_with(b"\x89PNG"), "{name}");
            if is_wanted {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(folder.join(format!("console-{name}.png")), picture).unwrap();
            }
        }
    });
}
