//! Pictures of the console, for the README and to look at: a real server that has done what `anabranch demo` does.

use std::path::PathBuf;

use anabranch_testkit::{Browser, View};

use super::demo::Demo;
use super::{shows, with_browser};

/// The size of pictures: of a screen, and of a phone.
const SCREEN: (i64, i64) = (1280, 900);
const PHONE: (i64, i64) = (375, 812);

/// The folder that a variable names, where pictures are wanted.
fn wanted(variable: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os(variable)?);
    // Relative to the repository.
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    Some(folder)
}

fn picture(browser: &mut Browser, (width, height): (i64, i64)) -> Vec<u8> {
    browser.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
    let picture = browser.screenshot(width, height);
    assert!(picture.starts_with(b"\x89PNG"));
    picture
}

/// `CONSOLE_IMAGES=docs/images cargo test -p anabranch-server --test tests console::images` writes the pictures of the README,
/// `CONSOLE_GALLERY=FOLDER` those of all pages: wide and narrow, light and dark.
#[test]
fn the_pages_have_pictures() {
    let (images, gallery) = (wanted("CONSOLE_IMAGES"), wanted("CONSOLE_GALLERY"));
    let demo = Demo::start();
    let late = demo.work();
    // Enough that a build is still under way while its picture is taken.
    let rows = if images.is_some() || gallery.is_some() { 6_000 } else { 60 };
    let dataset = demo.submit(rows);
    let dataset = format!("datasets/{dataset}");
    with_browser(|browser| {
        let under_way = "document.querySelector('main .chip')?.innerText === 'complete' || \
            parseInt(document.querySelector('.tiles dd')?.innerText.replaceAll(',', '')) >= 3000";
        browser.visit(&format!("{}/#/{dataset}", demo.url()), View { width: SCREEN.0, dark: true });
        browser.wait(under_way);
        browser.wait("document.querySelector('.grid-canvas')");
        let dataset_picture = picture(browser, SCREEN);
        let pages = [
            ("overview", String::new(), "Values from the store"),
            ("runs", "runs".to_owned(), "feed_stalled"),
            ("run", format!("runs/{late}"), "Ledger"),
            ("plans", "plans".to_owned(), "new_faces"),
            ("plan", "plans/feed".to_owned(), "Try it"),
            ("recipes", "recipes".to_owned(), "page.gz"),
            ("recipe", "recipes/page.gz".to_owned(), "stored"),
            ("datasets", "datasets".to_owned(), "support_tickets"),
            ("dataset", dataset.clone(), "Sample rows"),
        ];
        for (name, page, text) in &pages {
            for (size, dark) in [(SCREEN, false), (SCREEN, true), (PHONE, false), (PHONE, true)] {
                let is_for_readme = size == SCREEN
                    && [("run", false), ("plan", true), ("runs", false)].contains(&(name, dark));
                if gallery.is_none() && !is_for_readme {
                    continue;
                }
                browser.visit(&format!("{}/#/{page}", demo.url()), View { width: size.0, dark });
                browser.wait(&shows(text));
                let picture = picture(browser, size);
                if let Some(folder) = &gallery {
                    let theme = if dark { "dark" } else { "light" };
                    std::fs::write(folder.join(format!("{name}-{}-{theme}.png", size.0)), &picture).unwrap();
                }
                if let Some(folder) = images.as_ref().filter(|_| is_for_readme) {
                    std::fs::write(folder.join(format!("console-{name}.png")), picture).unwrap();
                }
            }
        }
        if let Some(folder) = &images {
            std::fs::write(folder.join("console-dataset.png"), dataset_picture).unwrap();
        }
    });
}
