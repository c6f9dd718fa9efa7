//! Plans: estimates that hold when the build is run.

use anabranch_dataset::{BuildOptions, BuildPlan, ColumnPlan};
use expect_test::expect;

use crate::paid::{Case, PaidCalls, PaidModel};

/// Replies of many lengths. Every seventh first reply of `score` does not fit.
fn writer() -> PaidModel {
    PaidModel::new(|request| {
        let text = &request.messages[0].text;
        let is_malformed = request.sample % 7 == 3 && request.attempt == 0;
        match text.split('|').next() {
            Some("score") if is_malformed => "I would rather not give a number.".to_owned(),
            Some("score") => (request.sample % 5).to_string(),
            Some(column) => {
                let hash = blake3::hash(text.as_bytes()).as_bytes()[0];
                format!("{column} of row {}: {}", request.sample, "word ".repeat(20 + usize::from(hash) / 8))
            }
            None => String::new(),
        }
    })
}

const TICKETS: &str = "
prices: {m: {input: 0.15, output: 0.6}}
columns:
  - {name: n, column_type: sampler, sampler_type: uniform, params: {low: 0, high: 99}, convert_to: int}
  - {name: ticket, column_type: llm-text, model_alias: m, prompt: 'ticket|Write a ticket about topic {{ n }}.'}
  - {name: reply, column_type: llm-text, model_alias: m, prompt: 'reply|Answer this ticket: {{ ticket }}'}
  - name: score
    column_type: llm-structured
    model_alias: m
    prompt: 'score|Judge {{ ticket }} and {{ reply }}'
    output_format: {type: integer}
  - name: better
    column_type: llm-text
    model_alias: m
    prompt: 'better|Improve {{ reply }}'
    skip: {when: '{{ score > 1 }}'}
  - {name: topic, column_type: llm-text, model_alias: m, prompt: 'topic|Name topic {{ n }}'}
";

fn plan(case: &Case, options: &BuildOptions) -> BuildPlan {
    let plan = case.with_dataset(async |loaded, dataset| {
        let run = dataset.dry_run(options).await.unwrap();
        BuildPlan::new(loaded, &run)
    });
    assert_eq!(case.model.take(), PaidCalls::default(), "a plan costs nothing");
    plan
}

fn column<'p>(plan: &'p BuildPlan, name: &str) -> &'p ColumnPlan {
    plan.columns.iter().find(|column| column.name == name).unwrap()
}

fn is_near(estimated: u64, actual: u64, share: f64) -> bool {
    (estimated as f64 - actual as f64).abs() <= actual as f64 * share
}

/// Plans, builds, and compares: calls within 5%, tokens within 25%.
fn check(case: &Case, options: BuildOptions) -> BuildPlan {
    let plan = plan(case, &options);
    plan.save(&case.out).unwrap();
    let report = case.build(options).unwrap();
    let paid = case.model.take();
    let shown = format!("{plan:#?}\n{paid:?}").split("cells: {").next().unwrap().to_owned();
    assert!(is_near(plan.calls, paid.calls, 0.05), "{shown}");
    assert!(is_near(plan.input_tokens, paid.input_tokens, 0.25), "{shown}");
    assert!(is_near(plan.output_tokens, paid.output_tokens, 0.25), "{shown}");
    let check = report.plan.expect("the plan fits the build");
    assert_eq!((check.estimated, check.actual.calls), (plan.totals(), paid.calls));
    assert_eq!(
        (check.actual.input_tokens, check.actual.output_tokens),
        (paid.input_tokens, paid.output_tokens)
    );
    plan
}

