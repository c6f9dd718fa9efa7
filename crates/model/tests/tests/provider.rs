//! Keys and numbers of configurations.

use anabranch_model::{ApiKey, ChatParams, Number, ProxySettings};
use expect_test::expect;

#[test]
fn a_key_is_a_variable_or_itself() {
    let lookup = |name: &str| (name == "MY_KEY").then(|| " sk-1 \n".to_owned());
    let resolve = |key: &str| ApiKey::new(key).resolve("acme", lookup);
    assert_eq!(resolve("MY_KEY").unwrap().expose(), "sk-1");
    assert_eq!(resolve("sk-literal").unwrap().expose(), "sk-literal");
    expect![
        "the environment variable `OTHER_KEY2` is not set: it should hold the API key of provider `acme`"
    ]
    .assert_eq(&resolve("OTHER_KEY2").unwrap_err().to_string());
    let empty = ApiKey::new("K").resolve("acme", |_| Some(" ".to_owned()));
    expect!["the environment variable `K` is empty: it should hold the API key of provider `acme`"]
        .assert_eq(&empty.unwrap_err().to_string());
    assert_eq!(format!("{:?}", ApiKey::new("sk-1")), "ApiKey(..)");
}

#[test]
fn numbers_are_drawn_from_their_distribution() {
    assert_eq!(Number::Fixed(0.3).resolve(|| unreachable!()), 0.3);
    assert_eq!(Number::Uniform { low: 1.0, high: 3.0 }.resolve(|| 0.25), 1.5);
    let choice = |weights| Number::Choice { values: vec![1.0, 2.0, 3.0], weights };
    assert_eq!(choice(None).resolve(|| 0.34), 2.0);
    assert_eq!(choice(Some(vec![1.0, 0.0, 1.0])).resolve(|| 0.5), 3.0);
    assert_eq!(choice(Some(vec![1.0, 0.0, 1.0])).resolve(|| 0.49), 1.0);
    let params = ChatParams { temperature: Some(choice(None)), top_p: None, max_tokens: Some(9) };
    let sampling = params.resolve(|| 0.0);
    assert_eq!((sampling.temperature, sampling.top_p, sampling.max_tokens), (Some(1.0), None, Some(9)));
}

#[test]
fn proxies_come_from_variables_of_either_case() {
    let settings = ProxySettings::from_variables(|name| match name {
        "http_proxy" => Some("http://user:secret@proxy:1".to_owned()),
        "ALL_PROXY" => Some("http://all:2".to_owned()),
        "NO_PROXY" => Some("localhost".to_owned()),
        _ => None,
    });
    assert_eq!(settings.https.as_deref(), Some("http://all:2"));
    assert!(!format!("{settings:?}").contains("secret"));
}
