//! Dry runs: nothing is paid for, and the forecast holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anabranch_dataset::{
    Answer, BuildOptions, CallRequest, CellState, ColumnForecast, DryRun, Error, JournalPlace,
};
use anabranch_value::Value;
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::paid::{Case, PaidCalls, PaidModel};

/// Replies that differ by prompt and row.
fn echo() -> PaidModel {
    PaidModel::new(|request| {
        let asked = &request.messages.last().unwrap().text;
        format!("<{} {}>", asked.len(), request.sample)
    })
}

const CHAIN: &str = "
columns:
  - {name: n, column_type: sampler, sampler_type: uniform, params: {low: 0, high: 9}, convert_to: int}
  - {name: a, column_type: llm-text, model_alias: m, prompt: 'a|{{ n }}'}
  - {name: b, column_type: llm-text, model_alias: m, prompt: 'b|{{ a }}'}
  - {name: c, column_type: expression, expr: '{{ b }}!'}
  - {name: d, column_type: llm-text, model_alias: m, prompt: 'd|{{ n }}'}
  - {name: v, column_type: embedding, model_alias: e, target_column: c}
";

fn dry(case: &Case, options: &BuildOptions) -> DryRun {
    let run = case.with_dataset(async |_, dataset| dataset.dry_run(options).await).unwrap();
    assert_eq!(case.model.take(), PaidCalls::default(), "a dry run pays for nothing");
    run
}

/// The columns with a model, or with a count that is not plain.
fn shown(run: &DryRun) -> String {
    let mut text = String::new();
    if run.is_complete || run.rows_on_disk > 0 || !run.differ.is_empty() {
        let (on_disk, complete) = (run.rows_on_disk, run.is_complete);
        writeln!(text, "on disk {on_disk}, complete {complete}, differ {:?}", run.differ).unwrap();
    }
    for column in &run.columns {
        let ColumnForecast { name, computed, reused, lacking, unknown, skipped, failed, .. } = column;
        let counts = [
            ("computed", *computed),
            ("reused", *reused),
            ("lacking", *lacking),
            ("unknown", *unknown),
            ("skipped", *skipped),
            ("failed", *failed),
            ("perhaps skipped", column.lacking_may_be_skipped + column.unknown_may_be_skipped),
        ];
        let counts = counts.iter().filter(|(_, count)| *count > 0);
        let counts: Vec<String> = counts.map(|(state, count)| format!("{count} {state}")).collect();
        writeln!(text, "{name}: {}", counts.join(", ")).unwrap();
    }
    text
}

fn check(run: &DryRun, expected: Expect) {
    expected.assert_eq(&shown(run));
}

/// The files of a folder with their bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => _ = found.insert(path.display().to_string(), std::fs::read(&path).unwrap()),
            }
        }
    }
    found
}

