//! From a place in a value to a place in the file.

use anabranch_document::{Format, Limits, Node, Places, Tree, place_in_scalar};
use anabranch_text::position;

use crate::parsed;

/// Every `<` of the value must be found at a `<` of the file, in order.
fn check(format: Format, text: &str) {
    let root = parsed(format, text, Limits::default()).expect("a text that can be read");
    let Tree::Table(table) = &root.value else { panic!("a table") };
    let Node { at, value: Tree::Text(value) } = &table[0].1 else { panic!("text") };
    let wanted: Vec<usize> = text.match_indices('<').map(|(at, _)| at).collect();
    let found: Vec<usize> =
        value.match_indices('<').filter_map(|(inside, _)| place_in_scalar(text, at, value, inside)).collect();
    assert_eq!(found, wanted, "{text}\nvalue {value:?}");
}

#[test]
fn each_style_is_mapped() {
    check(Format::Yaml, "a: one <two\n");
    check(Format::Yaml, "a: one <two\n  folded <three\n\n  <four\nb: 1\n");
    check(Format::Yaml, "a: 'it''s <two\n\n  <three'\n");
    check(Format::Yaml, "a: \"x\\n <a \\\"q\\\" \\u0041\\\n   \\ <b\\t<c\\\\ <d\"\n");
    check(Format::Yaml, "a: |\n  first <x\n\n    <y\n  <z\n");
    check(Format::Yaml, "a: |2-  # why\n    <x\n  <z\n");
    check(Format::Yaml, "a: |\n  \"first\" <x\n  'b' <y\n");
    check(Format::Yaml, "a: |\n  'it' | <x\n  > 'b' <y\n");
    check(Format::Yaml, "a: >\n  first <x\n  more <y\n\n  <z\n");
    check(Format::Json, "{\"a\": \"\\u00e4\\ud83d\\ude00 <x \\/ <y\\n<z\"}");
}

#[test]
fn an_alias_has_no_inside() {
    let text = "x: &x 'a'\ny: *x\n";
    let at = text.find('*').unwrap();
    assert_eq!(place_in_scalar(text, &(at..at + 2), "a", 0), None);
    assert_eq!(place_in_scalar(text, &(900..901), "a", 0), None);
}

#[test]
fn places_agree_with_counting() {
    let text = "東京 \n".repeat(40) + &"x".repeat(3_000) + "\nä\n" + &"é".repeat(2_000);
    let places = Places::of(&text);
    for at in (0..=text.len()).step_by(7) {
        assert_eq!(places.position(&text, at), position(&text, at), "{at}");
    }
}
