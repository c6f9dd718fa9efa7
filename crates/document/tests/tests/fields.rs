//! Fields of a table.

use anabranch_document::{Format, Limits, Notes, parse};
use expect_test::expect;

#[test]
fn every_problem_is_told_with_its_place() {
    let text = "name: 5\ncount: 1.5\nrate: fast\nfast: yes\ntags: [a, 1]\nlist: x\nkind: rde\nneeded: null\ncolour: red\n";
    let mut notes = Notes::new("f.yaml", text);
    let root = parse(Format::Yaml, Limits::default(), &mut notes).unwrap();
    let mut fields = notes.fields(&root, "a thing").unwrap();
    assert_eq!(fields.text("name", &mut notes), None);
    assert_eq!(fields.int("count", &mut notes), None);
    assert_eq!(fields.float("rate", &mut notes), None);
    assert_eq!(fields.bool("fast", &mut notes), None);
    assert_eq!(fields.texts("tags", &mut notes).unwrap().len(), 1);
    assert!(fields.list("list", &mut notes).is_none());
    assert_eq!(fields.choice("kind", &[("red", 1), ("blue", 2)], &mut notes), None);
    assert!(fields.need("needed", &mut notes).is_none());
    assert!(fields.need("absent", &mut notes).is_none());
    assert!(fields.get("color").is_none());
    fields.finish(&mut notes);
    notes.warn(&(0..4), "odd", "mend it");
    let problems = notes.problems();
    assert_eq!(problems.warnings.len(), 1);
    expect![[r#"
        f.yaml:1:1: a thing needs `absent`
        f.yaml:1:7: `name` is text, this is a number (put it in quotes)
        f.yaml:2:8: `count` is a whole number, this is a number
        f.yaml:3:7: `rate` is a number, this is text
        f.yaml:4:7: `fast` is `true` or `false`, this is text
        f.yaml:5:11: an element of `tags` is text, this is a number (put it in quotes)
        f.yaml:6:7: `list` is a list, this is text
        f.yaml:7:7: `kind` is `red` or `blue`, this is `rde` (did you mean `red`?)
        f.yaml:8:1: a thing needs `needed`
        f.yaml:9:1: a thing has no `colour` (did you mean `color`?)"#]]
    .assert_eq(&problems.to_string());
}

#[test]
fn of_many_problems_the_first_hundred_are_told() {
    let text = "x\n".repeat(500);
    let mut notes = Notes::new("f", &text);
    (0..500).for_each(|line| notes.hint(&(line * 2..line * 2 + 1), "wrong", None));
    assert!(notes.is_full());
    assert_eq!(notes.errors(), 500);
    let problems = notes.problems();
    assert_eq!(problems.errors.len(), 101);
    assert_eq!(problems.errors[100].to_string(), "f: and 400 more problems");
}

#[test]
fn the_root_must_be_a_table() {
    let mut notes = Notes::new("f", "[1]");
    let root = parse(Format::Json, Limits::default(), &mut notes).unwrap();
    assert!(notes.fields(&root, "a thing").is_none());
    expect!["f:1:1: a thing is a table of fields, this is a list"].assert_eq(&notes.problems().to_string());
}
