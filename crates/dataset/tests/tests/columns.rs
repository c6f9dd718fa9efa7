//! Columns of a configuration: values, types, skips, side effects, randomness.

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anabranch_dataset::post::Post;
use anabranch_dataset::{Dataset, LoadedConfig, ModelSource, Preview, Sources};
use anabranch_engine::workload::BoxFuture;
use anabranch_engine::{Config, Engine};
use anabranch_model::{
    ChatReply, ChatRequest, EmbedReply, EmbedRequest, Error, Finish, Identity, Model, Usage,
};
use anabranch_value::Value;
use expect_test::expect;

use crate::kit::shown;

type Reply = dyn Fn(&ChatRequest, u32) -> Result<String, Error> + Send + Sync;

/// A model that answers by a script.
struct ScriptedModel {
    identity: Identity,
    reply: Box<Reply>,
    calls: AtomicU32,
    embed_requests: AtomicUsize,
    seen: Mutex<Vec<ChatRequest>>,
}

fn scripted(
    reply: impl Fn(&ChatRequest, u32) -> Result<String, Error> + Send + Sync + 'static,
) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel {
        identity: Identity { provider: "test".into(), model: "scripted".into() },
        reply: Box::new(reply),
        calls: AtomicU32::new(0),
        embed_requests: AtomicUsize::new(0),
        seen: Mutex::default(),
    })
}

impl Model for ScriptedModel {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let reply = (self.reply)(&request, call).map(|text| ChatReply {
            text: text.into(),
            reasoning: Some("because".into()),
            finish: Finish::Stop,
            usage: Usage { input_tokens: 10, output_tokens: 5, cached_tokens: None },
            bytes: 0,
            demo: false,
            rates: None,
        });
        self.seen.lock().unwrap().push(request);
        Box::pin(async move { reply })
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<EmbedReply, Error> {
        self.embed_requests.fetch_add(1, Ordering::Relaxed);
        let vectors = request.texts.iter().map(|text| vec![text.len() as f64, 0.5]).collect();
        Box::pin(async move {
            Ok(EmbedReply { vectors, usage: Usage::default(), bytes: 0, demo: false, rates: None })
        })
    }
}

fn load(test: &str, text: &str, seed: u64) -> LoadedConfig {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("columns");
    std::fs::create_dir_all(&folder).unwrap();
    let config = folder.join(format!("{test}.yaml"));
    std::fs::write(&config, text).unwrap();
    let sources = Sources { config, seed, ..Sources::default() };
    LoadedConfig::read(&sources).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn preview(test: &str, text: &str, rows: u64, seed: u64, model: Arc<ScriptedModel>) -> Preview {
    let loaded = load(test, text, seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = Engine::new(&Config::default()).unwrap();
        let post: Arc<dyn Post> = Arc::new(crate::kit::client());
        let models = ModelSource::Given(Box::new(move |_| Some(Arc::clone(&model) as Arc<dyn Model>)));
        let dataset = Dataset::from_config(&loaded, &engine, &models, &post).unwrap();
        dataset.preview(rows).unwrap().preview().await.unwrap()
    })
}

fn echo() -> Arc<ScriptedModel> {
    scripted(|request, _| Ok(format!("<{}>", request.messages.last().unwrap().text)))
}

#[test]
fn text_is_never_taken_for_json() {
    let text = r#"
columns:
  - {name: word, column_type: sampler, sampler_type: category, params: {values: ["true", "1e3", "null", "[1]"]}}
  - {name: shown, column_type: expression, expr: "{{ word }}"}
  - {name: length, column_type: expression, expr: "{{ word | length }}", dtype: int}
"#;
    let preview = preview("json", text, 20, 1, echo());
    for row in 0..20 {
        let row = preview.rows.row(row);
        assert_eq!(row.get("shown"), row.get("word"));
        assert_eq!(
            row.get("length"),
            Some(&Value::Int(row.get("word").unwrap().as_text().unwrap().len() as i64))
        );
    }
}

