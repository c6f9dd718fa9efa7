//! `docs/typescript.md`: its tables say what the code has. `UPDATE_EXPECT=1` rewrites the table of methods.

use std::fmt::Write as _;
use std::path::PathBuf;

use anabranch_plan::Registries;
use anabranch_plan::op::{Ops, ParamKind, ParamSpec, Spec};
use anabranch_plan_ts::declarations;

const BEGIN: &str = "<!-- methods -->\n";
const END: &str = "<!-- end of methods -->";

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/typescript.md")
}

fn types() -> String {
    let keys = "key = [{ key_id = 1, name = 'id', type = 'int', nullable = false, allow_write = false }]";
    let (registries, _) = Registries::parse([("keys.toml", keys)], None).unwrap();
    declarations(&Ops::builtin(), &registries)
}

/// `group_limit` as `groupLimit`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |made, word| made + &word[..1].to_uppercase() + &word[1..])
}

fn option(spec: &Spec, param: &ParamSpec) -> String {
    let name = match param.kind {
        ParamKind::Expr | ParamKind::Pred => param.name.trim_end_matches("_id"),
        _ => param.name,
    };
    let followed = param.name == "fanout" || (spec.name, param.name) == ("core::fanout", "limit");
    format!("{}{}", camel(name), if param.required && !followed { "" } else { "?" })
}

fn table() -> String {
    let mut table = "| method | options | |\n|---|---|---|\n".to_owned();
    for op in Ops::builtin().iter() {
        let spec = op.spec();
        let (namespace, name) = spec.name.split_once("::").unwrap();
        let of = if spec.inputs > 0 { "rows" } else { "ctx" };
        let space = if namespace == "core" { String::new() } else { format!("{namespace}.") };
        let options: Vec<String> = spec.params.iter().map(|param| option(spec, param)).collect();
        let options = if options.is_empty() { String::new() } else { format!("`{}`", options.join(", ")) };
        let doc = spec.doc.trim_end_matches('.').replace('|', "\\|");
        writeln!(table, "| `{of}.{space}{}` | {options} | {doc} |", camel(name)).unwrap();
    }
    table
}

#[test]
fn every_method_is_in_the_table() {
    let page = std::fs::read_to_string(file()).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let expected = table();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(file(), format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, expected, "UPDATE_EXPECT=1 rewrites the table");
    }
}

/// The table is made here by rules of its own; the types are what the compiler goes by.
#[test]
fn the_types_have_the_methods_of_the_table() {
    let types = types();
    for line in table().lines().skip(2) {
        let method = line.split('`').nth(1).unwrap().rsplit('.').next().unwrap().to_owned();
        assert!(types.contains(&format!("  {method}(options")), "{method}");
        let options = line.split('|').nth(2).unwrap().trim().trim_matches('`');
        for option in options.split(", ").filter(|option| !option.is_empty()) {
            assert!(types.contains(&format!("readonly {option}: ")), "{option} of {method}");
        }
    }
}

/// The options of plans and of nodes, as the types list them.
#[test]
fn every_option_is_in_a_table() {
    let (page, types) = (std::fs::read_to_string(file()).unwrap(), types());
    for (interface, heading) in [
        ("interface PlanOptions {", "## Reference: options of `definePlan`"),
        ("interface NodeOptions {", "## Reference: options of every node"),
    ] {
        let body = types.split_once(interface).unwrap().1.split_once("\n  }").unwrap().0;
        let declared = body.lines().filter_map(|line| line.trim().strip_prefix("readonly "));
        let mut declared: Vec<&str> = declared.map(|line| line.split(['?', ':']).next().unwrap()).collect();
        let rows = page.split_once(heading).unwrap().1.lines().skip_while(|line| !line.starts_with("|---"));
        let rows = rows.skip(1).take_while(|line| line.starts_with('|'));
        let mut listed: Vec<&str> = rows.map(|line| line.split('`').nth(1).unwrap()).collect();
        declared.sort_unstable();
        listed.sort_unstable();
        assert_eq!(declared, listed, "{heading}");
    }
}
