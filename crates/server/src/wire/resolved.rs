//! What is stored at an address.

use anabranch_content::{Address, Memo, RemovalReason, RemovalRecord, Time};
use anabranch_recipe::{Error, Executor, Recipe};

use super::{MalformedMessage, address, from_address, from_memo, from_recipe, known, memo, recipe};
use crate::proto::recipes as proto;

/// What is stored at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedTarget {
    /// The address.
    pub address: Address,
    /// The recipe, if the address is a recipe's.
    pub recipe: Option<Recipe>,
    /// The memo of its value, if there is one.
    pub memo: Option<Memo>,
    /// The size in bytes of the blob at the address, or of the recipe's value; `None` if it is not stored.
    pub size: Option<u64>,
    /// The last removal from under this address, as long as the store remembers it.
    pub removal: Option<RemovalRecord>,
}

impl ResolvedTarget {
    /// Looks up an address. This is not a get, and not counted as one.
    pub async fn find(executor: &Executor, address: Address) -> Result<ResolvedTarget, Error> {
        let store = executor.store();
        let recipe = executor.resolve(&address).await?;
        let status = store.status(&address).await?;
        let size = match &status.memo {
            Some(memo) => store.size(&memo.output).await?,
            None => status.blob.map(|(size, _)| size),
        };
        Ok(ResolvedTarget { address, recipe, memo: status.memo, size, removal: status.gone })
    }
}

pub(crate) fn from_resolved(it: &ResolvedTarget) -> Result<proto::ResolveReply, MalformedMessage> {
    let removal = |it: &RemovalRecord| proto::Removal { reason: from_reason(it.why).into(), at: it.at.0 };
    Ok(proto::ResolveReply {
        address: from_address(&it.address),
        recipe: it.recipe.as_ref().map(from_recipe).transpose()?,
        memo: it.memo.as_ref().map(from_memo),
        size: it.size,
        removal: it.removal.as_ref().map(removal),
    })
}

pub(crate) fn resolved(reply: proto::ResolveReply) -> Result<ResolvedTarget, MalformedMessage> {
    let address = address("address", &reply.address)?;
    let removal = |it: proto::Removal| Ok(RemovalRecord { at: Time(it.at), why: reason(it.reason)? });
    Ok(ResolvedTarget {
        address,
        recipe: reply.recipe.map(recipe).transpose()?,
        memo: reply.memo.map(|it| memo(address, &it)).transpose()?,
        size: reply.size,
        removal: reply.removal.map(removal).transpose()?,
    })
}

fn from_reason(why: RemovalReason) -> proto::RemovalReason {
    match why {
        RemovalReason::Collected => proto::RemovalReason::Collected,
        RemovalReason::Quota => proto::RemovalReason::Quota,
        RemovalReason::Damaged => proto::RemovalReason::Damaged,
        RemovalReason::Invalidated => proto::RemovalReason::Invalidated,
    }
}

fn reason(number: i32) -> Result<RemovalReason, MalformedMessage> {
    match known("reason", number)? {
        proto::RemovalReason::Collected => Ok(RemovalReason::Collected),
        proto::RemovalReason::Quota => Ok(RemovalReason::Quota),
        proto::RemovalReason::Damaged => Ok(RemovalReason::Damaged),
        proto::RemovalReason::Invalidated => Ok(RemovalReason::Invalidated),
        proto::RemovalReason::Unspecified => Err(MalformedMessage("`reason` is not set".to_owned())),
    }
}
