//! A node of a graph of recipes, as the store knows it: for `tree` and `explain`, which compute nothing.

use anabranch_content::{Address, Memo};
use anabranch_recipe::{Error, Recipe};
use anabranch_server::{ClientError, Code};

use super::backend::Backend;
use crate::failure::Failure;

/// A blob or a recipe, with the state of its value.
pub(super) enum Node {
    Blob { size: u64 },
    Recipe { recipe: Recipe, value: Value },
    Missing,
}

/// The state of a recipe's value.
pub(super) enum Value {
    /// It is stored: a get is a cache hit.
    Stored(Memo),
    /// It was computed once, and its bytes are gone.
    Evicted,
    /// It was never computed, or it was invalidated.
    Unknown,
}

impl Node {
    /// Looks an address up.
    pub(super) async fn find(backend: &Backend, address: Address) -> Result<Node, Failure> {
        let found = backend.resolve(address).await?;
        let Some(recipe) = found.recipe else {
            let size = size_of(backend, address).await?;
            return Ok(size.map_or(Node::Missing, |size| Node::Blob { size }));
        };
        let value = match found.memo {
            None => Value::Unknown,
            Some(memo) => match size_of(backend, memo.output).await? {
                Some(_) => Value::Stored(memo),
                None => Value::Evicted,
            },
        };
        Ok(Node::Recipe { recipe, value })
    }
}

/// The size of a blob, if it is there.
async fn size_of(backend: &Backend, blob: Address) -> Result<Option<u64>, Failure> {
    match backend.get(blob, 0..0, None).await {
        Ok(got) => Ok(Some(got.size)),
        Err(failure) if is_not_found(&failure) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn is_not_found(failure: &Failure) -> bool {
    let Failure::Failed(error) = failure else { return false };
    let is_local = matches!(error.downcast_ref(), Some(Error::NotFound { .. }));
    is_local || matches!(error.downcast_ref(), Some(ClientError::Call { code: Code::NotFound, .. }))
}
