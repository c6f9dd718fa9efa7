//! Archives that are dropped again.

use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex};

use anabranch_content::{Class, Cost, Import, NewMemo};
use anabranch_recipe::{Address, Executor, Functions};

use crate::world::{get, leaf, recipe};

/// What is written to it.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An archive in which the value of `uppercase` of "honest" is another one; and the recipe.
async fn forged() -> (Vec<u8>, Address) {
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let data = leaf(&executor, "honest").await;
    let upper = recipe(&executor, "uppercase", &[data]).await;
    let output = leaf(&executor, "FORGED").await;
    let memo = NewMemo { derivation: upper, output, size: 6, cost: Cost::default(), inputs: &[] };
    executor.store().remember(memo, Class::Derivable).await.unwrap();
    let archive = Shared::default();
    executor.store().export(&[upper], archive.clone()).await.unwrap();
    let bytes = archive.0.lock().unwrap().clone();
    (bytes, upper)
}

/// X2: dropping an import also forgets what was computed from the memos that it brought.
#[tokio::test]
async fn a_dropped_import_leaves_nothing_that_was_derived_from_it() {
    let (archive, upper) = forged().await;
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let above = recipe(&executor, "reverse", &[upper]).await;
    let top = recipe(&executor, "concat", &[above, above]).await;
    let terms = Import { trust_memos: true, ..Import::default() };
    let id = executor.import(Cursor::new(archive), terms).await.unwrap().id.unwrap();
    assert_eq!(get(&executor, top).await.unwrap(), "DEGROFDEGROF");
    assert!(executor.drop_import("none").await.unwrap().is_none());
    let dropped = executor.drop_import(&id).await.unwrap().unwrap();
    assert_eq!(dropped.memos, 3, "its own, and those of both recipes above");
    assert_eq!(get(&executor, top).await.unwrap(), "TSENOHTSENOH");
    assert_eq!(get(&executor, upper).await.unwrap(), "HONEST");
}
