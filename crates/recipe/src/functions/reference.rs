//! Checks that the tables in `docs/functions.md` match the code. `UPDATE_EXPECT=1` rewrites them.

use std::fmt::Write as _;
use std::path::Path;

use anabranch_text::size;

use super::NOT_HERE;
use crate::registry::Functions;
use crate::signature::Signature;

/// Separates the text written by hand from the generated tables below it.
const MARK: &str = "<!-- from here on, the code writes this page -->\n";

#[test]
fn the_page_of_functions_is_what_the_code_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/functions.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let (by_hand, _) = page.split_once(MARK).expect("the page has a mark");
    expect_test::expect_file![file].assert_eq(&format!("{by_hand}{MARK}{}", tables()));
}

fn tables() -> String {
    let functions = Functions::builtin();
    let all: Vec<&Signature> = functions.list().map(|function| function.signature()).collect();
    let (aliases, own): (Vec<&Signature>, Vec<&Signature>) =
        all.into_iter().partition(|signature| signature.id.version == "1.0");
    let mut page = String::new();
    writeln!(page, "\n## All functions\n").unwrap();
    writeln!(page, "| function | inputs | parameters | memory | cost | meaning |\n|---|---|---|---|---|---|")
        .unwrap();
    own.iter().for_each(|signature| row(&mut page, signature));
    writeln!(page, "\n## Differences from Deriva\n\n| function | difference |\n|---|---|").unwrap();
    for signature in own.iter().filter(|signature| !signature.unlike_deriva.is_empty()) {
        writeln!(page, "| `{}` | {} |", signature.id, cell(&signature.unlike_deriva)).unwrap();
    }
    writeln!(page, "\n## Deriva's streaming functions\n").unwrap();
    writeln!(page, "| id | is | parameters | difference |\n|---|---|---|---|").unwrap();
    for signature in aliases {
        let is = signature.about.split('`').nth(1).expect("an alias names its function");
        let difference = cell(&signature.unlike_deriva);
        writeln!(page, "| `{}` | `{is}` | {} | {difference} |", signature.id, params(signature)).unwrap();
    }
    writeln!(page, "\nNot here:\n\n| names behind `streaming_` | why |\n|---|---|").unwrap();
    for (why, names) in NOT_HERE {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        writeln!(page, "| {} | {why} |", names.join(", ")).unwrap();
    }
    page
}

fn row(page: &mut String, signature: &Signature) {
    let (id, inputs) = (&signature.id, signature.inputs.to_string().replace("any number of", "any"));
    let meaning = signature.about.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let (params, memory, cost) = (params(signature), memory(signature), signature.cost_in_words());
    writeln!(page, "| `{id}` | {inputs} | {params} | {memory} | {cost} | {} |", cell(meaning)).unwrap();
}

/// What a call holds, and the memory that it is granted before it begins.
fn memory(signature: &Signature) -> String {
    let need = &signature.memory;
    let mut words = format!("{}: {}", signature.memory_in_words(), size::format(need.base));
    let per_input_byte = need.per_input_byte + need.claims_per_input_byte;
    if need.per_input > 0 {
        write!(words, " + {} per input", size::format(need.per_input)).unwrap();
    }
    if per_input_byte > 0 {
        write!(words, " + {per_input_byte} × input").unwrap();
    }
    words
}

fn params(signature: &Signature) -> String {
    let param = |param: &crate::Param| cell(&format!("`{}`: {param}", param.name));
    signature.params.iter().map(param).collect::<Vec<_>>().join("<br>")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Each of Deriva's hundred streaming functions either has an alias here or is listed with the reason why it has none.
#[test]
fn all_streaming_functions_of_deriva_are_accounted_for() {
    let functions = Functions::builtin();
    let here = functions.list().filter(|function| function.signature().id.version == "1.0").count();
    let missing: usize = NOT_HERE.iter().map(|(_, names)| names.len()).sum();
    assert_eq!(here + missing, 100);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipe-service.md");
    let page = std::fs::read_to_string(file).unwrap();
    for count in
        [format!("{here} of the 100 `streaming_*` functions"), format!("the {missing} missing functions")]
    {
        assert!(page.contains(&count), "docs/recipe-service.md lacks: {count}");
    }
    for name in NOT_HERE.iter().flat_map(|(_, names)| *names) {
        let id = format!("streaming_{name}/1.0").parse().unwrap();
        assert!(functions.get(&id).is_none(), "{id}");
    }
}
