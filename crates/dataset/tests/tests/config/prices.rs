//! Prices: by which name they are found, and what is said of wrong ones.

use anabranch_dataset::Config;
use anabranch_dataset::config::Setting;
use anabranch_dataset::output::Figures;
use expect_test::expect;

use super::{fine, lines, refused, warned, with};

fn priced(prices: &str) -> String {
    let models = "
  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ topic }}.'}
model_configs: [{alias: writer, model: small, provider: here}]
providers: [{name: here, endpoint: 'http://one'}]
";
    with(&format!("{}{prices}\n", &models[1..]))
}

#[test]
fn a_price_has_the_name_of_an_alias_a_model_or_both() {
    let calls = Figures {
        input_tokens: 3_000_000,
        cached_tokens: 1_000_000,
        output_tokens: 500_000,
        ..Figures::default()
    };
    let cost = |prices: &str| {
        let config = fine(&priced(prices));
        config.prices.cost("writer", "here", "small", &calls)
    };
    assert_eq!(cost("prices: {small: {input: 2, output: 10}}"), Some(6.0 + 5.0));
    assert_eq!(
        cost("prices: {here/small: {input: 2, output: 10, cached_input: 0.5}}"),
        Some(4.0 + 0.5 + 5.0)
    );
    assert_eq!(cost("prices: {writer: {input: 1}}"), Some(3.0), "a model of embeddings has no output");
    assert_eq!(cost("prices: {small: {input: 9}, here/small: {input: 5}, writer: {input: 1}}"), Some(3.0));
    assert_eq!(cost("prices: {small: {input: 9}, here/small: {input: 5}}"), Some(15.0));
    assert_eq!(cost(""), None);
}

#[test]
fn the_configuration_wins_over_the_models_file() {
    let models = "
model_configs: [{alias: other, model: large, provider: here}]
prices: {writer: {input: 7}, large: {input: 8}}
";
    let mut setting = Setting { models: Some(("models.yaml", models)), ..Setting::default() };
    let text = priced("prices: {writer: {input: 1}}");
    let (config, warnings) = Config::parse("data.yaml", &text, &mut setting).unwrap();
    assert_eq!(warnings, []);
    let input = |alias: &str, model: &str| config.prices.of(alias, "here", model).map(|price| price.input);
    assert_eq!((input("writer", "small"), input("other", "large")), (Some(1.0), Some(8.0)));
}

#[test]
fn prices_do_not_change_what_a_dataset_is() {
    let digest = |prices: &str| fine(&priced(prices)).digest;
    assert_eq!(digest(""), digest("prices: {writer: {input: 1}}"));
}

#[test]
fn wrong_prices_are_refused() {
    refused(
        &priced("prices: {writer: {input: -1, out: 3}, small: {output: 1}, here/small: 3}"),
        &expect![[r#"
            data.yaml:9:26: `input` is money per million tokens, from 0 to 1000000, this is -1
            data.yaml:9:30: the price of `writer` has no `out` (it has input, output, cached_input)
            data.yaml:9:47: the price of `small` needs `input`
            data.yaml:9:71: the price of `here/small` is a table of fields, this is a number"#]],
    );
    refused(
        &priced("prices: [1]"),
        &expect![
            "data.yaml:9:9: `prices` holds prices by model, such as `gpt: {input: 0.15, output: 0.6}`, this is a list"
        ],
    );
}

#[test]
fn a_price_that_no_model_has_is_told() {
    warned(
        &priced("prices: {smal: {input: 1}}"),
        &expect![
            "data.yaml:9:10: no model is called `smal`, so its price is not used (name an alias, a model or provider/model of: writer (here/small))"
        ],
    );
    let mut setting = Setting {
        models: Some(("models.yaml", "model_configs: []\nprices: {gpt: {input: 1}}\n")),
        ..Setting::default()
    };
    let (_, warnings) = Config::parse("data.yaml", &priced(""), &mut setting).unwrap();
    expect!["models.yaml:2:10: no model is called `gpt`, so its price is not used (name an alias, a model or provider/model of: writer (here/small))"].assert_eq(&lines(&warnings));
}
