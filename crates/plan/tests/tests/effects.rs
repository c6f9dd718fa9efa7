//! The values of effects, with more or fewer parameters known.

use anabranch_plan::effects::{Gamma, WritesEval};
use anabranch_plan::op::{Effect, Ops};
use expect_test::{Expect, expect};

/// `out` names key 2001 and `mode` is `fast`, or nothing is known.
struct KnownParams(bool);

impl Gamma for KnownParams {
    fn key(&self, param: &str) -> Option<u32> {
        (self.0 && param == "out").then_some(2001)
    }

    fn word(&self, param: &str) -> Option<&str> {
        (self.0 && param == "mode").then_some("fast")
    }

    fn named(&self, name: &str) -> Option<u32> {
        (name == "country").then_some(3001)
    }
}

fn check(effect: Effect, expect: Expect) {
    let show = |eval: WritesEval| eval.to_json().to_string();
    let (known, unknown) = (show(effect.eval(&KnownParams(true))), show(effect.eval(&KnownParams(false))));
    expect.assert_eq(&format!("{}\nknown   {known}\nunknown {unknown}", effect.to_json()));
}

#[test]
fn keys() {
    check(
        Effect::Keys(&[3, 1, 3]),
        expect![[r#"
        {"key_ids":[1,3],"kind":"Keys"}
        known   {"keys":[1,3],"kind":"Exact"}
        unknown {"keys":[1,3],"kind":"Exact"}"#]],
    );
    check(
        Effect::Named("country"),
        expect![[r#"
        {"kind":"Named","name":"country"}
        known   {"keys":[3001],"kind":"Exact"}
        unknown {"keys":[3001],"kind":"Exact"}"#]],
    );
    check(
        Effect::Named("nothing"),
        expect![[r#"
        {"kind":"Named","name":"nothing"}
        known   {"keys":[],"kind":"Unknown"}
        unknown {"keys":[],"kind":"Unknown"}"#]],
    );
    check(
        Effect::FromParam("out"),
        expect![[r#"
        {"kind":"FromParam","param":"out"}
        known   {"keys":[2001],"kind":"Exact"}
        unknown {"keys":[],"kind":"Unknown"}"#]],
    );
    check(
        Effect::Unknown,
        expect![[r#"
        {"kind":"Unknown"}
        known   {"keys":[],"kind":"Unknown"}
        unknown {"keys":[],"kind":"Unknown"}"#]],
    );
}

#[test]
fn unions() {
    check(
        Effect::Union(&[]),
        expect![[r#"
        {"items":[],"kind":"Union"}
        known   {"keys":[],"kind":"Exact"}
        unknown {"keys":[],"kind":"Exact"}"#]],
    );
    check(
        Effect::Union(&[Effect::Keys(&[2]), Effect::Keys(&[1, 2])]),
        expect![[r#"
        {"items":[{"key_ids":[2],"kind":"Keys"},{"key_ids":[1,2],"kind":"Keys"}],"kind":"Union"}
        known   {"keys":[1,2],"kind":"Exact"}
        unknown {"keys":[1,2],"kind":"Exact"}"#]],
    );
    check(
        Effect::Union(&[Effect::Keys(&[2]), Effect::FromParam("out")]),
        expect![[r#"
        {"items":[{"key_ids":[2],"kind":"Keys"},{"kind":"FromParam","param":"out"}],"kind":"Union"}
        known   {"keys":[2,2001],"kind":"Exact"}
        unknown {"keys":[],"kind":"Unknown"}"#]],
    );
}

#[test]
fn switches() {
    check(
        Effect::Switch("mode", &[]),
        expect![[r#"
        {"cases":{},"kind":"SwitchEnum","param":"mode"}
        known   {"keys":[],"kind":"Unknown"}
        unknown {"keys":[],"kind":"Exact"}"#]],
    );
    check(
        Effect::Switch("mode", &[("fast", Effect::Keys(&[5])), ("exact", Effect::Keys(&[6, 5]))]),
        expect![[r#"
            {"cases":{"exact":{"key_ids":[5,6],"kind":"Keys"},"fast":{"key_ids":[5],"kind":"Keys"}},"kind":"SwitchEnum","param":"mode"}
            known   {"keys":[5],"kind":"Exact"}
            unknown {"keys":[5,6],"kind":"May"}"#]],
    );
    check(
        Effect::Switch("mode", &[("exact", Effect::Keys(&[6]))]),
        expect![[r#"
        {"cases":{"exact":{"key_ids":[6],"kind":"Keys"}},"kind":"SwitchEnum","param":"mode"}
        known   {"keys":[],"kind":"Unknown"}
        unknown {"keys":[6],"kind":"May"}"#]],
    );
    check(
        Effect::Switch("mode", &[("fast", Effect::Keys(&[6])), ("slow", Effect::Unknown)]),
        expect![[r#"
        {"cases":{"fast":{"key_ids":[6],"kind":"Keys"},"slow":{"kind":"Unknown"}},"kind":"SwitchEnum","param":"mode"}
        known   {"keys":[6],"kind":"Exact"}
        unknown {"keys":[],"kind":"Unknown"}"#]],
    );
    check(
        Effect::Union(&[Effect::Keys(&[9]), Effect::Switch("mode", &[("fast", Effect::Keys(&[6]))])]),
        expect![[r#"
            {"items":[{"key_ids":[9],"kind":"Keys"},{"cases":{"fast":{"key_ids":[6],"kind":"Keys"}},"kind":"SwitchEnum","param":"mode"}],"kind":"Union"}
            known   {"keys":[6,9],"kind":"Exact"}
            unknown {"keys":[6,9],"kind":"May"}"#]],
    );
}

#[test]
fn no_op_writes_ids() {
    for op in Ops::builtin().iter() {
        let eval = op.spec().writes.eval(&KnownParams(false));
        if let WritesEval::Exact(keys) | WritesEval::May(keys) = eval {
            assert!(!keys.contains(&1), "{}", op.spec().name);
        }
    }
}
