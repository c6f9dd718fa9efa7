//! Recipes that were put over Deriva's service, as `recipe` shows them.

use std::collections::BTreeMap;
use std::path::Path;

use anabranch_content::Address;
use anabranch_recipe::{DerivaRecipe, Executor, FunctionId, Functions};

use crate::recipe::{empty, recipe};

/// Two recipes of Deriva's, one of which reads the other; the upper one is pinned. Answers Deriva's addresses.
async fn two(folder: &Path) -> [Address; 2] {
    let executor = Executor::open(folder.join(".anabranch"), Functions::builtin()).await.unwrap();
    let leaf = executor.put("leaf").await.unwrap().address;
    let theirs = |function: &str, inputs: Vec<Address>| DerivaRecipe {
        function: FunctionId::new(function, "1.0.0"),
        inputs,
        params: BTreeMap::new(),
    };
    let deriva = executor.deriva();
    let below = deriva.put_recipe(&theirs("uppercase", vec![leaf])).await.unwrap();
    let above = deriva.put_recipe(&theirs("concat", vec![below, leaf])).await.unwrap();
    assert!(deriva.pin(&above).await.unwrap());
    executor.store().clone().close().await.unwrap();
    [below, above]
}

#[tokio::test]
async fn derivas_addresses_mean_recipes() {
    let folder = empty("recipe_aliases");
    let [below, above] = two(&folder).await;
    for (address, value, function) in
        [(above, "LEAFleaf", "concat/1.0.0"), (below, "LEAF", "uppercase/1.0.0")]
    {
        let said = recipe(&folder, &format!("get {address}"));
        assert_eq!((said.code, &*said.stdout), (0, value), "{}", said.shown());
        let said = recipe(&folder, &format!("resolve {address} --json"));
        let resolved: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!((&resolved["kind"], &resolved["function"]), (&"recipe".into(), &function.into()));
        assert_eq!(resolved["memo"]["size"], value.len());
    }
    let said = recipe(&folder, &format!("add concat/1.0.0 -i {above} -i {below} --ref both"));
    assert_eq!(said.code, 0, "{}", said.shown());
    assert_eq!(recipe(&folder, "get both").stdout, "LEAFleafLEAF");
}

#[tokio::test]
async fn a_recipe_of_deriva_has_one_pin() {
    let folder = empty("recipe_alias_pins");
    let [_, above] = two(&folder).await;
    let status = recipe(&folder, "status --json");
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!((&status["pins"], &status["blobs"], &status["recipes"]), (&1.into(), &1.into(), &2.into()));
    let pins = recipe(&folder, "pins");
    assert_eq!(pins.stdout.lines().count(), 1, "{}", pins.shown());
    let said = recipe(&folder, &format!("unpin {above}"));
    assert!(said.code == 0 && said.stderr.trim().ends_with(" unpinned"), "{}", said.shown());
    assert_eq!(recipe(&folder, "pins").stdout, "");
    let said = recipe(&folder, &format!("unpin {above}"));
    assert!(said.code == 0 && said.stderr.trim().ends_with(" was not pinned"), "{}", said.shown());
}