#[test]
fn a_small_first_build_tells_what_a_large_one_costs() {
    let case = Case::new("plan_small", TICKETS, writer());
    case.build(case.options(60)).unwrap();
    case.model.take();
    let plan = check(&case, case.options(1200));
    let cells: Vec<String> = plan
        .columns
        .iter()
        .map(|column| format!("{}: {} {}", column.name, column.reused, column.basis))
        .collect();
    expect![[r#"
        ticket: 60 measured
        reply: 60 measured
        score: 60 measured
        better: 52 measured
        topic: 60 measured"#]]
    .assert_eq(&cells.join("\n"));
    let score = column(&plan, "score");
    assert!(score.calls > score.generate, "corrections are expected: {score:?}");
    assert!(is_near(score.calls, 1140 * 8 / 7, 0.05), "{score:?}");
    let better = column(&plan, "better");
    assert!(is_near(better.generate, 1140 * 2 / 5, 0.1), "skips are expected: {better:?}");
    assert_eq!(column(&plan, "ticket").why, "new rows");
    assert_eq!(column(&plan, "reply").why, "inputs change");
}

#[test]
fn an_edited_prompt_costs_its_column_and_what_depends_on_it() {
    let case = Case::new("plan_edit", TICKETS, writer());
    case.build(case.options(300)).unwrap();
    case.model.take();
    case.configure(&TICKETS.replace("Answer this ticket", "Answer this ticket in two kind sentences"));
    assert_eq!(plan(&case, &case.options(300)).differ, ["configuration"]);
    let plan = check(&case, BuildOptions { replace: true, ..case.options(300) });
    let reused = |name: &str| column(&plan, name).reused;
    assert_eq!(["ticket", "reply", "score", "better", "topic"].map(reused), [300, 0, 0, 0, 300]);
    assert_eq!(column(&plan, "reply").why, "new prompt or model, or not built yet");
    assert_eq!(column(&plan, "score").why, "inputs change");
    // The price is per million tokens.
    let cost = (plan.input_tokens as f64 * 0.15 + plan.output_tokens as f64 * 0.6) / 1e6;
    assert!((plan.cost.unwrap() - cost).abs() < 1e-9);
}

#[test]
fn an_added_column_costs_itself() {
    let case = Case::new("plan_add", TICKETS, writer());
    case.build(case.options(200)).unwrap();
    case.model.take();
    let added =
        "  - {name: more, column_type: llm-text, model_alias: m, prompt: 'more|Say more on {{ reply }}'}\n";
    case.configure(&format!("{TICKETS}{added}"));
    let plan = check(&case, BuildOptions { replace: true, ..case.options(200) });
    let more = column(&plan, "more");
    assert_eq!((plan.calls, more.calls, &*more.why), (200, 200, "new column"));
    assert_eq!(more.basis, "other columns of the model");
}

#[test]
fn nothing_is_known_of_a_first_build_but_its_cells() {
    let case = Case::new("plan_first", TICKETS, writer());
    let plan = plan(&case, &case.options(100));
    assert!(!case.out.exists());
    assert_eq!((plan.calls, plan.reused, column(&plan, "ticket").calls), (500, 0, 100));
    assert_eq!(column(&plan, "score").basis, "guess");
    assert!(plan.guesses.contains(&"`better`: no cell is skipped".to_owned()), "{:?}", plan.guesses);
    // A folder with nothing but a plan is built into.
    plan.save(&case.out).unwrap();
    let report = case.build(case.options(100)).unwrap();
    assert_eq!(report.plan.unwrap().estimated, plan.totals());
    assert_eq!(BuildPlan::read(&case.out).unwrap().unwrap(), plan);
}

#[test]
fn a_complete_build_needs_nothing_and_another_does_not_fit() {
    let case = Case::new("plan_complete", TICKETS, writer());
    case.build(case.options(40)).unwrap();
    case.model.take();
    let done = plan(&case, &case.options(40));
    assert!(done.is_complete);
    assert_eq!((done.calls, done.seconds, column(&done, "ticket").reused), (0, 0.0, 40));
    plan(&case, &case.options(50)).save(&case.out).unwrap();
    assert!(case.build(case.options(60)).unwrap().plan.is_none(), "it is of 50 rows");
    case.model.take();
    plan(&case, &case.options(70)).save(&case.out).unwrap();
    case.configure(&TICKETS.replace("Name topic", "What is topic"));
    let other = case.build(BuildOptions { replace: true, ..case.options(70) }).unwrap();
    assert!(other.plan.is_none(), "it is of other inputs");
}

/// Three of ten candidates are accepted.
fn graded() -> PaidModel {
    PaidModel::new(|request| match request.messages[0].text.split('|').next() {
        Some("grade") => (request.sample * 7 % 10).to_string(),
        _ => format!("text {}", request.sample),
    })
}

const ACCEPTED: &str = "
columns:
  - {name: n, column_type: sampler, sampler_type: uuid, params: {}}
  - {name: grade, column_type: llm-text, model_alias: m, prompt: 'grade|{{ n }}'}
  - {name: text, column_type: llm-text, model_alias: m, prompt: 'text|{{ grade }} {{ n }}'}
accept: grade | int >= 7
";

#[test]
fn candidates_are_planned_by_their_yield() {
    let mut case = Case::new("plan_accept", ACCEPTED, graded());
    case.buffer_size = 50;
    let first = plan(&case, &case.options(100));
    assert_eq!(first.calls, 200, "nothing is known of the yield");
    case.build(case.options(100)).unwrap();
    case.model.take();
    assert!(plan(&case, &case.options(100)).is_complete);
    let plan = plan(&case, &case.options(600));
    case.build(case.options(600)).unwrap();
    let paid = case.model.take();
    assert!(is_near(plan.calls, paid.calls, 0.1), "{} of {}: {plan:#?}", plan.calls, paid.calls);
    let paid_for = |name: &str| paid.cells.iter().filter(|(_, column)| column == name).count() as u64;
    for name in ["grade", "text"] {
        let (planned, paid) = (column(&plan, name).calls, paid_for(name));
        assert!(is_near(planned, paid, 0.12), "{name}: {planned} of {paid}");
    }
}

const TOPICS: &str = r#"
stages:
  - name: topics
    columns:
      - {name: n, column_type: sampler, sampler_type: uuid, params: {short_form: true}}
      - {name: topic, column_type: llm-text, model_alias: m, prompt: 'topic|{{ n }}'}
      - name: questions
        column_type: llm-structured
        model_alias: m
        prompt: 'questions|{{ topic }}'
        output_format: {type: array, items: {type: string}}
    steps:
      - explode: questions
      - filter: "'q1' not in questions"
  - name: answers
    columns:
      - {name: answer, column_type: llm-text, model_alias: m, prompt: 'answer|{{ questions }} of {{ topic }}'}
"#;

#[test]
fn stages_are_followed_as_far_as_their_rows_are_known() {
    let model = PaidModel::new(|request| match request.messages[0].text.split('|').next() {
        Some("questions") => {
            let questions =
                (0..=request.sample % 3).map(|number| format!("\"q{number} of {}\"", request.sample));
            format!("[{}]", questions.collect::<Vec<_>>().join(", "))
        }
        Some(column) => format!("{column} {}", request.sample),
        None => String::new(),
    });
    let case = Case::new("plan_stages", TOPICS, model);
    case.build(case.options(40)).unwrap();
    case.model.take();
    let done = plan(&case, &case.options(40));
    let reused = |name: &str| column(&done, name).reused;
    assert!(done.is_complete && done.calls == 0);
    assert_eq!((reused("topic"), reused("answer")), (40, 53));
    case.configure(&TOPICS.replace("answer|", "answer|Briefly: "));
    let edited = check(&case, BuildOptions { replace: true, ..case.options(40) });
    let answers = column(&edited, "answer");
    assert_eq!((column(&edited, "topic").reused, column(&edited, "questions").reused), (40, 40));
    assert_eq!((edited.calls, answers.calls), (answers.generate, answers.generate), "it is exact");
    assert!(answers.generate > 40, "rows were exploded");
    check(&case, case.options(120));
}
