use oxc_allocator::Allocator;
use oxc_parser::config::TokensParserConfig;
use oxc_parser::{Kind, Parser};
use oxc_span::SourceType;
use proptest::prelude::*;

use super::programs::program;
use super::{made, wrong};
use crate::syntax::Unit;

/// Every name in the code that is from the source maps back to it, in the same order.
fn names_map_back(source: &str, unit: &Unit) {
    let allocator = Allocator::default();
    let parser = Parser::new(&allocator, &unit.code, SourceType::mjs()).with_config(TokensParserConfig);
    let (mut line, mut column, mut done, mut last) = (1, 1, 0, 0);
    for word in parser.parse().tokens.iter() {
        for byte in unit.code[done..word.start() as usize].bytes() {
            (line, column) = if byte == b'\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        done = word.start() as usize;
        let name = &unit.code[done..word.end() as usize];
        let original = unit.original(line, column);
        assert!(original >= last, "{name} is before what it follows\n{source}\n--\n{}", unit.code);
        last = original;
        let there = &source[original as usize..];
        if word.kind() == Kind::Ident && !name.starts_with("__ab_") {
            // The name in an expanded compound assignment is new, and so is the one that `typeof` tests first.
            let new = there.starts_with("typeof")
                || there.find('=').is_some_and(|at| at < 4) && !there.starts_with(char::is_alphabetic);
            assert!(there.starts_with(name) || new, "{name} is not at {there:?}\n--\n{}", unit.code);
        }
    }
}

/// Parts of texts that mean something together.
const PIECES: [&str; 64] = [
    "a",
    "b",
    "Key",
    "P",
    "EP",
    "E",
    "x",
    "1",
    "'s'",
    "`t${",
    "}`",
    "/r/",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ".",
    "?.",
    ",",
    ";",
    ":",
    "?",
    "!",
    "=",
    "=>",
    "+",
    "-",
    "*",
    "**",
    "+=",
    "&&",
    "||=",
    "??",
    "in",
    "as",
    "satisfies",
    "type",
    "interface",
    "enum",
    "declare",
    "abstract",
    "class",
    "extends",
    "implements",
    "function",
    "async",
    "await",
    "yield",
    "return",
    "if",
    "else",
    "for",
    "import",
    "export",
    "default",
    "from",
    "take",
    "\n",
    "// c\n",
    "/* c */",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn programs_become_javascript(program in program()) {
        let (unit, _) = made(&program.typed).map_err(|faults| TestCaseError::fail(format!("{faults:?}")))?;
        prop_assert_eq!(wrong(&unit.code), None, "{}\n--\n{}", program.typed, unit.code);
        names_map_back(&program.typed, &unit);
    }

    #[test]
    fn any_text_ends(text in "\\PC{0,60}") {
        let _ = made(&text);
    }

    #[test]
    fn any_words_end(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40)) {
        let text = pieces.join(" ");
        if let Ok((unit, _)) = made(&text) {
            names_map_back(&text, &unit); prop_assert_eq!(wrong(&unit.code), None, "{}", unit.code);
        }
    }

    #[test]
    fn broken_programs_end(program in program(), at in any::<prop::sample::Index>(), new in "\\PC{0,2}") {
        let mut letters: Vec<char> = program.typed.chars().collect();
        let at = at.index(letters.len().max(1)).min(letters.len());
        let end = (at + 1).min(letters.len());
        letters.splice(at..end, new.chars());
        let text = letters.into_iter().collect::<String>(); if let Ok((unit, _)) = made(&text) { prop_assert_eq!(wrong(&unit.code), None, "{}", unit.code); }
    }
}

/// Left-leaning expressions are walked in a loop, and no part is visited once per outer part.
#[test]
fn long_chains() {
    for (first, next) in [
        ("a", "+a"),
        ("a", ".b"),
        ("a", "()"),
        ("a", "&&b"),
        ("a", "!"),
        ("a", " as A"),
        ("a", "[b]"),
        ("Key", ".b"),
        ("a", ".take({b:1})"),
        ("a", "`b`"),
        ("let a", ",b=1"),
        ("a", ";b+c"),
        ("a", "\n+b"),
        ("f(a", ",a"),
    ] {
        let mut text = first.to_owned() + &next.repeat((1 << 20) / next.len());
        if first == "f(a" {
            text.push(')');
        }
        let (unit, _) = made(&text).map_err(|faults| format!("{next}: {:?}", faults.first())).unwrap();
        assert!(unit.code.len() >= text.len() / 8, "{next}");
    }
}
