//! Bytes on disk per recipe.

use std::path::Path;

use anabranch_recipe::{Address, DerivaRecipe, Executor, FunctionId, Functions, Recipe, UnknownFunction};
use futures_util::StreamExt;

/// Recipes per run; large enough that files and folders of an empty store do not count.
const COUNT: u64 = 100_000;

/// The most bytes on disk per recipe.
const MOST: u64 = 700;

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let bytes = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => bytes_in(&entry.path()),
        false => entry.metadata().unwrap().len(),
    };
    entries.map(bytes).sum()
}

fn recipe(number: u64) -> Recipe {
    let function = FunctionId::new("measured", "1.0.0");
    let recipe = Recipe::new(function, vec![Address::of(&number.to_le_bytes())]);
    recipe.with("from", format!("word {number}")).with("to", "another")
}

/// Puts recipes with one input and two parameters each, and checks the bytes per recipe that the closed store has.
async fn check(name: &str, put: impl AsyncFn(&Executor, u64)) {
    let folder = std::env::temp_dir().join(format!("anabranch-recipe-bytes-{name}-{}", std::process::id()));
    let executor = Executor::open(&folder, Functions::builtin()).await.unwrap();
    let (executor_ref, put) = (&executor, &put);
    let puts = futures_util::stream::iter(0..COUNT).map(|number| put(executor_ref, number));
    puts.buffer_unordered(1024).collect::<()>().await;
    executor.store().clone().close().await.unwrap();
    let each = bytes_in(&folder) / COUNT;
    std::fs::remove_dir_all(&folder).unwrap();
    assert!((100..=MOST).contains(&each), "{each} bytes per recipe");
}

#[tokio::test]
async fn a_recipe_takes_few_bytes() {
    check("ours", async |executor, number| {
        assert!(executor.add(&recipe(number), UnknownFunction::Accept).await.unwrap().new);
    })
    .await;
}

#[tokio::test]
async fn a_recipe_of_deriva_takes_few_bytes() {
    check("deriva", async |executor, number| {
        let Recipe { function, inputs, .. } = recipe(number);
        let params = [("from", format!("word {number}")), ("to", "another".to_owned())];
        let params = params.map(|(name, text)| (name.to_owned(), text)).into();
        executor.deriva().put_recipe(&DerivaRecipe { function, inputs, params }).await.unwrap();
    })
    .await;
}
