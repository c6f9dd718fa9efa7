//! Rows that are accepted or not, steps that change their number, and stages that follow each other.

use anabranch_dataset::stages::{StepFate, child_id, read_fates};
use anabranch_dataset::{BuildReport, StopReason};
use anabranch_value::Value;
use expect_test::expect;

use crate::resume::{Case, CountingModel, echo};

/// A score between 0 and 9 for each row, by the column `A`; everything else is echoed.
fn scores() -> CountingModel {
    CountingModel::new(|request| {
        let prompt = &request.messages.last().unwrap().text;
        Ok(match prompt.split_once(' ') {
            Some(("A", _)) => score(request.sample).to_string(),
            _ => format!("<{prompt}>"),
        })
    })
}

fn score(row: u64) -> u64 {
    u64::from(blake3::hash(&row.to_le_bytes()).as_bytes()[0]) % 10
}

const ACCEPTED: &str = "
columns:
  - {name: n, column_type: sampler, sampler_type: uuid, params: {short_form: true}}
  - {name: a, column_type: llm-text, model_alias: m, prompt: 'A {{ n }}'}
  - {name: b, column_type: llm-text, model_alias: m, prompt: 'B {{ a }} {{ n }}'}
accept: a | int >= 7
";

/// The rows that are accepted, in order.
fn accepted() -> impl Iterator<Item = u64> {
    (0..).filter(|row| score(*row) >= 7)
}

fn yields(report: &BuildReport) -> (u64, u64, u64, u64) {
    let stage = report.stages.last().unwrap();
    (stage.candidates, stage.rows, stage.rejected, stage.surplus)
}

fn column(case: &Case, name: &str) -> Vec<Value> {
    let rows = case.rows();
    rows.lines().map(|line| Value::from_json(line).unwrap().get(name).unwrap().clone()).collect()
}

#[test]
fn exactly_so_many_rows_are_accepted() {
    let mut case = Case::new("accept", ACCEPTED, scores());
    case.buffer_size = 100;
    let report = case.build(case.options(500)).unwrap();
    let (candidates, rows, rejected, surplus) = yields(&report);
    assert_eq!((report.rows, rows, report.stopped.is_none()), (500, 500, true));
    assert_eq!(candidates, rows + rejected + surplus);
    // The last accepted row, and a forecast that is not far off.
    let needed = accepted().nth(499).unwrap() + 1;
    assert!((needed..needed + 250).contains(&candidates), "{candidates} candidates for {needed}");
    let calls = case.model.calls_by_word();
    assert_eq!(calls["A"] as u64, candidates);
    assert_eq!(calls["B"] as u64, rows + surplus, "a row that is not accepted costs no more calls");
    // The first ones that are accepted, whatever came in which order.
    let scores: Vec<Value> = accepted().take(500).map(|row| score(row).to_string().into()).collect();
    assert_eq!(column(&case, "a"), scores);
    let done = case.build(case.options(500)).unwrap();
    assert_eq!((done.rows, case.model.calls()), (500, 0));
    let mut other = Case::new("accept_other_size", ACCEPTED, self::scores());
    other.buffer_size = 7;
    other.build(other.options(500)).unwrap();
    assert_eq!(other.rows(), case.rows(), "the size of row groups changes no row");
}

#[test]
fn more_accepted_rows_cost_new_candidates_only() {
    let mut case = Case::new("accept_more", ACCEPTED, scores());
    case.buffer_size = 50;
    case.build(case.options(100)).unwrap();
    let first = case.model.calls_by_word();
    let report = case.build(case.options(300)).unwrap();
    let second = case.model.calls_by_word();
    let (candidates, rows, _, surplus) = yields(&report);
    assert_eq!((report.rows, rows), (300, 300));
    assert_eq!((first["A"] + second["A"]) as u64, candidates, "no candidate is paid for twice");
    assert_eq!((first["B"] + second["B"]) as u64, rows + surplus);
}