#[test]
fn skips_propagate_and_have_values() {
    let text = r#"
columns:
  - {name: n, column_type: sampler, sampler_type: category, params: {values: [0, 1]}}
  - {name: a, column_type: llm-text, model_alias: m, prompt: "a{{ n }}", skip: {when: "{{ n == 0 }}", value: none yet}}
  - {name: b, column_type: llm-text, model_alias: m, prompt: "b{{ a }}", with_trace: last_message}
  - {name: c, column_type: llm-text, model_alias: m, prompt: "c{{ a }}", propagate_skip: false}
  - {name: d, column_type: expression, expr: "{{ b }}"}
"#;
    let preview = preview("skip", text, 4, 3, echo());
    let rows: Vec<Value> = (0..4).map(|row| preview.rows.row(row)).collect();
    let skipped = rows.iter().find(|row| row.get("n") == Some(&Value::Int(0))).unwrap();
    expect![[r#"{"n":0,"a":"none yet","b":null,"b__trace":null,"c":"<cnone yet>","d":null}"#]]
        .assert_eq(&skipped.to_json());
    let filled = rows.iter().find(|row| row.get("n") == Some(&Value::Int(1))).unwrap();
    expect![[r#"{"n":1,"a":"<a1>","b":"<b<a1>>","b__trace":[{"role":"assistant","content":[{"type":"text","text":"<b<a1>>"}],"reasoning_content":"because"}],"c":"<c<a1>>","d":"<b<a1>>"}"#]]
        .assert_eq(&filled.to_json());
}

#[test]
fn side_effect_columns_can_be_read() {
    let text = r#"
columns:
  - {name: a, column_type: llm-text, model_alias: m, prompt: "Hi {{ n }}", extract_reasoning_content: true}
  - {name: why, column_type: expression, expr: "{{ a__reasoning_content }}!"}
  - {name: n, column_type: sampler, sampler_type: category, params: {values: [7]}, drop: true}
"#;
    let preview = preview("side_effects", text, 1, 3, echo());
    expect![[r#"{"a":"<Hi 7>","a__reasoning_content":"because","why":"because!"}"#]]
        .assert_eq(&shown(&preview));
    assert_eq!(preview.dropped.unwrap().row(0).to_json(), r#"{"n":7}"#);
}

#[test]
fn replies_that_do_not_fit_are_asked_for_again() {
    let text = r#"
run: {max_conversation_restarts: 1, max_conversation_correction_steps: 1}
columns:
  - {name: n, column_type: sampler, sampler_type: category, params: {values: [1]}}
  - name: s
    column_type: llm-structured
    model_alias: m
    prompt: "{{ n }}"
    output_format: {type: object, properties: {x: {type: integer}}, required: [x]}
"#;
    let third = scripted(|_, call| {
        Ok(if call < 3 { "no".to_owned() } else { "```json\n{\"x\": 4, \"y\": 1}\n```".to_owned() })
    });
    let fits = preview("corrected", text, 1, 1, Arc::clone(&third));
    expect![[r#"{"n":1,"s":{"x":4}}"#]].assert_eq(&shown(&fits));
    assert_eq!(third.calls.load(Ordering::Relaxed), 3);
    let never = scripted(|_, _| Ok("no".to_owned()));
    let fails = preview("never", text, 1, 1, Arc::clone(&never));
    assert_eq!((never.calls.load(Ordering::Relaxed), fails.errors[0].attempts), (4, 4));
    assert_eq!((fails.rows.ids.len(), &*fails.errors[0].class), (0, "reply_format"));
}

#[test]
fn an_empty_prompt_names_the_culprit() {
    let text = r#"
columns:
  - {name: e, column_type: sampler, sampler_type: category, params: {values: [""]}}
  - {name: a, column_type: llm-text, model_alias: m, prompt: "{{ e }}"}
"#;
    let preview = preview("empty", text, 1, 1, echo());
    assert_eq!(preview.errors[0].class, "empty_prompt");
    assert!(
        preview.errors[0].message.ends_with("the prompt rendered to nothing: `e` is empty text"),
        "{preview:?}"
    );
}

const SAMPLED: &str = r#"
columns:
  - {name: kind, column_type: sampler, sampler_type: category, params: {values: [cat, dog]}}
  - name: weight
    column_type: sampler
    sampler_type: uniform
    params: {low: 1, high: 10, decimal_places: 1}
    conditional_params: {"kind == 'dog'": {low: 20, high: 40, decimal_places: 1}}
  - {name: low, column_type: sampler, sampler_type: uniform, params: {low: 0, high: 100}, convert_to: int}
  - {name: high, column_type: sampler, sampler_type: uniform, params: {low: 0, high: 100}, convert_to: int}
  - {name: when, column_type: sampler, sampler_type: datetime, params: {start: "2024-01-01", end: "2024-02-01"}, convert_to: "%d.%m.%Y"}
  - {name: later, column_type: sampler, sampler_type: timedelta, params: {dt_min: 1, dt_max: 3, reference_column_name: when}}
  - {name: person, column_type: sampler, sampler_type: person, params: {locale: en_US, age_range: [30, 40]}}
  - {name: text, column_type: llm-text, model_alias: m, prompt: "{{ kind }} {{ person.first_name }}"}
constraints:
  - {target_column: high, operator: gt, rhs: low}
  - {target_column: low, operator: le, rhs: "90"}
model_configs:
  - {alias: m, model: x, provider: openai, inference_parameters: {temperature: {distribution_type: uniform, params: {low: 0.1, high: 0.9}}}}
"#;

#[test]
fn samples_depend_on_the_seed_and_the_row_alone() {
    let few = preview("sampled_few", SAMPLED, 30, 5, echo());
    let many = preview("sampled_many", SAMPLED, 300, 5, echo());
    let other = preview("sampled_other", SAMPLED, 30, 6, echo());
    let rows =
        |preview: &Preview| (0..30).map(|row| preview.rows.row(row).to_json()).collect::<Vec<String>>();
    assert_eq!(rows(&few), rows(&many));
    assert_ne!(rows(&few), rows(&other));
    for row in 0..300 {
        let row = many.rows.row(row);
        let number = |name: &str| row.get(name).unwrap().as_number().unwrap();
        assert!(number("high") > number("low") && number("low") <= 90.0, "{}", row.to_json());
        assert_eq!(row.get("kind").unwrap().as_text() == Some("dog"), number("weight") >= 20.0);
        let age = row.get("person").unwrap().get("age").unwrap().as_number().unwrap();
        assert!((30.0..=40.0).contains(&age));
        assert!(row.get("later").unwrap().as_text().unwrap().starts_with("2024-0"), "{}", row.to_json());
    }
}

#[test]
fn temperatures_are_drawn_per_row() {
    let model = echo();
    preview("temperature", SAMPLED, 50, 5, Arc::clone(&model));
    let seen = model.seen.lock().unwrap();
    let drawn: Vec<f64> = seen.iter().map(|request| request.sampling.temperature.unwrap()).collect();
    assert!(drawn.iter().all(|temperature| (0.1..0.9).contains(temperature)));
    assert!(drawn.iter().any(|temperature| *temperature != drawn[0]));
}

#[test]
fn constraints_that_cannot_hold_say_so() {
    let text = r#"
columns:
  - {name: first, column_type: sampler, sampler_type: uuid, params: {}}
  - {name: x, column_type: sampler, sampler_type: uniform, params: {low: 0, high: 1}}
constraints:
  - {target_column: x, operator: gt, rhs: 5}
"#;
    let preview = preview("impossible", text, 2, 1, echo());
    expect![[r#"
        row 0 column x: constraint after 1: none of 1000 values satisfied `x` > 5; widen the sampler's range or the constraint
        row 1 column x: constraint after 1: none of 1000 values satisfied `x` > 5; widen the sampler's range or the constraint"#]]
    .assert_eq(&shown(&preview));
}

#[test]
fn embeddings_share_requests() {
    let text = r#"
columns:
  - {name: t, column_type: sampler, sampler_type: uuid, params: {}}
  - {name: e, column_type: embedding, target_column: t, model_alias: m}
"#;
    let model = echo();
    let preview = preview("embeddings", text, 100, 1, Arc::clone(&model));
    assert_eq!(preview.rows.ids.len(), 100);
    let first = preview.rows.row(0);
    assert_eq!(
        first.get("e").unwrap().to_json(),
        r#"{"embeddings":[[32.0,0.5]],"num_embeddings":1,"dimension":2}"#
    );
    let requests = model.embed_requests.load(Ordering::Relaxed);
    assert!((4..=10).contains(&requests), "{requests} requests for 100 texts");
}

#[test]
fn a_schema_transform_is_written_beside_the_rows() {
    let text = r#"
columns:
  - {name: q, column_type: sampler, sampler_type: category, params: {values: ['say "hi"']}}
  - {name: hidden, column_type: sampler, sampler_type: category, params: {values: [1]}}
processors:
  - {processor_type: drop_columns, name: drop, column_names: ["[gh]id*"]}
  - processor_type: schema_transform
    name: chat
    template: {messages: [{role: user, content: "{{ q }}"}, {role: system, content: "{{ hidden }}"}], source: demo}
"#;
    let preview = preview("transform", text, 1, 1, echo());
    assert_eq!(shown(&preview), r#"{"q":"say \"hi\""}"#);
    let (name, table) = &preview.processed[0];
    expect![[r#"{"messages":[{"role":"user","content":"say \"hi\""},{"role":"system","content":"1"}],"source":"demo"}"#]]
        .assert_eq(&table.row(0).to_json());
    assert_eq!(name, "chat");
}

#[test]
fn casts_that_fail_cost_their_row() {
    let text = r#"
columns:
  - {name: w, column_type: sampler, sampler_type: category, params: {values: ["12.7", "x", "True"]}}
  - {name: i, column_type: expression, expr: "{{ w }}", dtype: int, on_error: keep_null}
  - {name: b, column_type: expression, expr: "{{ w }}", dtype: bool, on_error: keep_null}
"#;
    let preview = preview("casts", text, 12, 1, echo());
    let mut rows: Vec<String> = (0..12).map(|row| preview.rows.row(row).to_json()).collect();
    rows.sort();
    rows.dedup();
    expect![[r#"
        {"w":"12.7","i":12,"b":true}
        {"w":"True","i":null,"b":true}
        {"w":"x","i":null,"b":null}"#]]
    .assert_eq(&rows.join("\n"));
}

/// The example of the documentation is built as it stands there.
#[test]
fn the_worked_example_builds() {
    let page = include_str!("../../../../docs/datasets.md");
    let example = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let model = Arc::new(anabranch_model::Demo::new());
    let loaded = load("worked", example, 7);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let preview = runtime.block_on(async {
        let engine = Engine::new(&Config::default()).unwrap();
        let post: Arc<dyn Post> = Arc::new(crate::kit::client());
        let models = ModelSource::Given(Box::new(move |_| Some(Arc::clone(&model) as Arc<dyn Model>)));
        Dataset::from_config(&loaded, &engine, &models, &post)
            .unwrap()
            .preview(40)
            .unwrap()
            .preview()
            .await
            .unwrap()
    });
    assert_eq!((preview.rows.ids.len(), preview.errors.len()), (40, 0), "{:?}", preview.errors);
    let escalated =
        (0..40).filter(|row| preview.rows.row(*row).get("escalate") == Some(&Value::Bool(true))).count();
    let skipped = (0..40)
        .filter(|row| preview.rows.row(*row).get("answer") == Some(&Value::from("(escalated)")))
        .count();
    assert!(escalated == skipped && escalated > 0, "{escalated} {skipped}");
}
