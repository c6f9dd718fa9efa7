//! The graphs of recipes that contenders compute.

use std::io;
use std::path::Path;

use anabranch_content::{Class, Store};
use anabranch_engine::Engine;
use anabranch_recipe::{
    Address, Config, Draft, DraftInput, Executor, FunctionId, Functions, Get, Recipe, Source, UnknownFunction,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::runtime::Runtime;

use super::baseline::{Baseline, Leaves};

/// Blobs, and recipes of which each comes after those that it reads.
pub(super) struct Shape {
    pub(super) leaves: Vec<Bytes>,
    pub(super) recipes: Vec<Recipe>,
    addresses: Vec<Address>,
    /// The length of the last recipe's value.
    pub(super) value_len: u64,
    /// The number of recipes that need not run, because their function has run on equal inputs (early cut-off).
    pub(super) cut_off: u32,
}

/// So many recipes are added at once.
const BATCH: usize = 50_000;

/// So many blobs are put side by side.
const CALLERS: usize = 512;

impl Shape {
    fn over(leaves: Vec<Bytes>) -> Shape {
        let value_len = leaves.iter().map(|leaf| leaf.len() as u64).sum();
        Shape { leaves, recipes: Vec::new(), addresses: Vec::new(), value_len, cut_off: 0 }
    }

    /// A blob, and so many recipes in a row over it. Each value is the digest of the one before, so all recipes run.
    pub(super) fn chain(depth: usize, seed: u64) -> Shape {
        Shape { value_len: 32, ..Shape::row("blake3", depth, seed) }
    }

    /// A blob, and so many recipes in a row over it, whose values are all the same: only the first one runs.
    pub(super) fn cut_off_chain(depth: usize, seed: u64) -> Shape {
        Shape { cut_off: depth as u32 - 1, ..Shape::row("identity", depth, seed) }
    }

    fn row(function: &str, depth: usize, seed: u64) -> Shape {
        let leaf = leaf(8, seed);
        let mut last = Address::of(&leaf);
        let mut shape = Shape::over(vec![leaf]);
        for _ in 0..depth {
            last = shape.push(function, vec![last]);
        }
        shape
    }

    /// So many blobs, a recipe over each, and one that reads all of these.
    pub(super) fn fan(width: usize, seed: u64) -> Shape {
        let mut shape = Shape::over(leaves(width, 8, seed));
        let inputs = shape.leaf_addresses();
        let copies = inputs.into_iter().map(|input| shape.push("identity", vec![input])).collect();
        shape.push("concat", copies);
        shape
    }

    /// So many blobs, and one recipe that reads them all.
    pub(super) fn wide(width: usize, size: usize, seed: u64) -> Shape {
        let mut shape = Shape::over(leaves(width, size, seed));
        let inputs = shape.leaf_addresses();
        shape.push("concat", inputs);
        shape
    }

    /// So many blobs, and a recipe over each.
    pub(super) fn pairs(count: usize, size: usize, seed: u64) -> Shape {
        let mut shape = Shape::over(leaves(count, size, seed));
        for input in shape.leaf_addresses() {
            shape.push("identity", vec![input]);
        }
        Shape { value_len: size as u64, ..shape }
    }

    fn push(&mut self, function: &str, inputs: Vec<Address>) -> Address {
        let recipe = Recipe::new(FunctionId::new(function, "1.0.0"), inputs);
        let address = recipe.address().expect("it is a recipe");
        self.recipes.push(recipe);
        self.addresses.push(address);
        address
    }

    fn leaf_addresses(&self) -> Vec<Address> {
        self.leaves.iter().map(|leaf| Address::of(leaf)).collect()
    }

    /// The recipes' addresses.
    pub(super) fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The last recipe's address.
    pub(super) fn tip(&self) -> Address {
        self.addresses[self.addresses.len() - 1]
    }

    /// Adds blobs and recipes.
    pub(super) fn add_to(&self, runtime: &Runtime, executor: &Executor) {
        runtime.block_on(put_leaves(executor, &self.leaves));
        self.add_recipes_to(runtime, executor);
    }

    /// Adds all but the last blob, without which nothing can be computed that reads it.
    pub(super) fn add_but_one_leaf(&self, runtime: &Runtime, executor: &Executor) {
        runtime.block_on(put_leaves(executor, &self.leaves[..self.leaves.len() - 1]));
        self.add_recipes_to(runtime, executor);
    }

    fn add_recipes_to(&self, runtime: &Runtime, executor: &Executor) {
        for recipes in self.recipes.chunks(BATCH) {
            let drafts: Vec<Draft> = recipes.iter().map(draft).collect();
            let added = runtime.block_on(executor.add_all(&drafts, UnknownFunction::Refuse));
            assert!(
                added.expect("the disk takes it").iter().all(|added| added.new),
                "a recipe was added twice"
            );
        }
    }

    /// The baseline with these blobs and recipes, in memory.
    pub(super) fn baseline(&self) -> Baseline {
        self.baseline_on(Leaves::Memory(self.addressed_leaves().collect()))
    }

    /// The same with the blobs in files.
    pub(super) fn baseline_on_files(&self, folder: &Path) -> io::Result<Baseline> {
        Ok(self.baseline_on(Leaves::in_files(folder, self.addressed_leaves())?))
    }

    fn baseline_on(&self, leaves: Leaves) -> Baseline {
        let recipes = self.addresses.iter().copied().zip(self.recipes.iter().cloned());
        Baseline::new(Functions::builtin(), leaves, recipes.collect())
    }

    fn addressed_leaves(&self) -> impl Iterator<Item = (Address, Bytes)> {
        self.leaf_addresses().into_iter().zip(self.leaves.iter().cloned())
    }
}

async fn put_leaves(executor: &Executor, leaves: &[Bytes]) {
    let put = |leaf: &Bytes| {
        let (store, leaf) = (executor.store().clone(), leaf.clone());
        async move { _ = store.put(leaf, Class::Derivable).await.expect("the disk takes it") }
    };
    stream::iter(leaves.iter().map(put)).buffer_unordered(CALLERS).collect::<()>().await;
}

/// The same to be added with others.
pub(super) fn draft(recipe: &Recipe) -> Draft {
    Draft {
        function: recipe.function.clone(),
        inputs: recipe.inputs.iter().map(|input| DraftInput::Address(*input)).collect(),
        params: recipe.params.clone(),
    }
}

fn leaves(count: usize, size: usize, seed: u64) -> Vec<Bytes> {
    (0..count as u64).map(|number| leaf(size, seed << 32 | number)).collect()
}

fn leaf(size: usize, number: u64) -> Bytes {
    let mut bytes = vec![0x5a; size];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes.into()
}

/// All bytes of a shape's last value, which are computed now.
pub(super) async fn compute(executor: &Executor, shape: &Shape) -> Bytes {
    let got = executor.get(&shape.tip(), &Get::default()).await.expect("it can be computed");
    let computed = shape.recipes.len() as u32 - shape.cut_off;
    assert_eq!((got.source, got.cut_off), (Source::Computed(computed), shape.cut_off), "other recipes ran");
    got.bytes().await.expect("it is whole")
}

/// All bytes of a value.
pub(super) async fn get(executor: &Executor, address: &Address) -> Bytes {
    let got = executor.get(address, &Get::default()).await.expect("it can be computed");
    got.bytes().await.expect("it is whole")
}

/// An executor whose store is in memory.
pub(super) fn in_memory() -> Executor {
    over(Store::in_memory(anabranch_content::Config::default()).expect("memory takes a store"))
}

/// An executor whose store is in a folder.
pub(super) fn on_disk(folder: &Path) -> Executor {
    over(Store::open(folder, anabranch_content::Config::default()).expect("a store opens"))
}

fn over(store: Store) -> Executor {
    let engine = Engine::new(&anabranch_engine::Config::default()).expect("the default settings are good");
    Executor::new(store, Functions::builtin(), engine, Config::default())
}
