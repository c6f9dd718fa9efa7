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
        &expect![[r#"
            data.yaml:9:36: alias `a` is there already (give one of them another alias)
            data.yaml:9:80: `temperature` is between 0 and 2, this is 3
            data.yaml:9:90: `top_p` is between 0 and 1, this is -1
            data.yaml:9:106: `max_tokens` is between 1 and 4294967295, this is 0
            data.yaml:9:132: `max_parallel_requests` is between 1 and 100000, this is 0
            data.yaml:9:144: `timeout` is in seconds, more than 0 and at most 86400, this is 0
            data.yaml:10:6: model `b` needs `model`
            data.yaml:10:57: `inference_parameters` has no `temperatur` (did you mean `temperature`?)
            data.yaml:11:118: `low` is less than `high`, these are 1 and 0.5
            data.yaml:12:129: `temperature` is between 0 and 2, this is 5
            data.yaml:12:142: there is one weight per value, none is negative, and one is more than 0
            data.yaml:13:84: `generation_type` is `chat-completion`, `embedding` or `image`, this is `chat`
            data.yaml:13:107: `encoding_format` is `float` or `base64`, this is `hex`
            data.yaml:15:25: `localhost` is not an address of HTTP (it begins with `http://` or `https://` and a host)
            data.yaml:15:51: `provider_type` is `openai` or `anthropic`, this is `azure`
            data.yaml:16:37: provider `p` has no `key` (it has name, endpoint, provider_type, api_key, extra_body, extra_headers)
            data.yaml:17:12: provider `p` is there already"#]],
    );
    refused(
        &with("model_configs: [{alias: a, model: x}]\n"),
        &expect![
            "data.yaml:6:18: model `a` needs `provider` (nvidia, openai and openrouter are there; others go into `providers`)"
        ],
    );
    refused(
        &with(&format!(
            "{COLUMNS}model_configs:
  - {{alias: writer, model: x, provider: openai, inference_parameters: {{dimensions: 3}}}}
  - {{alias: vectors, model: x, provider: openai, inference_parameters: {{temperature: 1}}}}
"
        )),
        &expect![[r#"
            data.yaml:9:41: model `writer` is used for chat and has parameters for embeddings (give the embedding column a model of its own)
            data.yaml:10:42: model `vectors` is used for embeddings and has parameters for chat (give the embedding column a model of its own)"#]],
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
    let with_models = |models: &str| {
        let mut setting = Setting { models: Some(("models.yaml", models)), ..Setting::default() };
        Config::parse("data.yaml", &text, &mut setting)
    };
    let (_, warnings) =
        with_models("model_configs: [{alias: vectors, model: e5, provider: opnrouter}]\n").unwrap();
    expect![[r#"
        data.yaml:8:55: there is no provider `p` (declare it in `providers` with `name` and `endpoint`, here or in a models file (--models))
        models.yaml:1:55: there is no provider `opnrouter` (did you mean `openrouter`?)"#]]
    .assert_eq(&super::lines(&warnings));
    let refused = |models: &str| super::lines(&with_models(models).unwrap_err().errors);
    expect![[r#"
        models.yaml:1:1: a models file has no `models` (it has model_configs, providers, prices, default)
        models.yaml:1:1: the file has neither `model_configs` nor `providers` (it needs one of them)"#]]
    .assert_eq(&refused("models: []\n"));
}
