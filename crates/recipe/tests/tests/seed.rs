//! What the seed document says of materialising, case by case.

use anabranch_recipe::{
    Address, Error, Executor, FunctionId, Functions, Get, Recipe, Source, UnknownFunction,
};
use bytes::Bytes;

fn executor() -> Executor {
    Executor::in_memory(Functions::builtin()).unwrap()
}

async fn leaf(executor: &Executor, text: &str) -> Address {
    executor.put(text.to_owned()).await.unwrap().address
}

async fn recipe(executor: &Executor, function: &str, inputs: &[Address]) -> Address {
    let recipe = Recipe::new(FunctionId::new(function, "1.0.0"), inputs.to_vec());
    executor.add(&recipe, UnknownFunction::Accept).await.unwrap().address
}

async fn get(executor: &Executor, address: Address) -> Result<Bytes, Error> {
    executor.get(&address, &Get::default()).await?.bytes().await
}

#[tokio::test]
async fn a_diamond_comes_together() {
    let executor = executor();
    let (a, b) = (leaf(&executor, "a").await, leaf(&executor, "b").await);
    let both = recipe(&executor, "concat", &[a, b]).await;
    let one = recipe(&executor, "identity", &[a]).await;
    let joined = recipe(&executor, "concat", &[both, one]).await;
    assert_eq!(get(&executor, joined).await.unwrap(), "aba");
    let again = executor.get(&joined, &Get::default()).await.unwrap();
    assert_eq!(again.source, Source::Memo);
}

#[tokio::test]
async fn a_chain_of_fifty() {
    let executor = executor();
    let mut tip = leaf(&executor, "deep").await;
    for _ in 0..50 {
        tip = recipe(&executor, "concat", &[tip]).await;
    }
    let got = executor.get(&tip, &Get::default()).await.unwrap();
    assert_eq!(got.source, Source::Computed(50));
    assert_eq!(got.bytes().await.unwrap(), "deep");
}
