//! All decoders of untrusted recipes, parameters and templates, as functions of arbitrary bytes. The fuzzers in `fuzz/`
//! and the tests on a stable compiler share them. They panic when a decoder violates one of its guarantees.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use anabranch_content::Value;
use bytes::Bytes;

use crate::budget::CallBudget;
use crate::deriva::DerivaRecipe;
use crate::drive::call_within;
use crate::executor::UnknownFunction;
use crate::file::{FileFormat, FileInput, RecipeFile};
use crate::function::{Fault, Function};
use crate::params_json::{JsonBudget, ValueAsJson, value_from_json};
use crate::recipe::{FunctionId, Params, Recipe, skim};
use crate::registry::Functions;

pub use crate::deriva::deriva_address;

/// Decodes arbitrary bytes and checks the result.
pub type Decoder = fn(&[u8]);

/// All decoders by name.
pub const ALL: [(&str, Decoder); 5] = [
    ("recipe", recipe),
    ("deriva", deriva),
    ("recipe_file", recipe_file),
    ("params_json", params_json),
    ("template", template),
];

static FUNCTIONS: LazyLock<Functions> = LazyLock::new(Functions::builtin);

/// A recipe that decodes must encode to the same bytes, and the executor's fast decoder must find the same recipe.
pub fn recipe(bytes: &[u8]) {
    let Ok(addresses) = Value::addresses_in(bytes) else { return };
    match (Recipe::decode(bytes), skim(bytes, addresses.len())) {
        (Ok(recipe), Some(skimmed)) => {
            assert_eq!(recipe.encode().as_deref(), Ok(bytes));
            assert_eq!(recipe.inputs, addresses);
            assert_eq!(recipe.function, FunctionId::new(skimmed.name, skimmed.version));
            assert_eq!(recipe.params, skimmed.params);
        }
        (Err(_), None) => {}
        (Ok(recipe), None) => panic!("only `decode` reads {recipe:?}"),
        (Err(error), Some(_)) => panic!("only `skim` reads it: {error}"),
    }
}

/// A recipe of Deriva that decodes must encode to the same bytes.
pub fn deriva(bytes: &[u8]) {
    if let Some(theirs) = DerivaRecipe::decode(bytes) {
        assert_eq!(theirs.encode(), bytes);
    }
}

/// A recipe file, as TOML and as YAML. It is refused with problems, or each of its recipes reads only earlier entries
/// and can be encoded.
pub fn recipe_file(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    for format in [FileFormat::Toml, FileFormat::Yaml] {
        for unknown in [UnknownFunction::Refuse, UnknownFunction::Accept] {
            match RecipeFile::parse("any", text, format, &FUNCTIONS, unknown) {
                Ok(file) => check_file(&file),
                Err(problems) => assert!(!problems.is_fine(), "refused without a problem"),
            }
        }
    }
}

fn check_file(file: &RecipeFile) {
    for (place, recipe) in file.recipes.iter().enumerate() {
        for input in &recipe.inputs {
            match input {
                FileInput::Blob(blob) | FileInput::Inside(blob, _) => {
                    assert!(*blob < file.blobs.len(), "an input is not a blob");
                }
                FileInput::Recipe(before) => assert!(*before < place, "an input comes later"),
                FileInput::Reference(_) | FileInput::Address(_) => {}
            }
        }
        let (function, params) = (recipe.function.clone(), recipe.params.clone());
        let encoded = Recipe { function, inputs: Vec::new(), params }.encode();
        assert!(encoded.is_ok(), "a recipe of the file has no encoding: {encoded:?}");
    }
}

/// The memory budget of the JSON decoder.
const JSON_MEMORY: usize = 1 << 20;

/// A parameter in JSON. A decoded value must survive writing and reading, and must not take more memory than the
/// budget.
pub fn params_json(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(value) = value_from_json(text, &JsonBudget::new(JSON_MEMORY)) else { return };
    assert!(memory_of(&value) <= JSON_MEMORY, "more memory than there is");
    let written = serde_json::to_string(&ValueAsJson(&value)).expect("every value can be written");
    let again = value_from_json(&written, &JsonBudget::new(usize::MAX)).expect("what is written can be read");
    assert_eq!(again, value);
    assert_eq!(serde_json::to_string(&ValueAsJson(&again)).expect("the same value"), written);
}

/// The minimum memory of a value, without the allocator's overhead.
fn memory_of(value: &Value) -> usize {
    let entries = |map: &BTreeMap<String, Value>| {
        map.iter().map(|(key, value)| size_of::<String>() + key.capacity() + memory_of(value)).sum::<usize>()
    };
    size_of::<Value>()
        + match value {
            Value::Text(text) => text.capacity(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => {
                (list.capacity() - list.len()) * size_of::<Value>()
                    + list.iter().map(memory_of).sum::<usize>()
            }
            Value::Map(map) => entries(map),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Address(_) => 0,
        }
}

/// The maximum size of a template's output in this test, in bytes.
const TEMPLATE_OUTPUT: i64 = 1 << 16;

/// Any text as the template of `template/1`. It fails or renders within its bounds, and the output does not depend on
/// how the inputs are split into chunks.
pub fn template(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let function = FUNCTIONS.get(&FunctionId::new("template", "1")).expect("a function of this crate");
    let text_list =
        |texts: &[&str]| Value::List(texts.iter().map(|text| Value::Text((*text).into())).collect());
    let row = [("name", Value::Text("sea".into())), ("count", Value::Int(3)), ("x", Value::Float(0.5))];
    let row = Value::Map(row.map(|(name, value)| (name.to_owned(), value)).into());
    let values = [("row", row), ("list", text_list(&["b", "a", "<c>"])), ("yes", Value::Bool(true))];
    let params: Params = [
        ("template", Value::Text(text.to_owned())),
        ("names", text_list(&["first", "second"])),
        ("values", Value::Map(values.map(|(name, value)| (name.to_owned(), value)).into())),
        ("fuel", Value::Int(20_000)),
        ("max_bytes", Value::Int(TEMPLATE_OUTPUT)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let whole = rendered(function, &[vec!["one\ntwo ü".into()], vec!["3".into()]], &params);
    let cut = ["on", "e\ntwo \u{fc}"].map(Bytes::from).to_vec();
    let again = rendered(function, &[cut, vec!["3".into()]], &params);
    match (whole, again) {
        (Ok(whole), Ok(again)) => {
            assert!(whole.len() as i64 <= TEMPLATE_OUTPUT, "more than it may make");
            assert_eq!(whole, again);
        }
        (Err(whole), Err(again)) => assert_eq!(whole.to_string(), again.to_string()),
        (whole, again) => panic!("{whole:?}, and with its inputs cut {again:?}"),
    }
}

fn rendered(function: &Arc<dyn Function>, inputs: &[Vec<Bytes>], params: &Params) -> Result<Vec<u8>, Fault> {
    let mut output = Vec::new();
    call_within(function, inputs, params, &CallBudget::unlimited(), |chunk| {
        output.extend_from_slice(&chunk);
    })?;
    Ok(output)
}
