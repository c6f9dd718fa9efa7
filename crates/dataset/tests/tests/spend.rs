//! The spend of builds: counted over all runs, priced, and kept within a budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use anabranch_dataset::output::{Figures, FolderStatus, Metadata};
use anabranch_dataset::{Budget, BuildOptions, BuildReport, Cap, JournalPlace, StopReason};
use anabranch_model::Error;
use anabranch_testkit::Sim;
use expect_test::expect;

use crate::kit::{ms, scratch};
use crate::resume::{Case, CountingModel, echo};

const TWO: &str = "
prices: {m: {input: 100, output: 1000}}
columns:
  - {name: n, column_type: sampler, sampler_type: uuid, params: {}}
  - {name: a, column_type: llm-text, model_alias: m, prompt: 'A {{ n }}'}
  - {name: b, column_type: llm-text, model_alias: m, prompt: 'B {{ a }}'}
";

/// Calls that can be in flight at once: the first value of a limit that nothing was learned about.
const WINDOW: u64 = 32;

fn metadata(case: &Case) -> Metadata {
    FolderStatus::read(&case.out).unwrap().metadata
}

fn calls(report: &BuildReport) -> (u64, u64) {
    (report.models["m"].calls, report.models_of_run["m"].calls)
}

fn limited(case: &Case, rows: u64, budget: Budget) -> BuildOptions {
    BuildOptions { budget, ..case.options(rows) }
}

