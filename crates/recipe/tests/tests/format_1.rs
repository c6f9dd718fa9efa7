//! Stores of format 1, whose recipes over Deriva's service could be bound to the encoding of their input.
//!
//! The folders in `fixtures/` were written by the code of format 1, with segments of 4 KiB. What was put
//! over Deriva's service, in this order:
//!
//! | step | then |
//! |---|---|
//! | put the blob `leaf` and, as a blob, the encoding of `below` | |
//! | put `middle` | it is bound to that blob: wrong, `below` should be read |
//! | put `below`, put `top`, get `top` | wrong bytes are remembered |
//! | put `early`, put `late`, get `early` | `early` was put before its input |
//! | put `early` again | two records for one recipe |
//! | put `waiting` | its input is not there at all |
//! | pin `top`; pin `late_pinned`, then put it | three pins for one recipe; a pin of a recipe that was not there |
//! | pin `leaf`; name `leaf` and (the Deriva address of) `top` | |
//! | add a native recipe over `leaf`, get it, name it | |
//!
//! `format-1` was closed in order. `format-1-crashed` is a copy of the folder while the store was open.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anabranch_recipe::{Address, DerivaRecipe, Executor, FunctionId, Functions, Get, Recipe};

const LEAF: &str = "leaf, ";
const WAITED_FOR: &str = "the blob that `waiting` reads";

fn theirs(function: &str, inputs: &[Address], params: &[(&str, &str)]) -> DerivaRecipe {
    let params: BTreeMap<_, _> =
        params.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    DerivaRecipe { function: FunctionId::new(function, "1.0.0"), inputs: inputs.to_vec(), params }
}

/// The recipes of the fixtures.
struct Recipes {
    leaf: Address,
    below: DerivaRecipe,
    middle: DerivaRecipe,
    top: DerivaRecipe,
    late: DerivaRecipe,
    early: DerivaRecipe,
    waiting: DerivaRecipe,
    late_pinned: DerivaRecipe,
    native: Recipe,
}

impl Recipes {
    fn new() -> Recipes {
        let leaf = Address::of(LEAF.as_bytes());
        let below = theirs("identity", &[leaf], &[]);
        let middle = theirs("identity", &[below.address()], &[]);
        let top = theirs("concat", &[middle.address(), leaf], &[]);
        let late = theirs("uppercase", &[leaf], &[]);
        let early = theirs("concat", &[late.address(), leaf, late.address()], &[]);
        let waiting = theirs("identity", &[Address::of(WAITED_FOR.as_bytes())], &[]);
        let late_pinned = theirs("repeat", &[leaf], &[("count", "3")]);
        let native = Recipe::new(FunctionId::new("concat", "1.0.0"), vec![leaf, leaf]);
        Recipes { leaf, below, middle, top, late, early, waiting, late_pinned, native }
    }

    /// Deriva's addresses, and what must come of them.
    fn values(&self) -> [(&'static str, &DerivaRecipe, &'static str); 6] {
        [
            ("top", &self.top, "leaf, leaf, "),
            ("middle", &self.middle, "leaf, "),
            ("below", &self.below, "leaf, "),
            ("early", &self.early, "LEAF, leaf, LEAF, "),
            ("late", &self.late, "LEAF, "),
            ("late_pinned", &self.late_pinned, "leaf, leaf, leaf, "),
        ]
    }
}

/// The one way to open a store in this file.
async fn open(folder: &Path) -> Executor {
    Executor::open(folder, Functions::builtin()).await.unwrap()
}

/// The one way to close a store in this file.
async fn close(executor: Executor) {
    executor.store().clone().close().await.unwrap();
}

/// A copy of a fixture, removed when dropped.
struct FixtureCopy(PathBuf);

impl FixtureCopy {
    fn of(fixture: &str, test: &str) -> FixtureCopy {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
        let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{fixture}-{test}"));
        let _ = fs::remove_dir_all(&to);
        copy(&from, &to);
        FixtureCopy(to)
    }
}

impl Drop for FixtureCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Copies a folder, of an open store too: what is removed meanwhile is not copied.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => match fs::copy(entry.path(), target) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                copied => drop(copied.unwrap()),
            },
        }
    }
}

/// What an address answers over Deriva's service.
async fn over_deriva(executor: &Executor, theirs: &Address) -> String {
    let ours = executor.deriva().find(theirs).await.unwrap();
    native(executor, &ours).await
}

