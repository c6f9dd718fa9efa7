//! Models and providers.

use anabranch_dataset::Config;
use anabranch_dataset::config::{MissingKey, Setting};
use anabranch_model::{Generation, Number, ProviderKind};
use expect_test::expect;

use super::{fine, refused, with};

const COLUMNS: &str = "  - {name: a, column_type: llm-text, prompt: '{{ topic }}', model_alias: writer}
  - {name: b, column_type: embedding, target_column: a, model_alias: vectors}
";

#[test]
fn models_and_providers_are_read() {
    let config = fine(&with(&format!(
        "{COLUMNS}
model_configs:
  - alias: writer
    model: gpt
    provider: here
    skip_health_check: true
    inference_parameters:
      temperature: {{distribution_type: uniform, params: {{low: 0.5, high: 1}}}}
      top_p: {{distribution_type: manual, params: {{values: [0.5, 1], weights: [1, 3]}}}}
      max_tokens: 100
      max_parallel_requests: 32
      timeout: 5
      extra_body: {{seed: 1}}
  - {{alias: vectors, model: e5, provider: openai}}
providers:
  - {{name: here, endpoint: 'http://localhost:8000/v1', provider_type: anthropic, api_key: sk-literal, extra_headers: {{X-A: b}}}}
"
    )));
    let writer = &config.models[0];
    let Generation::Chat(chat) = &writer.params.kind else { panic!("chat") };
    assert_eq!(chat.temperature, Some(Number::Uniform { low: 0.5, high: 1.0 }));
    assert_eq!(chat.top_p, Some(Number::Choice { values: vec![0.5, 1.0], weights: Some(vec![1.0, 3.0]) }));
    assert_eq!((writer.params.max_parallel_requests, writer.params.timeout.as_secs()), (32, 5));
    assert!(matches!(config.models[1].params.kind, Generation::Embedding(_)), "as it is used");
    assert_eq!(config.models[1].params.max_parallel_requests, 4);
    assert_eq!(config.providers[0].kind, ProviderKind::Anthropic);
    assert_eq!(config.providers[0].api_key.as_ref().unwrap().expose(), "sk-literal");
    assert_eq!(config.providers[1].endpoint, "https://api.openai.com/v1");
    assert_eq!(
        config.missing_keys,
        [MissingKey { provider: "openai".into(), variable: "OPENAI_API_KEY".into() }]
    );
    assert_eq!(config.aliases_without_model(), [""; 0]);
    assert!(!format!("{config:?}").contains("sk-literal"));
}

#[test]
fn problems_of_models_and_providers() {
    refused(
        &with(
            "
model_configs:
  - {alias: a, model: x, provider: opnai}
  - {alias: a, model: x, provider: openai, inference_parameters: {temperature: 3, top_p: -1, max_tokens: 0, max_parallel_requests: 0, timeout: 0}}
  - {alias: b, provider: openai, inference_parameters: {temperatur: 1}}
  - {alias: c, model: x, provider: openai, inference_parameters: {temperature: {distribution_type: uniform, params: {low: 1, high: 0.5}}}}
  - {alias: d, model: x, provider: openai, inference_parameters: {temperature: {distribution_type: manual, params: {values: [1, 5], weights: [1]}}}}
  - {alias: e, model: x, provider: openai, inference_parameters: {generation_type: chat, encoding_format: hex}}
providers:
  - {name: p, endpoint: localhost, provider_type: azure}
  - {name: p, endpoint: 'http://x', key: 1}
  - {name: p, endpoint: 'http://y'}
",
        ),
        &expect![""],
    );
    refused(&with("model_configs: [{alias: a, model: x}]\n"), &expect![""]);
    refused(
        &with(&format!(
            "{COLUMNS}model_configs:
  - {{alias: writer, model: x, provider: openai, inference_parameters: {{dimensions: 3}}}}
  - {{alias: vectors, model: x, provider: openai, inference_parameters: {{temperature: 1}}}}
"
        )),
        &expect![""],
    );
}

#[test]
fn a_models_file_adds_what_the_configuration_has_not() {
    let text = with(&format!("{COLUMNS}model_configs: [{{alias: writer, model: own, provider: p}}]\n"));
    let models = "
model_configs:
  - {alias: writer, model: other}
  - {alias: vectors, model: e5}
providers:
  - {name: p, endpoint: 'http://one', api_key: P_KEY}
  - {name: q, endpoint: 'http://two', api_key: Q_KEY}
default: q
";
    let environment = |name: &str| (name == "P_KEY").then(|| "secret".to_owned());
    let mut setting = Setting {
        models: Some(("models.yaml", models)),
        environment: Some(&environment),
        ..Setting::default()
    };
    let (config, warnings) = Config::parse("data.yaml", &text, &mut setting).unwrap();
    assert_eq!(warnings, []);
    let found: Vec<[&str; 3]> =
        config.models.iter().map(|model| [&*model.alias, &*model.model, &*model.provider]).collect();
    assert_eq!(found, [["writer", "own", "p"], ["vectors", "e5", "q"]]);
    assert_eq!(config.providers[0].api_key.as_ref().unwrap().expose(), "secret");
    assert_eq!(config.missing_keys, [MissingKey { provider: "q".into(), variable: "Q_KEY".into() }]);
    let refused = |models: &str| {
        let mut setting = Setting { models: Some(("models.yaml", models)), ..Setting::default() };
        Config::parse("data.yaml", &text, &mut setting).unwrap_err().to_string()
    };
    expect![""].assert_eq(&refused("model_configs: [{alias: vectors, model: e5, provider: opnrouter}]\n"));
    expect![""].assert_eq(&refused("models: []\n"));
}
