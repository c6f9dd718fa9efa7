//! The dataset that all contenders build: two samplers, `a` that reads them, `b` that reads `a`, `c` that reads the
//! samplers, and an expression of `b` and `c`. Three calls per row.

/// Calls that a row needs.
pub(super) const CALLS_PER_ROW: u64 = 3;

pub(super) const MODEL: &str = "scripted";

const TOPICS: usize = 40;
const TONES: usize = 25;

/// The configuration, in the form that DataDesigner reads as well. The provider is in a file of its own there.
pub(super) fn config(parallel: usize) -> String {
    let list = |name: &str, count: usize| {
        (0..count).map(|number| format!("{name} {number}")).collect::<Vec<_>>().join(", ")
    };
    let (topics, tones) = (list("topic", TOPICS), list("tone", TONES));
    format!(
        r#"columns:
  - {{name: topic, column_type: sampler, sampler_type: category, params: {{values: [{topics}]}}}}
  - {{name: tone, column_type: sampler, sampler_type: category, params: {{values: [{tones}]}}}}
  - name: a
    column_type: llm-text
    model_alias: writer
    prompt: "Write a paragraph about {{{{ topic }}}}. The style is {{{{ tone }}}}; about sixty words, no headings, no lists."
  - name: b
    column_type: llm-text
    model_alias: writer
    prompt: "Sum up this paragraph, and say what it leaves out: {{{{ a }}}}"
  - name: c
    column_type: llm-text
    model_alias: writer
    prompt: "Which questions does a reader have about {{{{ topic }}}}? Ask three of them in the style {{{{ tone }}}}."
  - name: both
    column_type: expression
    expr: "{{{{ b }}}} / {{{{ c }}}}"
model_configs:
  - alias: writer
    model: {MODEL}
    provider: bench
    skip_health_check: true
    inference_parameters: {{max_parallel_requests: {parallel}}}
"#
    )
}

/// The file with the provider.
pub(super) fn providers(port: u16) -> String {
    let endpoint = endpoint(port);
    format!("providers:\n  - {{name: bench, endpoint: '{endpoint}', provider_type: openai, api_key: none}}\n")
}

pub(super) fn endpoint(port: u16) -> String {
    format!("http://127.0.0.1:{port}/v1")
}

pub(super) fn topic(row: u64) -> String {
    format!("topic {}", row % TOPICS as u64)
}

pub(super) fn tone(row: u64) -> String {
    format!("tone {}", row / TOPICS as u64 % TONES as u64)
}

pub(super) fn prompt_a(topic: &str, tone: &str) -> String {
    format!("Write a paragraph about {topic}. The style is {tone}; about sixty words, no headings, no lists.")
}

pub(super) fn prompt_b(a: &str) -> String {
    format!("Sum up this paragraph, and say what it leaves out: {a}")
}

pub(super) fn prompt_c(topic: &str, tone: &str) -> String {
    format!("Which questions does a reader have about {topic}? Ask three of them in the style {tone}.")
}
