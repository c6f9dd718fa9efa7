//! Type declarations: what they look like, and what the real type checker makes of plans with them.

mod own;
mod tsc;

use anabranch_plan::Registries;
use anabranch_plan::op::Ops;
use anabranch_plan_ts::declarations;
use expect_test::expect_file;

/// The part that is the same for all.
const LANGUAGE: &str = include_str!("../../../src/types/language.d.ts");

const REGISTRY: [(&str, &str); 4] = [
    ("keys.toml", include_str!("registry/keys.toml")),
    ("params.toml", include_str!("registry/params.toml")),
    ("endpoints.dev.toml", include_str!("registry/endpoints.dev.toml")),
    ("capabilities.toml", include_str!("registry/capabilities.toml")),
];

fn registries(files: &[(&'static str, &'static str)]) -> Registries {
    Registries::parse(files.iter().copied(), Some("dev")).unwrap().0
}

#[test]
fn declarations_of_a_registry_and_own_ops() {
    let text = declarations(&own::beside(Ops::default()), &registries(&REGISTRY));
    assert!(text.contains(LANGUAGE));
    expect_file!["declared.d.ts"].assert_eq(&text.replace(LANGUAGE, "// (what is the same for all)\n"));
}

#[test]
fn declarations_are_the_same_each_time() {
    let registries = registries(&REGISTRY);
    assert_eq!(declarations(&Ops::builtin(), &registries), declarations(&Ops::builtin(), &registries));
}
