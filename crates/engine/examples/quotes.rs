//! The best of 100 quotes: calls under a limit with a timeout and a fallback, a CPU step, a deadline, a timeline page.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::{sync::Arc, time::Duration};

use anabranch_engine::clock::Clock;
use anabranch_engine::limit::{Allowance, Limits};
use anabranch_engine::{Config, Engine, Flow, workload::BoxError};

/// Stands for a call over the network. Shops 13 and 77 do not answer.
async fn ask(clock: Arc<dyn Clock>, shop: u64) -> Result<u64, BoxError> {
    let time = if shop == 13 || shop == 77 { 60_000 } else { 5 + shop % 7 };
    clock.sleep_until(clock.now() + Duration::from_millis(time)).await;
    Ok(1_000 - shop)
}

pub(crate) async fn best_quote(engine: &Engine) -> Result<(String, String), BoxError> {
    let limits = Limits::new(Arc::clone(engine.clock()));
    let shops = limits.add("shops", Allowance::fixed(10))?;
    let mut flow = Flow::new("quotes for request 7f3a");
    flow.limits(&limits).deadline(Duration::from_secs(5));
    let mut quotes = Vec::new();
    for shop in 0..100 {
        let clock = Arc::clone(engine.clock());
        let node = flow.node(format!("shop {shop}")).limit(shops).timeout(Duration::from_millis(50));
        quotes.push(node.fallback(u64::MAX).future((), move |()| ask(clock, shop)));
    }
    let best = flow.node("best").job(quotes, |quotes, _| Ok(quotes.into_iter().min()));
    let trace = flow.trace();
    let mut results = flow.run(engine).await?;
    let fell_back = results.report().fell_back;
    Ok((format!("best: {:?}, {fell_back} fell back", results.take(best)?), trace.html().unwrap_or_default()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let (best, page) = best_quote(&Engine::new(&Config::default())?).await?;
    println!("{best}");
    Ok(std::fs::write(std::env::temp_dir().join("quotes.html"), page)?)
}
