//! Regexes have RE2's meaning, and a request's pattern cannot hold a worker up.

use std::path::Path;
use std::time::Duration;

use anabranch_engine::Check;
use anabranch_plan::expr::Expr;
use anabranch_plan::expr::{Filter, Name, Pattern, Pred};
use anabranch_plan::{Config, Engine, Problems, Registries, Request};
use anabranch_rows::{Batch, Column, Key, Rows};
use proptest::prelude::*;
use serde_json::json;

use crate::expr_world::{filter, no_params, param, text, with_scope};

/// Which of the texts a pattern is found in.
fn found(pattern: &str, flags: &str, texts: &[&str]) -> Vec<bool> {
    let json = json!({"op": "regex", "key": "country", "pattern": {"kind": "literal", "value": pattern}, "flags": flags});
    let filter = filter(&json).unwrap_or_else(|problems| panic!("{pattern}: {problems}"));
    let rows = Rows::new(Batch::with_columns(
        (1..=texts.len() as i64).collect::<Vec<_>>(),
        vec![(Key(13), Column::texts(texts.iter().map(|text| Some(*text))))],
    ));
    let passing = filter.select(&rows, &no_params(), &Check::never()).unwrap();
    (0..texts.len() as u32).map(|row| passing.contains(&row)).collect()
}

#[test]
fn a_plan_in_json_has_re2s_meaning() {
    assert_eq!(found(r"^\w+$", "", &["Uni", "Ünï"]), [true, false]);
    assert_eq!(found(r"^\w+$", "i", &["UNI", "Ünï"]), [true, false]);
    assert_eq!(found("^[a&&b]$", "", &["&", "a", "c"]), [true, true, false]);
    assert_eq!(found("^[[a]b]$", "", &["[b]", "a"]), [true, false]);
    assert_eq!(found(r"\<a", "", &["<a", "a"]), [true, false]);
    assert_eq!(found("^x{,3}$", "", &["x{,3}", "xx"]), [true, false]);
    assert_eq!(found(r"\Q.\E", "", &[".", "a"]), [true, false]);
}

/// A pattern with its meaning, told apart from how it is written.
#[derive(Clone, Debug)]
enum Part {
    Set(String, fn(char) -> bool),
    Literal(char, bool),
    Seq(Vec<Part>),
    Either(Box<Part>, Box<Part>),
    Repeat(Box<Part>, usize, Option<usize>, String),
    Start,
    End,
    Boundary,
}

impl Part {
    fn written(&self) -> String {
        match self {
            Part::Set(text, _) => text.clone(),
            Part::Literal(letter, false) if letter.is_alphanumeric() => letter.to_string(),
            Part::Literal(letter, false) => format!("\\{letter}"),
            Part::Literal(letter, true) => format!("\\Q{letter}\\E"),
            Part::Seq(parts) => parts.iter().map(Part::written).collect(),
            Part::Either(a, b) => format!("({}|{})", a.written(), b.written()),
            Part::Repeat(part, _, _, operator) => format!("(?:{}){operator}", part.written()),
            Part::Start => "^".to_owned(),
            Part::End => "$".to_owned(),
            Part::Boundary => "\\b".to_owned(),
        }
    }

