//! The recipe part of the demo: the same graph is requested twice.

use std::collections::BTreeMap;

use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_recipe::{
    Executor, FileBytes, FileFormat, Functions, Get, RecipeFile, Source, UnknownFunction,
};
use anabranch_text::{count, duration};

use crate::failure::Failure;
use crate::table::Table;

/// Six megabytes of text, compressed, and the digests of both.
const GRAPH: &str = r#"
blob:
  word: { text: "anabranch " }
  plain: { text: "  sha256 of the text    " }
  small: { text: "\n  sha256 of it packed   " }
recipe:
  page: { function: concat/1.0.0, inputs: [plain, digest_hex, small, packed_hex] }
  digest_hex: { function: hex_encode/1.0.0, inputs: [digest] }
  digest: { function: sha256/1.0.0, inputs: [text] }
  packed_hex: { function: hex_encode/1.0.0, inputs: [packed_digest] }
  packed_digest: { function: sha256/1.0.0, inputs: [packed] }
  packed: { function: gzip_compress/1.0.0, inputs: [text] }
  text: { function: repeat/1.0.0, inputs: [word], params: { count: 600000 } }
"#;

/// Requests the graph's page twice, and describes the time that it took.
pub(super) async fn told() -> Result<String, Failure> {
    let functions = Functions::builtin();
    let file = RecipeFile::parse("demo.yaml", GRAPH, FileFormat::Yaml, &functions, UnknownFunction::Refuse)?;
    let executor = Executor::in_memory(functions)?;
    let mut blobs = Vec::new();
    for blob in &file.blobs {
        let FileBytes::Here(bytes) = &blob.bytes else { return Err(Failure::of("the demo names no files")) };
        blobs.push(executor.put(bytes.clone()).await?.address);
    }
    let added = executor
        .add_all(&file.drafts(&blobs, &BTreeMap::new(), &BTreeMap::new()), UnknownFunction::Refuse)
        .await?;
    let place = file.recipes.iter().position(|recipe| recipe.name == "page");
    let page = added[place.ok_or_else(|| Failure::of("the demo has a page"))?].address;

    let mut table = Table::new(["get", "source of the value", "time"]);
    let mut value = Vec::new();
    for asked in ["first", "again"] {
        let began = SystemClock.now();
        let got = executor.get(&page, &Get::default()).await?;
        let source = match got.source {
            Source::Computed(recipes) => format!("computed, with {}", count(recipes, "recipe")),
            Source::Memo | Source::Blob => "memo: nothing was computed".to_owned(),
        };
        value = got.bytes().await?.to_vec();
        table.row([asked.to_owned(), source, duration::format(SystemClock.now() - began)]);
    }
    executor.store().clone().close().await?;
    Ok(format!(
        "\nRecipes: functions of blobs and of each other, each computed once. A graph of {} recipes, requested twice:\n\n\
         {}\n{}\n",
        file.recipes.len(),
        table.text(2),
        String::from_utf8_lossy(&value),
    ))
}
