//! Recipe files: what they mean, and what is said of wrong ones.

use std::collections::BTreeMap;

use anabranch_recipe::{
    Address, Executor, FileBytes, FileFormat, FileInput, Functions, Get, Problems, RecipeFile,
    UnknownFunction, Value,
};
use expect_test::{Expect, expect};

fn parse(text: &str, format: FileFormat) -> Result<RecipeFile, Problems> {
    RecipeFile::parse("graph", text, format, &Functions::builtin(), UnknownFunction::Refuse)
}

fn refused(text: &str, format: FileFormat, expected: &Expect) {
    expected.assert_eq(&parse(text, format).unwrap_err().to_string());
}

const TOML: &str = r#"
    [recipe.page]
    function = "concat/1.0.0"
    inputs = ["body", "greeting", "ref:footer", "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"]
    ref = "site/page"

    [recipe.body]
    function = "identity/1.0.0"
    inputs = ["greeting"]

    [blob.greeting]
    text = "hello"
    ref = true

    [blob.raw]
    base64 = "AAH/"
"#;

const YAML: &str = "
recipe:
  page:
    function: concat/1.0.0
    inputs:
      - body
      - greeting
      - ref:footer
      - af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262
    ref: site/page
  body: { function: identity/1.0.0, inputs: [greeting] }
blob:
  greeting: { text: hello, ref: true }
  raw: { hex: 00 01 ff }
";

#[test]
fn toml_and_yaml_mean_the_same_in_any_order() {
    let file = parse(TOML, FileFormat::Toml).unwrap();
    assert_eq!(file, parse(YAML, FileFormat::Yaml).unwrap());
    let names: Vec<&str> = file.recipes.iter().map(|recipe| recipe.name.as_str()).collect();
    assert_eq!(names, ["body", "page"], "each behind what it reads");
    let inputs = [
        FileInput::Recipe(0),
        FileInput::Blob(0),
        FileInput::Reference("footer".to_owned()),
        FileInput::Address(Address::of(b"")),
    ];
    assert_eq!(file.recipes[1].inputs, inputs);
    assert_eq!(file.recipes[1].reference.as_deref(), Some("site/page"));
    assert_eq!(file.blobs[0].reference.as_deref(), Some("greeting"));
    assert_eq!(file.blobs[1].bytes, FileBytes::Here(vec![0, 1, 255].into()));
}

#[tokio::test]
async fn a_file_is_added_at_once() {
    let file = parse(TOML, FileFormat::Toml).unwrap();
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let footer = executor.put("bye").await.unwrap().address;
    executor.put("").await.unwrap();
    let mut blobs = Vec::new();
    for blob in &file.blobs {
        let FileBytes::Here(bytes) = &blob.bytes else { panic!("it names no file") };
        blobs.push(executor.put(bytes.clone()).await.unwrap().address);
    }
    assert_eq!(file.references().collect::<Vec<_>>(), ["footer"]);
    let drafts = file.drafts(&blobs, &BTreeMap::from([("footer".to_owned(), footer)]), &BTreeMap::new());
    let added = executor.add_all(&drafts, UnknownFunction::Refuse).await.unwrap();
    let got = executor.get(&added[1].address, &Get::default()).await.unwrap();
    assert_eq!(got.bytes().await.unwrap(), "hellohellobye");
}

#[test]
fn parameters_have_types() {
    let mut functions = Functions::builtin();
    functions.add_whole("any", "1", anabranch_recipe::Arity::at_least(0), |_, _| Ok(Default::default()));
    let text = r#"
        [recipe.all]
        function = "any/1"
        params = { int = 7, float = 0.5, bool = true, text = "7", list = [1, [2]], map = { a = { b = 1 } }, bytes = { hex = "f\tf" }, special = { "$map" = { hex = "ff" } } }
    "#;
    let file =
        RecipeFile::parse("types.toml", text, FileFormat::Toml, &functions, UnknownFunction::Refuse).unwrap();
    let map = |name: &str, value| Value::Map(BTreeMap::from([(name.to_owned(), value)]));
    let expected = [
        ("int", Value::Int(7)),
        ("float", Value::Float(0.5)),
        ("bool", Value::Bool(true)),
        ("text", Value::Text("7".into())),
        ("list", Value::List(vec![Value::Int(1), Value::List(vec![Value::Int(2)])])),
        ("map", map("a", map("b", Value::Int(1)))),
        ("bytes", Value::Bytes(vec![255].into())),
        ("special", map("hex", Value::Text("ff".into()))),
    ];
    assert_eq!(file.recipes[0].params, expected.map(|(name, value)| (name.to_owned(), value)).into());
}