#[test]
fn candidates_have_a_bound() {
    let bounded = |most: u64| {
        ACCEPTED.replace(
            "accept: a | int >= 7",
            &format!("accept:\n  when: [\"{{{{ a | int >= 7 }}}}\"]\n  max_candidates: {most}"),
        )
    };
    let case = Case::new("accept_bound", &bounded(120), scores());
    let report = case.build(case.options(100)).unwrap();
    let there = accepted().take_while(|row| *row < 120).count() as u64;
    assert_eq!((report.rows, yields(&report).0), (there, 120));
    match &report.stopped {
        Some(StopReason::Candidates { rows, wanted: 100, candidates: 120 }) if *rows == there => {}
        other => panic!("{other:?}"),
    }
    let first = case.model.calls();
    case.configure(&bounded(10_000));
    let report = case.build(case.options(100)).unwrap();
    assert_eq!((report.rows, report.stopped.is_none()), (100, true));
    let (candidates, _, _, surplus) = yields(&report);
    assert_eq!((first + case.model.calls()) as u64, candidates + 100 + surplus);
}

/// Topics, several questions for each, an answer to each question.
const CHAIN: &str = "
stages:
  - name: topics
    columns:
      - {name: n, column_type: sampler, sampler_type: uuid, params: {short_form: true}}
      - {name: topic, column_type: llm-text, model_alias: m, prompt: 'Topic {{ n }}'}
      - name: questions
        column_type: llm-structured
        model_alias: m
        prompt: 'Questions {{ topic }}'
        output_format: {type: array, items: {type: string}}
    steps:
      - explode: questions
      - filter: \"'3' not in questions\"
  - name: answers
    columns:
      - {name: answer, column_type: llm-text, model_alias: m, prompt: 'Answer {{ questions }} of {{ topic }}'}
    steps:
      - dedupe: [questions]
      - sort: questions desc
";

/// As many questions as the row's number modulo 3 says, of which those of several rows are the same.
fn questions() -> CountingModel {
    CountingModel::new(|request| {
        let prompt = &request.messages.last().unwrap().text;
        Ok(match prompt.split(' ').next() {
            Some("Topic") => format!("t{}", request.sample),
            Some("Questions") => {
                let items: Vec<Value> = (0..request.sample % 3)
                    .map(|item| format!("q{}-{item}", request.sample / 2).into())
                    .collect();
                Value::from(items).to_json()
            }
            _ => format!("<{} {}>", prompt.split("Answer ").nth(1).unwrap(), request.sample),
        })
    })
}