fn stopped_by(report: &BuildReport) -> Option<Cap> {
    match report.stopped {
        Some(StopReason::Budget(cap)) => Some(cap),
        None => None,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn calls_are_counted_by_column_and_priced() {
    let case = Case::new("spend_columns", TWO, echo());
    case.build(case.options(30)).unwrap();
    let found = metadata(&case);
    // 10 tokens in and 5 out per call, at 100 and 1000 per million.
    let price = 30.0 * (10.0 * 100.0 + 5.0 * 1000.0) / 1e6;
    for column in ["a", "b"] {
        let spend = &found.spent[column];
        assert_eq!((&*spend.alias, &*spend.model, spend.calls, spend.reused), ("m", "counting", 30, 0));
        assert_eq!((spend.input_tokens, spend.output_tokens), (300, 150));
        assert!((spend.cost.unwrap() - price).abs() < 1e-12, "{:?}", spend.cost);
    }
    assert_eq!(found.models["m"].calls, 60);
    let lines: Vec<(&str, u64, u64)> =
        found.calls.iter().map(|line| (&*line.column, line.figures.calls, line.figures.cells)).collect();
    assert_eq!(lines, [("a", 30, 30), ("b", 30, 30)]);
    // `A ` and a UUID.
    assert_eq!(found.calls[0].figures.prompt_bytes, 30 * 34);
}

#[test]
fn replies_that_do_not_fit_are_calls_and_not_cells() {
    let config = "
columns:
  - {name: n, column_type: sampler, sampler_type: uuid, params: {}}
  - name: a
    column_type: llm-structured
    model_alias: m
    prompt: 'A {{ n }}'
    output_format: {type: object, properties: {x: {type: integer}}, required: [x]}
";
    let model = CountingModel::new(|request| {
        Ok(if request.attempt < 2 { "no".to_owned() } else { "{\"x\": 1}".to_owned() })
    });
    let case = Case::new("spend_corrections", config, model);
    case.build(case.options(10)).unwrap();
    let Figures { calls, cells, .. } = metadata(&case).calls[0].figures;
    assert_eq!((calls, cells), (30, 10));
    assert_eq!(metadata(&case).spent["a"].cost, None, "there is no price");
}

#[test]
fn a_build_that_is_continued_adds_to_its_spend() {
    let mut case = Case::new("spend_continued", TWO, echo());
    let first = case.build(case.options(20)).unwrap();
    assert_eq!(calls(&first), (40, 40));
    let more = case.build(case.options(50)).unwrap();
    assert_eq!(calls(&more), (100, 60));
    let (found, status) = (metadata(&case), FolderStatus::read(&case.out).unwrap().build);
    assert_eq!((found.spent["a"].calls, status.spent["b"].calls), (50, 50));
    assert!(found.elapsed_ms <= status.elapsed_ms, "both are of all runs");
    // A build that replaces it has spent nothing: all replies are there.
    let anew = case.build(BuildOptions { replace: true, ..case.options(50) }).unwrap();
    assert_eq!((calls(&anew), anew.models["m"].reused), ((0, 0), 100));
    case.seed = 1;
    let anew = case.build(BuildOptions { replace: true, ..case.options(10) }).unwrap();
    assert_eq!(calls(&anew), (20, 20));
}

#[test]
fn builds_that_share_a_journal_are_counted_apart() {
    let mut case = Case::new("spend_shared", TWO, echo());
    let journal = JournalPlace::Folder(case.folder.join("replies"));
    let (first, second) = (case.folder.join("first"), case.folder.join("second"));
    let mut build = |out: &std::path::Path, seed: u64, rows: u64| {
        case.seed = seed;
        let options = BuildOptions { journal: journal.clone(), out: out.to_owned(), ..case.options(rows) };
        calls(&case.build(options).unwrap())
    };
    assert_eq!(build(&first, 1, 10), (20, 20));
    assert_eq!(build(&second, 2, 5), (10, 10));
    assert_eq!(build(&first, 1, 20), (40, 20), "without the calls of the other dataset");
    assert_eq!(build(&second, 2, 20), (40, 30));
}

#[test]
fn without_a_journal_the_last_report_counts() {
    let case = Case::new("spend_without", TWO, echo());
    let without = |rows| BuildOptions { journal: JournalPlace::Nowhere, ..case.options(rows) };
    assert_eq!(calls(&case.build(without(20)).unwrap()), (40, 40));
    assert_eq!(calls(&case.build(without(30)).unwrap()), (60, 20));
    assert_eq!(calls(&case.build(case.options(40)).unwrap()), (80, 20), "with a journal from here on");
    assert_eq!(calls(&case.build(without(50)).unwrap()), (100, 20));
}

#[test]
fn the_calls_stop_at_the_cap() {
    let case = Case::new("spend_calls", TWO, echo());
    let budget = Budget { max_calls: Some(37), ..Budget::default() };
    let stopped = case.build(limited(&case, 100, budget)).unwrap();
    assert_eq!(stopped_by(&stopped), Some(Cap::Calls(37)));
    assert_eq!((case.model.calls(), calls(&stopped)), (37, (37, 37)));
    assert_eq!((stopped.dropped, stopped.error_count), (0, 0), "no row fails because of a budget");
    // The same budget again: no call.
    let again = case.build(limited(&case, 100, budget)).unwrap();
    assert_eq!((stopped_by(&again), case.model.calls()), (Some(Cap::Calls(37)), 0));
    let status = FolderStatus::read(&case.out).unwrap().build;
    expect!["the budget of 37 calls (--max-calls) is spent"].assert_eq(&status.reason.unwrap());
    assert_eq!(status.raise.as_deref(), Some("--max-calls"));
    // A higher one, which is just enough.
    let budget = Budget { max_calls: Some(200), ..Budget::default() };
    let done = case.build(limited(&case, 100, budget)).unwrap();
    assert_eq!((stopped_by(&done), done.rows, case.model.calls()), (None, 100, 163));
    assert_eq!(calls(&done), (200, 163));
}

#[test]
fn a_conversation_that_has_begun_is_finished() {
    let config = "
columns:
  - {name: n, column_type: sampler, sampler_type: uuid, params: {}}
  - name: a
    column_type: llm-structured
    model_alias: m
    prompt: 'A {{ n }}'
    output_format: {type: object, properties: {x: {type: integer}}, required: [x]}
";
    let model = CountingModel::new(|request| {
        Ok(if request.attempt < 2 { "no".to_owned() } else { "{\"x\": 1}".to_owned() })
    });
    let case = Case::new("spend_conversations", config, model);
    let budget = Budget { max_calls: Some(50), ..Budget::default() };
    let stopped = case.build(limited(&case, 100, budget)).unwrap();
    let made = case.model.calls() as u64;
    assert!((50..50 + 2 * WINDOW).contains(&made), "{made}");
    assert_eq!((made % 3, stopped.rows * 3), (0, made), "whole conversations, and their rows");
}

#[test]
fn rows_are_left_for_later_even_if_nothing_is_retried() {
    for on_error in ["drop_row", "keep_null", "fail_run"] {
        let config = format!(
            "run: {{max_retries: 0, salvage_rounds: 0}}
columns:
  - {{name: n, column_type: sampler, sampler_type: uuid, params: {{}}}}
  - {{name: a, column_type: llm-text, model_alias: m, prompt: 'A {{{{ n }}}}', on_error: {on_error}}}
"
        );
        let case = Case::new(&format!("spend_unretried_{on_error}"), &config, echo());
        let budget = Budget { max_calls: Some(7), ..Budget::default() };
        let stopped = case.build(limited(&case, 20, budget)).unwrap();
        assert_eq!((stopped_by(&stopped), case.model.calls()), (Some(Cap::Calls(7)), 7));
        assert_eq!((stopped.dropped, stopped.error_count), (0, 0));
        let done = case.build(case.options(20)).unwrap();
        assert_eq!((done.rows, calls(&done).0), (20, 20), "{on_error}");
    }
}

#[test]
fn tokens_and_money_stop_at_the_cap() {
    // All calls have 15 tokens and cost 0.006, so a mean is exact; the first calls are made before there is one.
    let tokens = Budget { max_tokens: Some(15 * 80), ..Budget::default() };
    let money = Budget { max_cost: Some(0.006 * 80.0 - 1e-9), ..Budget::default() };
    for (name, budget) in [("tokens", tokens), ("money", money)] {
        let case = Case::new(&format!("spend_{name}"), TWO, echo());
        let stopped = case.build(limited(&case, 100, budget)).unwrap();
        assert!(stopped_by(&stopped).is_some());
        assert_eq!((case.model.calls(), stopped.models["m"].calls), (80, 80), "{name}");
        let again = case.build(limited(&case, 100, budget)).unwrap();
        assert_eq!((stopped_by(&again), case.model.calls()), (stopped_by(&stopped), 0));
        assert_eq!(case.build(case.options(100)).unwrap().rows, 100);
    }
}

#[test]
fn a_cap_below_the_first_calls_is_exceeded_by_those_only() {
    let case = Case::new("spend_first", TWO, echo());
    let budget = Budget { max_tokens: Some(1), ..Budget::default() };
    case.build(limited(&case, 100, budget)).unwrap();
    let made = case.model.calls() as u64;
    assert!((1..=WINDOW).contains(&made), "{made}");
}

#[test]
fn calls_that_fail_cost_nothing() {
    let tries = Arc::new(AtomicU32::new(0));
    let model = CountingModel::new(move |_| match tries.fetch_add(1, Relaxed) % 2 {
        0 => Err(Error::Server { endpoint: "test".into(), status: 503, message: "down".to_owned() }),
        _ => Ok("fine".to_owned()),
    });
    let config = "
run: {max_retries: 100, disable_early_shutdown: true}
columns:
  - {name: n, column_type: sampler, sampler_type: uuid, params: {}}
  - {name: a, column_type: llm-text, model_alias: m, prompt: 'A {{ n }}'}
";
    let case = Case::new("spend_failed", config, model);
    let budget = Budget { max_calls: Some(6), ..Budget::default() };
    let done = case.build(limited(&case, 6, budget)).unwrap();
    assert_eq!((stopped_by(&done), done.rows, calls(&done).0), (None, 6, 6));
}

#[test]
fn money_needs_prices() {
    let case = Case::new("spend_unpriced", &TWO.replace("prices: {m:", "prices: {x:"), echo());
    let budget = Budget { max_cost: Some(1.0), ..Budget::default() };
    let error = case.build(limited(&case, 10, budget)).unwrap_err().to_string();
    expect!["--max-cost needs the price of every model; the price of `m` (test/counting) is missing: add it under `prices:` of the configuration or the models file, such as `prices: {ALIAS: {input: 0.15, output: 0.60}}` for money per million tokens"].assert_eq(&error);
    assert_eq!(case.model.calls(), 0);
    assert!(!case.out.exists(), "nothing was begun");
}

#[test]
fn embeddings_are_counted_by_request_and_by_text() {
    let config = "
model_configs:
  - {alias: e, model: e, provider: p, inference_parameters: {generation_type: embedding}}
providers: [{name: p, endpoint: 'http://127.0.0.1:1/v1'}]
prices: {e: {input: 1}}
columns:
  - {name: word, column_type: sampler, sampler_type: uuid}
  - {name: v, column_type: embedding, target_column: word, model_alias: e}
";
    let case = Case::new("spend_embedding", config, echo());
    case.build(case.options(40)).unwrap();
    let found = metadata(&case);
    let Figures { calls, cells, input_tokens, prompt_bytes, .. } = found.calls[0].figures;
    assert!((2..=40).contains(&calls), "{calls}");
    assert_eq!((cells, input_tokens, prompt_bytes), (40, 4 * calls, 40 * 32));
    assert_eq!(found.spent["v"].cost, Some(4.0 * calls as f64 / 1e6));
    let more = case.build(case.options(50)).unwrap();
    assert_eq!(more.models["e"].calls, metadata(&case).spent["v"].calls);
    assert_eq!(metadata(&case).calls[0].figures.cells, 50);
}

#[test]
fn a_deadline_ends_a_run_and_not_the_build() {
    let sim = Sim::new(7);
    let out = scratch("spend_deadline");
    let log = crate::kit::Log::new(&sim);
    let run = |rows: u64, deadline: Option<Duration>| {
        let engine = crate::kit::engine(&sim);
        let column = crate::kit::ScriptedColumn::cell("a", &[], &log).takes(|_| ms(700));
        let mut dataset = crate::kit::dataset(&engine, vec![column]);
        dataset.run_options().max_in_flight_tasks = 2;
        dataset.run_options().buffer_size = 4;
        let budget = Budget { deadline, ..Budget::default() };
        let options = BuildOptions { rows, out: out.clone(), budget, ..crate::kit::without_journal() };
        sim.block_on(async { dataset.build(options).await.unwrap().run().await.unwrap() })
    };
    let stopped = run(40, Some(ms(2500)));
    assert_eq!(stopped_by(&stopped), Some(Cap::Deadline(ms(2500))));
    assert!(log.at("a0 starts") == 0 && (1..40).contains(&stopped.rows), "{}", stopped.rows);
    let done = run(40, None);
    assert_eq!((done.rows, done.stopped.is_none()), (40, true));
}