#[test]
fn everything_wrong_is_told_at_once() {
    refused(
        r#"
[blob.greeting]
txt = "hello"

[blob.both]
text = "a"
hex = "0g"

[blob.gone]
file = "no/such.file"

[recipe.shout]
function = "concta/1.0.0"
inputs = ["greetin", 7]

[recipe.first]
function = "concat/1.0.0"
inputs = ["second"]
[recipe.second]
function = "concat/1.0.0"
inputs = ["both", "third"]
[recipe.third]
function = "concat/1.0.0"
inputs = ["first"]
params = { when = 2026-11-15, seperator = "," }

[recipe.both]
function = "identity"
refs = ["x"]

[recipe.few]
function = "identity/1.0.0"
params = { much = 1 }

[recipes.typo]
"#,
        FileFormat::Toml,
        &expect![[r#"
            graph:2:7: blob `greeting` has no bytes (give one of `text`, `file`, `folder`, `base64` or `hex`)
            graph:3:1: a blob has no `txt` (did you mean `text`?)
            graph:7:1: `both` has its bytes twice (give one of `text`, `file`, `folder`, `base64` or `hex`)
            graph:7:7: not hex: invalid symbol at 1
            graph:10:8: `no/such.file`: No such file or directory (os error 2) (files are relative to the recipe file)
            graph:13:12: function `concta/1.0.0` is not known here (did you mean `concat/1.0.0`?)
            graph:14:11: nothing is called `greetin` in this file (did you mean `greeting`?)
            graph:14:22: an input is text, this is a number (put it in quotes)
            graph:16:9: a recipe cannot read itself: `first` reads `second` reads `third` reads `first` (take one of these inputs away)
            graph:25:19: a parameter cannot be a date (write it as text, in quotes)
            graph:25:31: `concat/1.0.0`: parameter `seperator`: unknown; it takes none
            graph:27:9: `both` is declared twice (blobs and recipes share their names; give it another one)
            graph:28:12: "identity" is not a function; write `name/version`
            graph:29:1: a recipe has no `refs` (did you mean `ref`?)
            graph:31:9: `identity/1.0.0`: it takes 1 input, the recipe has 0
            graph:33:12: `identity/1.0.0`: parameter `much`: unknown; it takes none
            graph:35:2: a recipe file has no `recipes` (did you mean `recipe`?)"#]],
    );
}

#[test]
fn broken_texts_say_where() {
    refused(
        "[blob.a]\ntext = \"x\"\ntext = \"y\"\n[blob.b\n",
        FileFormat::Toml,
        &expect![[r#"
            graph:3:1: duplicate key
            graph:4:7: blob `b` has no bytes (give one of `text`, `file`, `folder`, `base64` or `hex`)
            graph:4:8: unclosed table, expected `]`"#]],
    );
    refused(
        "blob:\n  a: {text: x}\n  a: {text: y}\n",
        FileFormat::Yaml,
        &expect!["graph:3:3: duplicate mapping key: a"],
    );
    refused("blob:\n  a: [\n", FileFormat::Yaml, &expect!["graph:2:6: unclosed bracket '['"]);
    refused(
        "- blob\n",
        FileFormat::Yaml,
        &expect![
            "graph:1:1: a recipe file is a table, this is a list (write `blob:` and `recipe:` with entries below them)"
        ],
    );
    refused(
        "recipe:\n  a: {function: concat/1.0.0, params: {x: null}}\n",
        FileFormat::Yaml,
        &expect!["graph:2:43: a parameter cannot be null (leave it out instead)"],
    );
    refused(
        "recipe:\n  a: {function: concat/1.0.0, inputs: a}\n",
        FileFormat::Yaml,
        &expect![[r#"graph:2:39: `inputs` is a list of names, this is text (write ["name"])"#]],
    );
}

#[test]
fn references_are_no_addresses_and_hints_are_near() {
    let address = "0".repeat(64);
    refused(
        &format!("[blob.a]\ntext = \"\"\nref = \"{address}\"\n[recipe.b]\nfunction = \"foo/1\"\n"),
        FileFormat::Toml,
        &expect![[r#"
            graph:3:7: `0000000000000000000000000000000000000000000000000000000000000000` would be read as an address (choose another name)
            graph:5:12: function `foo/1` is not known here (`anabranch recipe functions` lists them)"#]],
    );
}

#[test]
fn files_of_any_depth_and_any_number_of_problems() {
    let chain = |count: usize, first: &str| {
        let link = |at: usize| {
            let input = if at == 0 { first.to_owned() } else { format!("r{}", at - 1) };
            format!("[recipe.r{at}]\nfunction = \"identity/1.0.0\"\ninputs = [\"{input}\"]\n")
        };
        // Declared from the last to the first.
        (0..count).rev().map(link).collect::<String>()
    };
    let file = parse(&format!("{}[blob.b]\ntext = \"\"\n", chain(20_000, "b")), FileFormat::Toml).unwrap();
    assert_eq!(file.recipes.last().unwrap().name, "r19999");
    let around = parse(&chain(20_000, "r19999"), FileFormat::Toml).unwrap_err();
    expect!["graph:1:9: a recipe cannot read itself: `r19999` reads `r19998` reads `r19997` reads `r19996` reads `r19995` reads `r19994` reads `r19993` reads `r19992` reads 19992 more reads `r19999` (take one of these inputs away)"].assert_eq(&around.to_string());
    let wrong = (0..300).map(|at| format!("[recipe.r{at}]\ninputs = [\"x\"]\n")).collect::<String>();
    let wrong = parse(&wrong, FileFormat::Toml).unwrap_err();
    assert_eq!(wrong.errors.len(), 101);
    assert_eq!(wrong.errors[100].to_string(), "graph: and 500 more problems");
}