    /// Where it can end if it begins at `at`.
    fn ends(&self, text: &[char], at: usize) -> Vec<usize> {
        let one = |matches: bool| if matches { vec![at] } else { Vec::new() };
        let letter = |test: &dyn Fn(char) -> bool| match text.get(at) {
            Some(letter) if test(*letter) => vec![at + 1],
            _ => Vec::new(),
        };
        match self {
            Part::Set(_, has) => letter(has),
            Part::Literal(own, _) => letter(&|other| other == *own),
            Part::Seq(parts) => parts
                .iter()
                .fold(vec![at], |from, part| distinct(from.into_iter().flat_map(|at| part.ends(text, at)))),
            Part::Either(a, b) => distinct([a, b].into_iter().flat_map(|part| part.ends(text, at))),
            Part::Repeat(part, least, most, _) => {
                let mut now = vec![at];
                let mut all = if *least == 0 { now.clone() } else { Vec::new() };
                // What can be repeated without end is repeated as often as the text is long.
                for times in 1..=most.unwrap_or(least + text.len() + 1) {
                    now = distinct(now.into_iter().flat_map(|at| part.ends(text, at)));
                    if times >= *least {
                        all.extend(&now);
                    }
                }
                distinct(all)
            }
            Part::Start => one(at == 0),
            Part::End => one(at == text.len()),
            Part::Boundary => {
                let word = |at: Option<usize>| {
                    at.and_then(|at| text.get(at))
                        .is_some_and(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                };
                one(word(at.checked_sub(1)) != word(Some(at)))
            }
        }
    }
}

fn distinct(places: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut places: Vec<usize> = places.into_iter().collect();
    places.sort_unstable();
    places.dedup();
    places
}

fn part() -> impl Strategy<Value = Part> {
    let set = |text: &str, has: fn(char) -> bool| Part::Set(text.to_owned(), has);
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_space = |letter: char| matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{c}');
    let sets = vec![
        set(".", |letter| letter != '\n'),
        set(r"\w", is_word),
        set(r"\W", move |letter| !(letter.is_ascii_alphanumeric() || letter == '_')),
        set(r"[[:word:]]", is_word),
        set(r"\s", is_space),
        set(r"[^\s]", |letter| !matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{c}')),
        set(r"\d", |letter| letter.is_ascii_digit()),
        set(r"[\D1]", |letter| !letter.is_ascii_digit() || letter == '1'),
        set(r"[a&&é]", |letter| matches!(letter, 'a' | '&' | 'é')),
        set(r"[]\[-]", |letter| matches!(letter, ']' | '[' | '-')),
        set(r"[^a\101]", |letter| !matches!(letter, 'a' | 'A')),
        set(r"\x{e9}", |letter| letter == 'é'),
        set(r"[à-ï]", |letter| ('à'..='ï').contains(&letter)),
        set(r"\141", |letter| letter == 'a'),
        set("{", |letter| letter == '{'),
    ];
    let letters = vec!['a', 'A', 'é', '1', '_', '&', '[', ']', '{', '}', '<', '-', '.'];
    let leaf = prop_oneof![
        4 => prop::sample::select(sets),
        4 => (prop::sample::select(letters), any::<bool>()).prop_map(|(letter, quoted)| Part::Literal(letter, quoted)),
        1 => prop::sample::select(vec![Part::Start, Part::End, Part::Boundary]),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let repeats = vec![
            (0, None, "*"),
            (1, None, "+"),
            (0, Some(1), "?"),
            (2, Some(2), "{2}"),
            (1, None, "{1,}"),
            (0, Some(2), "{0,2}?"),
            (0, None, "*?"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Part::Seq),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Part::Either(Box::new(a), Box::new(b))),
            (inner, prop::sample::select(repeats)).prop_map(|(part, (least, most, operator))| {
                Part::Repeat(Box::new(part), least, most, operator.to_owned())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn patterns_mean_what_their_parts_mean(part in part(), texts in prop::collection::vec("[aAé1_&\\[\\]{}<. \\n-]{0,6}", 1..6)) {
        let pattern = part.written();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let matches = |text: &&str| {
            let letters: Vec<char> = text.chars().collect();
            (0..=letters.len()).any(|at| !part.ends(&letters, at).is_empty())
        };
        let expected: Vec<bool> = texts.iter().map(matches).collect();
        prop_assert_eq!(found(&pattern, "", &texts), expected, "{} in {:?}", pattern, texts);
    }

    /// Any text is a pattern or an error, never a panic.
    #[test]
    fn any_text_is_a_pattern_or_an_error(pattern in r"([a(\[\]\\){}|*+?^$.:<>,0-9xpPQEdDbCi&-]|é){0,24}") {
        let pred = Pred::Regex {
            text: Box::new(Expr::Key(Name::Id(13))),
            pattern: Pattern::Literal(pattern),
            ignore_case: false,
        };
        let mut problems = Problems::default();
        let filter = with_scope(|scope| Filter::compile(&pred, scope, "p", &mut problems));
        prop_assert_eq!(filter.is_some(), problems.is_fine());
    }
}

#[test]
fn a_pattern_that_is_not_kept_has_a_cost_and_one_that_is_has_none() {
    let json = json!({"op": "regex", "key": "country", "pattern": {"kind": "param", "param": "pattern"}, "flags": "i"});
    let filter = filter(&json).unwrap();
    let params = param(4, text(r"\bus\b|fr"));
    assert!(filter.setup(&params) > Duration::from_micros(100), "more than is done in place");
    assert_eq!(filter.setup(&no_params()), Duration::ZERO, "refused at once");
    filter.select(&crate::expr_world::rows(), &params, &Check::never()).unwrap();
    assert_eq!(filter.setup(&params), Duration::ZERO);
}

fn engine() -> Engine {
    let keys = r#"key = [{ key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
        { key_id = 2, name = "word", type = "string", nullable = true }]"#;
    let params = r#"param = [{ param_id = 1, name = "muted", type = "string", nullable = true }]"#;
    let (registries, _) = Registries::parse([("keys.toml", keys), ("params.toml", params)], None).unwrap();
    Engine::load(Config::new(registries, Vec::new())).unwrap()
}

/// 80 kB of Unicode classes took seconds and hundreds of megabytes to compile, on the thread that answers everybody.
#[tokio::test]
async fn a_huge_pattern_of_a_request_is_refused_by_its_length() {
    let engine = engine();
    let plan = json!({
        "schema_version": 1, "plan_name": "test", "outputs": ["kept"],
        "nodes": [
            {"node_id": "rows", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
            {"node_id": "named", "op": "core::vm", "inputs": ["rows"], "params": {"out_key": 2, "expr_id": "word"}},
            {"node_id": "kept", "op": "core::filter", "inputs": ["named"], "params": {"pred_id": "muted"}},
        ],
        "expr_table": {"word": {"op": "const_string", "value": "music"}},
        "pred_table": {"muted": {"op": "not", "x": {"op": "regex", "key_id": 2, "pattern": {"kind": "param", "param_id": 1}}}},
    });
    let plan = engine.compile(&plan.to_string(), Path::new("")).unwrap_or_else(|error| panic!("{error}"));
    let run = async |pattern: String| {
        let request = json!({"user_id": 1, "param_overrides": {"muted": pattern}});
        let request = Request::parse(request.to_string(), engine.registries()).unwrap();
        plan.run(request).await.map(|answer| answer.candidates().count()).map_err(|error| error.to_string())
    };
    assert_eq!(
        run("\\pL".repeat(27_000)).await,
        Err("node `kept` (core::filter): parameter `muted` is not a regex that can be used: \
             the pattern has 81000 bytes; it may have 1024"
            .to_owned())
    );
    assert_eq!(
        run("\\pL".repeat(300)).await,
        Err("node `kept` (core::filter): parameter `muted` is not a regex that can be used: \
             the pattern has 300 classes that hold more than ASCII, as `\\pL` and `[^a]` do; it may have 16"
            .to_owned())
    );
    assert_eq!(run("^jazz$".to_owned()).await, Ok(3));
    assert_eq!(run("^mus".to_owned()).await, Ok(0));
}
