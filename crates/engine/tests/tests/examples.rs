//! The examples, run on virtual time.

use anabranch_engine::Config;
use anabranch_testkit::{Leftovers, Sim};

#[allow(dead_code, reason = "its `main` runs on real time")]
#[path = "../../examples/quotes.rs"]
mod quotes;

#[test]
fn quotes_asks_a_hundred_shops_under_a_limit_and_draws_the_timeline() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let (best, page) = sim.block_on(quotes::best_quote(&engine)).unwrap();
    assert_eq!(best, "best: Some(901), 2 fell back");
    assert_eq!(sim.settle(), Leftovers { tasks: 0, jobs: 0 });
    assert!(page.contains("<title>quotes for request 7f3a</title>"));
    for text in ["shop 13", "shop 99", "best", "fell back because of its timeout"] {
        assert!(page.contains(text), "{text}");
    }
}

/// The page about the engine shows parts of it.
#[test]
fn the_page_shows_lines_of_quotes() {
    let page = include_str!("../../../../docs/engine.md");
    let shown = page.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<&str> = include_str!("../../examples/quotes.rs").lines().map(str::trim).collect();
    for line in shown.lines() {
        let code = line.split("//").next().unwrap().trim();
        assert!(lines.contains(&code), "{code}");
    }
}

#[test]
fn quotes_fits_on_a_page() {
    assert!(include_str!("../../examples/quotes.rs").lines().count() <= 40);
}
