//! Parameters are declared as data: the check, the defaults and the readers follow the declarations.

use std::collections::BTreeMap;

use anabranch_recipe::{
    Address, Executor, FunctionId, Functions, Get, Param, ParamKind, Params, Recipe, Signature,
    UnknownFunction, Value, call,
};
use bytes::Bytes;

fn functions() -> Functions {
    let mut functions = Functions::none();
    let signature = Signature::new(FunctionId::new("show", "1"), "The parameters, as they are read.")
        .needs("count", ParamKind::int(-5, 5), "how many")
        .may("share", ParamKind::Float { least: 0.0, most: 1.0 }, 0.5, "which part")
        .may("deep", ParamKind::Bool, false, "whether to look inside")
        .may("mode", ParamKind::one_of(&["fast", "small"]), "fast", "how hard it tries")
        .may("salt", ParamKind::Bytes { least: 0, most: 2 }, "ff", "bytes")
        .may("names", ParamKind::list(ParamKind::Text, 1), vec!["a"], "names")
        .param(Param::new("more", ParamKind::Map, "anything").or(BTreeMap::new()));
    functions.add_whole_as(signature, |_, arguments| {
        let (count, share, deep) =
            (arguments.int("count")?, arguments.float("share")?, arguments.flag("deep")?);
        let (mode, salt, names) =
            (arguments.text("mode")?, arguments.bytes("salt")?, arguments.texts("names")?);
        let more = arguments.map("more")?.len();
        Ok(format!("{count} {share} {deep} {mode} {salt:?} {names:?} {more}").into())
    });
    functions
}

fn shown(params: &[(&str, Value)]) -> String {
    let functions = functions();
    let function = functions.get(&"show/1".parse().unwrap()).unwrap();
    let params: Params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    match call(function, &[vec![Bytes::new()]], &params) {
        Ok(chunks) => String::from_utf8(chunks.concat()).unwrap(),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn readers_give_values_and_defaults() {
    assert_eq!(shown(&[("count", 3.into())]), r#"3 0.5 false fast b"\xff" ["a"] 0"#);
    let all = [
        ("count", "-3".into()),
        ("share", "0.25".into()),
        ("deep", "true".into()),
        ("mode", "small".into()),
        ("salt", Bytes::from_static(b"z").into()),
        ("names", vec!["x", "y"].into()),
        ("more", BTreeMap::from([("k".to_owned(), Value::from(1))]).into()),
    ];
    assert_eq!(shown(&all), r#"-3 0.25 true small b"z" ["x", "y"] 1"#);
}

#[test]
fn what_a_declaration_does_not_allow_is_refused() {
    let rows: [(&str, Value, &str); 11] = [
        ("count", 6.into(), "6 is not a whole number, -5 to 5"),
        ("count", "six".into(), "\"six\" is not a whole number, -5 to 5"),
        ("count", 1.5.into(), "1.5 is not a whole number, -5 to 5"),
        ("share", 2.into(), "2 is not a number, 0 to 1"),
        ("share", "NaN".into(), "\"NaN\" is not a number, 0 to 1"),
        ("deep", "yes".into(), "\"yes\" is not true or false"),
        ("mode", "slow".into(), "\"slow\" is not `fast` or `small`"),
        ("salt", "abc".into(), "\"abc\" is not 0 to 2 bytes, or hex digits"),
        ("salt", "aabbcc".into(), "\"aabbcc\" is not 0 to 2 bytes, or hex digits"),
        ("names", Value::List(Vec::new()), "a list of 0 is not a list of texts, one or more"),
        ("more", "text".into(), "\"text\" is not a map"),
    ];
    for (name, value, problem) in rows {
        let mut params = vec![("count", Value::from(1))];
        params.retain(|(known, _)| *known != name);
        params.push((name, value));
        assert_eq!(shown(&params), format!("parameter `{name}`: {problem}"));
    }
    assert_eq!(shown(&[]), "parameter `count`: missing: a whole number, -5 to 5 (how many)");
}

/// A recipe with a wrong parameter fails before its input is read.
#[tokio::test]
async fn a_recipe_is_checked_before_it_is_computed() {
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let leaf = executor.put("abc").await.unwrap().address;
    let take = |bytes: Value| Recipe::new(FunctionId::new("take", "1.0.0"), vec![leaf]).with("bytes", bytes);
    let refused = executor.add(&take(true.into()), UnknownFunction::Refuse).await.unwrap_err();
    assert!(refused.to_string().contains("parameter `bytes`: true is not a whole number"), "{refused}");
    let added: Address = executor.add(&take(2.into()), UnknownFunction::Refuse).await.unwrap().address;
    let got = executor.get(&added, &Get::default()).await.unwrap();
    assert_eq!(got.bytes().await.unwrap(), "ab");
}

/// Each default is what the declaration allows, and each parameter says what it means.
#[test]
fn declarations_of_builtin_functions_hold() {
    for function in Functions::builtin().list() {
        let signature = function.signature();
        for param in &signature.params {
            let place = format!("{} {}", signature.id, param.name);
            assert!(param.default.as_ref().is_none_or(|value| param.kind.takes(value)), "{place}");
            assert!(!param.about.is_empty() && !param.about.ends_with('.'), "{place}");
        }
    }
}