#[test]
fn stages_follow_each_other() {
    let case = Case::new("chain", CHAIN, questions());
    let report = case.build(case.options(9)).unwrap();
    let texts =
        |name: &str| column(&case, name).iter().map(|value| value.as_text().unwrap().to_owned()).collect();
    let (topics, questions): (Vec<String>, Vec<String>) = (texts("topic"), texts("questions"));
    let short: Vec<String> =
        topics.iter().zip(&questions).map(|(topic, question)| format!("{topic} {question}")).collect();
    expect![[r#"
        t8 q4-1
        t8 q4-0
        t5 q2-1
        t4 q2-0
        t2 q1-1
        t2 q1-0
        t1 q0-0"#]]
    .assert_eq(&short.join("\n"));
    let stages: Vec<String> = report
        .stages
        .iter()
        .map(|stage| {
            let steps: Vec<String> =
                stage.steps.iter().map(|step| format!("{} {}", step.step, step.after)).collect();
            format!("{}: {} rows; {}", stage.name, stage.rows, steps.join(", "))
        })
        .collect();
    expect![[r#"
        topics: 9 rows; explode 9, filter 8
        answers: 8 rows; dedupe 7, sort 7
        output: 7 rows; "#]]
    .assert_eq(&stages.join("\n"));
    let calls = case.model.calls_by_word();
    assert_eq!((calls["Topic"], calls["Questions"], calls["Answer"]), (9, 9, 8));
    let mut fates = Vec::new();
    read_fates(&case.out.join("stages/1-topics"), |fate| fates.push(fate)).unwrap();
    let empty: Vec<u64> =
        fates.iter().filter(|fate| fate.fate == StepFate::Empty).map(|fate| fate.row).collect();
    assert_eq!(empty, [0, 3, 6]);
    let item = fates.iter().find(|fate| fate.row == child_id(8, 1)).unwrap();
    assert_eq!(item.fate, StepFate::Item { parent: 8, item: 1 });
    // Again: nothing is left to do.
    let rows = case.rows();
    case.build(case.options(9)).unwrap();
    assert_eq!((case.model.calls(), case.rows()), (0, rows));
}

#[test]
fn an_edit_in_a_later_stage_costs_that_stage_only() {
    let case = Case::new("chain_edit", CHAIN, questions());
    case.build(case.options(30)).unwrap();
    let first = case.model.calls_by_word();
    case.configure(&CHAIN.replace("Answer {{ questions }} of", "Answer {{ questions }} about"));
    case.build(anabranch_dataset::BuildOptions { replace: true, ..case.options(30) }).unwrap();
    let edited = case.model.calls_by_word();
    assert_eq!(edited, [("Answer".to_owned(), first["Answer"])].into());
    // Another filter: the rows that are left keep their replies.
    case.configure(
        &CHAIN
            .replace("Answer {{ questions }} of", "Answer {{ questions }} about")
            .replace("'3' not in", "'4' not in"),
    );
    case.build(anabranch_dataset::BuildOptions { replace: true, ..case.options(30) }).unwrap();
    let filtered = case.model.calls_by_word();
    assert!(filtered.get("Answer").copied().unwrap_or(0) < first["Answer"] / 3, "{filtered:?}");
    assert_eq!(filtered.len(), 1, "{filtered:?}");
}

#[test]
fn more_rows_go_through_all_stages() {
    let case = Case::new("chain_more", CHAIN, questions());
    case.build(case.options(12)).unwrap();
    let first = case.model.calls();
    case.build(case.options(40)).unwrap();
    let second = case.model.calls();
    let whole = Case::new("chain_whole", CHAIN, questions());
    whole.build(whole.options(40)).unwrap();
    assert_eq!(case.rows(), whole.rows());
    assert_eq!(first + second, whole.model.calls());
}

#[test]
fn a_chain_that_was_stopped_anywhere_goes_on() {
    let whole = Case::new("chain_stopped_whole", CHAIN, questions());
    whole.build(whole.options(20)).unwrap();
    let all = whole.model.calls();
    for after in [0, 5, 19, 30, 39, 41, 50] {
        let case = Case::new(&format!("chain_stopped_{after}"), CHAIN, questions());
        let stopped = case.stop_after(case.options(20), after);
        assert!(stopped.is_some_and(|reason| matches!(reason, StopReason::Asked)), "after {after} calls");
        let first = case.model.calls();
        case.build(case.options(20)).unwrap();
        assert_eq!((case.rows(), first + case.model.calls()), (whole.rows(), all), "after {after} calls");
    }
}

#[test]
fn failed_rows_of_any_stage_are_tried_again() {
    let config = "
run: {max_conversation_restarts: 0}
stages:
  - name: one
    columns:
      - {name: a, column_type: llm-structured, model_alias: m, prompt: A, output_format: {type: array, items: {type: integer}}}
    steps: [explode: a]
  - name: two
    columns:
      - {name: b, column_type: llm-structured, model_alias: m, prompt: 'B {{ a }}', output_format: {type: integer}}
";
    // In the first round, row 3 and the item 0 of row 5 do not fit.
    let model = CountingModel::new(|request| {
        let is_bad = request.attempt == 0 && (request.sample == 3 || request.sample == child_id(5, 0));
        let is_first = request.messages.last().unwrap().text.starts_with('A');
        Ok(match (is_bad, is_first) {
            (true, _) => "no".to_owned(),
            (false, true) => "[1, 2]".to_owned(),
            (false, false) => "7".to_owned(),
        })
    });
    let case = Case::new("chain_failed", config, model);
    let first = case.build(case.options(12)).unwrap();
    assert_eq!((first.rows, first.dropped, first.error_count), (21, 2, 2));
    case.model.calls();
    let done = case.build(case.options(12)).unwrap();
    assert_eq!((done.rows, done.dropped, done.error_count, case.model.calls()), (21, 2, 2, 0));
    let retry = anabranch_dataset::BuildOptions { retry_failed: true, ..case.options(12) };
    let second = case.build(retry.clone()).unwrap();
    assert_eq!((second.rows, second.dropped, second.error_count), (24, 0, 0));
    assert_eq!(case.model.calls(), 1 + 1 + 2, "the two that failed, and the rows of the first");
    assert_eq!((case.build(retry).unwrap().rows, case.model.calls()), (24, 0));
}

#[test]
fn a_preview_goes_through_all_stages() {
    let case = Case::new("chain_preview", CHAIN, questions());
    let preview = case.preview(9).unwrap();
    case.build(case.options(9)).unwrap();
    let rows: String =
        (0..preview.rows.ids.len()).map(|row| format!("{}\n", preview.rows.row(row).to_json())).collect();
    assert_eq!(rows, case.rows());
}

#[test]
fn samples_are_stable() {
    let config = |rows: u64| {
        format!(
            "
columns:
  - {{name: n, column_type: sampler, sampler_type: uuid, params: {{short_form: true}}}}
  - {{name: a, column_type: llm-text, model_alias: m, prompt: 'A {{{{ n }}}}'}}
steps: [{{sample: {rows}}}]
"
        )
    };
    let few = Case::new("sample_few", &config(10), echo());
    few.build(few.options(200)).unwrap();
    let more = Case::new("sample_more", &config(20), echo());
    more.build(more.options(200)).unwrap();
    let (few, more) = (few.rows(), more.rows());
    assert_eq!((few.lines().count(), more.lines().count()), (10, 20));
    assert!(
        few.lines().all(|line| more.lines().any(|other| other == line)),
        "a larger sample has the smaller one"
    );
}

#[test]
fn a_column_that_resizes_makes_rows() {
    // As many rows as the column says.
    let worker = r#"
read hello
echo '{"ready":true,"functions":{"split":{}}}'
while read line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  n=$(printf %s "$line" | sed 's/.*"n":\([0-9]*\).*/\1/')
  rows="" i=0
  while [ $i -lt $n ]; do
    rows="$rows,{\"part\":$i,\"left\":\"l$i\"}"
    i=$((i+1))
  done
  echo "{\"id\":$id,\"values\":[${rows#,}]}"
done
"#;
    let config = "
columns:
  - {name: n, column_type: sampler, sampler_type: category, params: {values: [0, 1, 3]}}
  - name: part
    column_type: custom
    generator_function: split
    required_columns: [n]
    side_effect_columns: [left]
    column_types: {part: int, left: str}
    allow_resize: true
    worker: {command: [/bin/sh, worker.sh]}
  - {name: both, column_type: expression, expr: '{{ n }}:{{ part }}{{ left }}'}
";
    let case = Case::new("resize", config, echo());
    std::fs::write(case.folder.join("worker.sh"), worker).unwrap();
    let report = case.build(case.options(20)).unwrap();
    let rows = case.rows();
    assert_eq!(report.stages.len(), 2);
    assert_eq!(report.rows, rows.lines().count() as u64);
    let ones = rows.lines().filter(|line| line.contains("\"both\":\"1:0l0\"")).count();
    let threes = rows.lines().filter(|line| line.contains("\"both\":\"3:2l2\"")).count();
    assert_eq!(report.rows as usize, ones + 3 * threes, "{rows}");
    assert!(ones > 0 && threes > 0 && ones + threes < 20, "{rows}");
}