#[test]
fn without_a_journal_everything_is_lacking_and_nothing_is_made() {
    let case = Case::new("dry_new", CHAIN, echo());
    let run = dry(&case, &case.options(20));
    check(
        &run,
        expect![[r#"
            n: 20 computed
            a: 20 lacking
            b: 20 unknown
            c: 20 unknown
            d: 20 lacking
            v: 20 unknown
        "#]],
    );
    assert!(!case.out.exists());
    let requests = run.columns[1].lacking_requests;
    assert_eq!((requests.count, requests.bytes), (20, 20 * 3), "`a|` and a digit");
}

#[test]
fn known_replies_are_followed() {
    let case = Case::new("dry_known", CHAIN, echo());
    case.build(case.options(20)).unwrap();
    case.model.take();
    let before = files(&case.out);
    let again = BuildOptions { replace: true, ..case.options(30) };
    check(
        &dry(&case, &again),
        expect![[r#"
            n: 30 computed
            a: 20 reused, 10 lacking
            b: 20 reused, 10 unknown
            c: 20 computed, 10 unknown
            d: 20 reused, 10 lacking
            v: 20 reused, 10 unknown
        "#]],
    );
    check(
        &dry(&case, &case.options(30)),
        expect![[r#"
            on disk 16, complete false, differ []
            n: 14 computed
            a: 4 reused, 10 lacking
            b: 4 reused, 10 unknown
            c: 4 computed, 10 unknown
            d: 4 reused, 10 lacking
            v: 4 reused, 10 unknown
        "#]],
    );
    check(
        &dry(&case, &case.options(20)),
        expect![[r#"
            on disk 20, complete true, differ []
            n: 
            a: 
            b: 
            c: 
            d: 
            v: 
        "#]],
    );
    let after = files(&case.out);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(&before));
    let changed: Vec<_> = before.iter().filter(|(name, bytes)| after[*name] != **bytes).collect();
    assert!(changed.iter().all(|(name, _)| name.contains("/journal/")), "{changed:?}");
    assert_eq!(case.build(again).unwrap().rows, 30);
    assert_eq!(case.model.take().cells.len(), 30, "three columns of ten rows");
}

#[test]
fn an_edit_ends_where_the_values_are_equal() {
    // The reply of `a` does not depend on the words of its prompt.
    let model = PaidModel::new(|request| match &*request.messages.last().unwrap().text {
        text if text.starts_with("a|") => format!("same {}", request.sample),
        text => text.to_uppercase(),
    });
    let case = Case::new("dry_edit", CHAIN, model);
    case.build(case.options(20)).unwrap();
    case.model.take();
    case.configure(&CHAIN.replace("'a|{{ n }}'", "'a|Please: {{ n }}'"));
    let again = BuildOptions { replace: true, ..case.options(20) };
    let edited = dry(&case, &case.options(20));
    assert_eq!(edited.differ, ["configuration"]);
    check(
        &dry(&case, &again),
        expect![[r#"
            n: 20 computed
            a: 20 lacking
            b: 20 unknown
            c: 20 unknown
            d: 20 reused
            v: 20 unknown
        "#]],
    );
    case.build(again.clone()).unwrap();
    assert_eq!(case.model.take().calls, 20, "what follows is equal");
    // Known now, and with it everything behind.
    check(
        &dry(&case, &again),
        expect![[r#"
            n: 20 computed
            a: 20 reused
            b: 20 reused
            c: 20 computed
            d: 20 reused
            v: 20 reused
        "#]],
    );
}

#[test]
fn skips_and_failures_are_foreseen() {
    let config = "
columns:
  - {name: n, column_type: sampler, sampler_type: uniform, params: {low: 0, high: 9}, convert_to: int}
  - {name: a, column_type: llm-text, model_alias: m, prompt: 'a|{{ n }}', skip: {when: '{{ n > 6 }}'}}
  - {name: b, column_type: llm-text, model_alias: m, prompt: 'b|{{ n }}', skip: {when: '{{ d }}'}}
  - {name: c, column_type: llm-text, model_alias: m, prompt: 'c|{{ b }}', on_error: keep_null}
  - {name: d, column_type: llm-structured, model_alias: m, prompt: 'd|{{ n }}', output_format: {type: integer}}
";
    let model = PaidModel::new(|request| {
        let text = &request.messages[0].text;
        match text.split('|').next() {
            Some("d") if text.starts_with("d|0") => "nothing".to_owned(),
            Some("d") => (request.sample % 2).to_string(),
            _ => text.to_uppercase(),
        }
    });
    let case = Case::new("dry_skip", config, model);
    let new = dry(&case, &case.options(40));
    let [_, a, b, c, d] = &new.columns[..] else { panic!("{}", shown(&new)) };
    assert_eq!((a.lacking + a.skipped, b.lacking, c.unknown, d.lacking), (40, 40, 40, 40));
    assert!(a.skipped > 0 && a.lacking > 0, "{}", shown(&new));
    let perhaps = [b.lacking_may_be_skipped, c.unknown_may_be_skipped, a.lacking_may_be_skipped];
    assert_eq!(perhaps, [40, 40, 0]);
    let built = case.build(case.options(40)).unwrap();
    let paid = case.model.take();
    let of = |column: &str| paid.cells.iter().filter(|(_, name)| name == column).count() as u64;
    assert_eq!((of("a"), of("d")), (a.lacking, 40));
    let run = dry(&case, &BuildOptions { replace: true, ..case.options(40) });
    let d = &run.columns[4];
    assert_eq!((d.reused, d.failed, run.dropped), (40 - built.dropped, built.dropped, built.dropped));
    assert!(built.dropped > 0);
    assert!(run.columns.iter().all(|column| column.lacking + column.unknown == 0), "{}", shown(&run));
    // A conversation that failed has six calls.
    assert_eq!((d.recorded.cells, d.recorded.calls), (40, 40 + 5 * d.failed));
}

#[test]
fn the_whole_story_of_a_row_is_there() {
    let case = Case::new("dry_trace", CHAIN, echo());
    case.build(case.options(20)).unwrap();
    case.configure(&CHAIN.replace("b|", "b|again "));
    let options = BuildOptions { replace: true, ..case.options(20) };
    let trace = case.with_dataset(async |_, dataset| dataset.trace_row(&options, 17).await);
    let trace = trace.unwrap().unwrap();
    let state = |column: &str| trace.cell(column).unwrap().state;
    assert_eq!(
        ["n", "a", "b", "c"].map(state),
        [CellState::Computed, CellState::Reused, CellState::Lacking, CellState::Unknown]
    );
    let a = trace.cell("a").unwrap();
    assert_eq!(a.values, [("a".to_owned(), Value::from("<3 17>"))]);
    assert_eq!((&a.reads[..], &a.models[..]), (&["n".to_owned()][..], &["m".to_owned()][..]));
    let CallRequest::Chat(request) = &a.calls[0].asked else { panic!("{:?}", a.calls) };
    assert!(request.messages[0].text.starts_with("a|"));
    let recorded = a.calls[0].recorded.as_ref().unwrap();
    assert!(matches!(&recorded.answer, Answer::Reply(reply) if &*reply.text == "<3 17>"));
    let b = trace.cell("b").unwrap();
    let CallRequest::Chat(request) = &b.calls[0].asked else { panic!("{:?}", b.calls) };
    assert_eq!((&*request.messages[0].text, b.calls[0].recorded.is_none()), ("b|again <3 17>", true));
    let beyond = case.with_dataset(async |_, dataset| dataset.trace_row(&options, 20).await);
    assert!(beyond.unwrap().is_none());
}

#[test]
fn a_journal_that_a_build_has_open_is_not_read() {
    let case = Case::new("dry_busy", CHAIN, echo());
    let refused = case.with_dataset(async |_, dataset| {
        let _build = dataset.build(case.options(20)).await.unwrap();
        let options = case.options(20);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| case.with_dataset(async |_, dataset| dataset.dry_run(&options).await));
            other.join().unwrap()
        })
    });
    assert!(matches!(refused, Err(Error::Journal(_))), "{refused:?}");
    let elsewhere = BuildOptions { journal: JournalPlace::Nowhere, ..case.options(20) };
    assert_eq!(dry(&case, &elsewhere).columns[1].lacking, 20);
}

/// A random graph of columns. Each reads some of those before it.
#[derive(Clone, Debug)]
struct RandomColumn {
    /// A bit per column before it.
    reads: u8,
    /// A column that its skip condition reads, if there is one before it.
    skips_on: Option<u8>,
    is_expression: bool,
    /// Its replies depend on a part of the prompt only: edits behind it end here.
    is_dull: bool,
    is_edited: bool,
}

fn random_column() -> impl Strategy<Value = RandomColumn> {
    let skips_on = proptest::option::weighted(0.3, any::<u8>());
    (any::<u8>(), skips_on, prop::bool::weighted(0.2), any::<bool>(), prop::bool::weighted(0.4)).prop_map(
        |(reads, skips_on, is_expression, is_dull, is_edited)| RandomColumn {
            reads,
            skips_on,
            is_expression,
            is_dull,
            is_edited,
        },
    )
}

fn config(columns: &[RandomColumn], edited: bool) -> String {
    let mut text = "columns:\n  - {name: c0, column_type: sampler, sampler_type: uniform, \
         params: {low: 0, high: 9}, convert_to: int}\n"
        .to_owned();
    for (number, column) in (1..).zip(columns) {
        let reads = (0..number).filter(|read| column.reads >> read & 1 == 1);
        let reads: Vec<String> = reads.map(|read| format!("{{{{ c{read} }}}}")).collect();
        let version = if edited && column.is_edited { "new" } else { "old" };
        let dull = if column.is_dull { "dull" } else { "keen" };
        let body = format!("c{number}|{dull} {version} {}", reads.join(" "));
        let kind = match column.is_expression {
            true => format!("column_type: expression, expr: '{body}'"),
            false => format!("column_type: llm-text, model_alias: m, prompt: '{body}'"),
        };
        let skip = column.skips_on.map_or_else(String::new, |on| {
            format!(", skip: {{when: \"{{{{ '3' in c{} ~ '' }}}}\"}}", u32::from(on) % number)
        });
        writeln!(text, "  - {{name: c{number}, {kind}{skip}}}").unwrap();
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_forecast_is_what_the_build_then_pays(
        columns in prop::collection::vec(random_column(), 1..6),
        (first, then) in (0_u64..20, 1_u64..24),
    ) {
        let model = PaidModel::new(|request| {
            let text = &request.messages[0].text;
            match text.contains("|dull") {
                true => format!("r{}", request.sample % 5),
                false => format!("r{}", blake3::hash(text.as_bytes()).to_hex().split_at(6).0),
            }
        });
        let case = Case::new(&format!("dry_random_{:?}", std::thread::current().id()), &config(&columns, false), model);
        if first > 0 {
            case.build(case.options(first)).unwrap();
            case.model.take();
        }
        case.configure(&config(&columns, true));
        let options = BuildOptions { replace: true, ..case.options(then) };
        type Cells = BTreeSet<(u64, String)>;
        let seen: Arc<Mutex<BTreeMap<(bool, &str), Cells>>> = Arc::default();
        let sink = Arc::clone(&seen);
        let run = case.with_dataset(async move |_, dataset| {
            dataset.dry_run_with(&options, move |cell| {
                let state = match cell.state {
                    CellState::Reused => "reused",
                    CellState::Lacking => "lacking",
                    CellState::Unknown => "unknown",
                    _ => "other",
                };
                let mut seen = sink.lock().unwrap();
                let cells = seen.entry((cell.may_be_skipped, state)).or_default();
                assert!(cells.insert((cell.row, cell.column.to_owned())), "a cell is told once");
            }).await
        }).unwrap();
        prop_assert_eq!(case.model.take().calls, 0);
        let told: u64 = run.columns.iter().map(ColumnForecast::cells).sum();
        prop_assert_eq!(told, then * (columns.len() as u64 + 1));
        case.build(BuildOptions { replace: true, ..case.options(then) }).unwrap();
        let paid = case.model.take().cells;
        let seen = seen.lock().unwrap();
        let of = |may_be_skipped: bool, state: &'static str| {
            seen.get(&(may_be_skipped, state)).cloned().unwrap_or_default()
        };
        for may_be_skipped in [false, true] {
            prop_assert!(of(may_be_skipped, "reused").is_disjoint(&paid), "reused cells are not paid for");
            prop_assert!(of(may_be_skipped, "other").is_disjoint(&paid));
        }
        prop_assert!(of(false, "lacking").is_subset(&paid), "lacking cells are paid for");
    }
}