async fn native(executor: &Executor, address: &Address) -> String {
    let got = executor.get(address, &Get::default()).await.unwrap();
    got.bytes().await.unwrap().escape_ascii().to_string()
}

/// Everything but what changes the store.
async fn check(executor: &Executor) {
    let recipes = Recipes::new();
    let wrong = {
        let mut wrong = Vec::new();
        for (name, recipe, expected) in recipes.values() {
            let got = over_deriva(executor, &recipe.address()).await;
            if got != expected {
                wrong.push(format!("{name}: expected {expected:?}, found {got:?}"));
            }
            let resolved = executor.deriva().resolve(&recipe.address()).await.unwrap();
            assert_eq!(resolved.as_ref(), Some(recipe), "{name}");
        }
        wrong
    };
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(over_deriva(executor, &recipes.leaf).await, LEAF);
    assert_eq!(native(executor, &recipes.native.address().unwrap()).await, "leaf, leaf, ");
    let mut pins = executor.deriva().pins(100).await.unwrap();
    let mut expected = vec![recipes.leaf, recipes.top.address(), recipes.late_pinned.address()];
    pins.sort();
    expected.sort();
    assert_eq!(pins, expected, "what Deriva's service lists");
    assert_eq!(executor.status().store.pins, 3, "what is counted");
}

/// Names mean what they meant, and lead to values.
async fn check_names(executor: &Executor) {
    for (name, expected) in
        [("a leaf", LEAF), ("a native recipe", "leaf, leaf, "), ("a deriva recipe", "leaf, leaf, ")]
    {
        let address = executor.find(name).await.unwrap();
        assert_eq!(native(executor, &address).await, expected, "{name}");
    }
}

/// Once more, after all that may change.
async fn check_changes(executor: &Executor) {
    let recipes = Recipes::new();
    executor.put(WAITED_FOR).await.unwrap();
    assert_eq!(over_deriva(executor, &recipes.waiting.address()).await, WAITED_FOR);
    let deriva = executor.deriva();
    for recipe in [&recipes.top, &recipes.late_pinned] {
        assert!(deriva.unpin(&recipe.address()).await.unwrap(), "it was pinned");
        assert!(!deriva.unpin(&recipe.address()).await.unwrap(), "it is not pinned any more");
    }
    assert_eq!(deriva.pins(100).await.unwrap(), [recipes.leaf]);
    assert_eq!(executor.status().store.pins, 1);
    let before = executor.status().store.derivations;
    for (_, recipe, _) in recipes.values() {
        assert_eq!(deriva.put_recipe(recipe).await.unwrap(), recipe.address());
    }
    assert_eq!(executor.status().store.derivations, before, "they are all there");
}

async fn check_fixture(fixture: &str) {
    let folder = FixtureCopy::of(fixture, "all");
    let executor = open(&folder.0).await;
    check(&executor).await;
    check_names(&executor).await;
    close(executor).await;
    let executor = open(&folder.0).await;
    assert!(executor.store().opened().clean, "the first opening left nothing to mend");
    assert_eq!(executor.store().opened().replayed, 0, "nothing is read a second time");
    check(&executor).await;
    check_names(&executor).await;
    check_changes(&executor).await;
    close(executor).await;
    let executor = open(&folder.0).await;
    let recipes = Recipes::new();
    assert_eq!(executor.deriva().pins(100).await.unwrap(), [recipes.leaf]);
    assert_eq!(over_deriva(&executor, &recipes.waiting.address()).await, WAITED_FOR);
    close(executor).await;
}

#[tokio::test]
async fn a_store_of_format_1_is_mended_when_it_is_opened() {
    check_fixture("format-1").await;
}

#[tokio::test]
async fn a_crashed_store_of_format_1_is_mended_when_it_is_opened() {
    check_fixture("format-1-crashed").await;
}

/// A process that dies just after the first opening leaves a store that the next opening mends again.
#[tokio::test]
async fn mending_may_be_cut_short() {
    for fixture in ["format-1", "format-1-crashed"] {
        let folder = FixtureCopy::of(fixture, "cut");
        let again = FixtureCopy::of(fixture, "cut-again");
        let executor = open(&folder.0).await;
        fs::remove_dir_all(&again.0).unwrap();
        copy(&folder.0, &again.0);
        close(executor).await;
        let executor = open(&again.0).await;
        check(&executor).await;
        check_names(&executor).await;
        close(executor).await;
    }
}
