//! Deriva's recipes and addresses.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_content::Collect;
use anabranch_recipe::{
    Address, DerivaRecipe, Error, Executor, FunctionId, Functions, Get, Invalidate, Reach, Recipe, Source,
    UnknownFunction,
};

fn executor() -> Executor {
    Executor::in_memory(Functions::builtin()).unwrap()
}

fn theirs(function: &str, inputs: &[Address]) -> DerivaRecipe {
    let (inputs, params) = (inputs.to_vec(), BTreeMap::new());
    DerivaRecipe { function: FunctionId::new(function, "1.0.0"), inputs, params }
}

async fn get(executor: &Executor, theirs: &Address) -> Result<String, Error> {
    let ours = executor.deriva().find(theirs).await?;
    let bytes = executor.get(&ours, &Get::default()).await?.bytes().await?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

/// Little endian, eight bytes a length, four bytes a tag: as Deriva's serialiser has it.
#[test]
fn an_address_is_the_hash_of_derivas_encoding() {
    let mut recipe = theirs("take", &[Address::of(b"x")]);
    recipe.params.insert("bytes".to_owned(), "5".to_owned());
    let mut bytes = Vec::new();
    bytes.extend(4u64.to_le_bytes());
    bytes.extend(b"take");
    bytes.extend(5u64.to_le_bytes());
    bytes.extend(b"1.0.0");
    bytes.extend(1u64.to_le_bytes());
    bytes.extend(Address::of(b"x").as_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.extend(5u64.to_le_bytes());
    bytes.extend(b"bytes");
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.extend(b"5");
    assert_eq!(recipe.encode(), bytes);
    assert_eq!(recipe.address(), Address::of(&bytes));
    assert_eq!(DerivaRecipe::decode(&bytes), Some(recipe));
    bytes.pop();
    assert_eq!(DerivaRecipe::decode(&bytes), None);
}

#[tokio::test]
async fn what_both_put_is_computed_once() {
    let executor = executor();
    let leaf = executor.put("same").await.unwrap().address;
    let recipe = theirs("identity", &[leaf]);
    let address = executor.deriva().put_recipe(&recipe).await.unwrap();
    assert_eq!(address, recipe.address());
    assert_eq!(get(&executor, &address).await.unwrap(), "same");
    let ours = Recipe::new(FunctionId::new("identity", "1.0.0"), vec![leaf]);
    let added = executor.add(&ours, UnknownFunction::Refuse).await.unwrap();
    assert!(!added.new);
    let got = executor.get(&added.address, &Get::default()).await.unwrap();
    assert_eq!(got.source, Source::Memo);
    assert_eq!(executor.deriva().theirs(&added.address).await.unwrap(), address);
}

/// In Deriva a leaf with a recipe's canonical bytes is served in the recipe's place.
#[tokio::test]
async fn no_blob_takes_a_recipes_place() {
    let executor = executor();
    let leaf = executor.put("right").await.unwrap().address;
    let recipe = theirs("identity", &[leaf]);
    let shadow = executor.put(recipe.encode()).await.unwrap().address;
    assert_eq!(shadow, recipe.address());
    let address = executor.deriva().put_recipe(&recipe).await.unwrap();
    assert_eq!(get(&executor, &address).await.unwrap(), "right");
    assert_eq!(executor.deriva().resolve(&address).await.unwrap(), Some(recipe));
    assert_eq!(executor.deriva().resolve(&leaf).await.unwrap(), None);
}

#[tokio::test]
async fn inputs_may_come_later() {
    let executor = executor();
    let deriva = executor.deriva();
    let leaf = Address::of(b"late");
    let below = theirs("identity", &[leaf]);
    let above = deriva.put_recipe(&theirs("concat", &[below.address(), leaf])).await.unwrap();
    assert!(matches!(get(&executor, &above).await, Err(Error::NotFound { .. })));
    deriva.put_recipe(&below).await.unwrap();
    executor.put("late").await.unwrap();
    assert_eq!(get(&executor, &above).await.unwrap(), "latelate");
}

#[tokio::test]
async fn pins_are_told_in_derivas_addresses() {
    let executor = executor();
    let deriva = executor.deriva();
    let leaf = executor.put("pinned").await.unwrap().address;
    let recipe = deriva.put_recipe(&theirs("identity", &[leaf])).await.unwrap();
    assert!(deriva.pin(&recipe).await.unwrap());
    assert!(!deriva.pin(&recipe).await.unwrap());
    assert!(deriva.pin(&leaf).await.unwrap());
    let mut expected = vec![recipe, leaf];
    expected.sort();
    let mut pins = deriva.pins(100).await.unwrap();
    pins.sort();
    assert_eq!(pins, expected);
    let stats = executor.store().stats();
    assert_eq!((stats.derivations, stats.blobs, stats.pins), (1, 1, 2));
    assert!(deriva.unpin(&recipe).await.unwrap());
    assert_eq!(deriva.pins(100).await.unwrap(), [leaf]);
}

#[tokio::test]
async fn the_table_is_none_of_what_is_made_from_a_recipe() {
    let executor = executor();
    let deriva = executor.deriva();
    let leaf = executor.put("below").await.unwrap().address;
    let below = deriva.put_recipe(&theirs("identity", &[leaf])).await.unwrap();
    let above = deriva.put_recipe(&theirs("identity", &[below])).await.unwrap();
    get(&executor, &above).await.unwrap();
    let terms = Invalidate { reach: Reach::Dependents, ..Invalidate::default() };
    let done = executor.invalidate(&leaf, &terms).await.unwrap();
    assert_eq!((done.forgotten, done.looked_at, done.depth), (2, 3, 2));
}

/// Whatever was put first, what was made from what is known.
#[tokio::test]
async fn a_recipe_that_was_put_before_its_input_depends_on_it() {
    let executor = executor();
    let deriva = executor.deriva();
    let leaf = executor.put("late").await.unwrap().address;
    let below = theirs("identity", &[leaf]);
    let above = deriva.put_recipe(&theirs("concat", &[below.address()])).await.unwrap();
    deriva.put_recipe(&below).await.unwrap();
    get(&executor, &above).await.unwrap();
    let terms = Invalidate { reach: Reach::Dependents, ..Invalidate::default() };
    let done = executor.invalidate(&leaf, &terms).await.unwrap();
    assert_eq!((done.forgotten, done.looked_at, done.depth), (2, 3, 2));
}

#[tokio::test]
async fn a_pin_holds_inputs_that_came_later() {
    let executor = executor();
    let deriva = executor.deriva();
    let leaf = executor.put("late").await.unwrap().address;
    let below = theirs("identity", &[leaf]);
    let above = deriva.put_recipe(&theirs("concat", &[below.address()])).await.unwrap();
    deriva.pin(&above).await.unwrap();
    deriva.put_recipe(&below).await.unwrap();
    let terms = Collect { grace: Duration::ZERO, ..Collect::default() };
    executor.store().collect(terms).await.unwrap();
    assert_eq!(get(&executor, &above).await.unwrap(), "late");
}
