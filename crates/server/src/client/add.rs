//! Adds recipes, in as many calls as their number needs.

use std::ops::Range;

use anabranch_content::Address;
use anabranch_recipe::{AddedRecipe, Draft, DraftInput, UnknownFunction};
use prost::Message as _;

use super::{Client, Error, unwritable};
use crate::proto::recipes as proto;
use crate::wire;

/// The most bytes of recipes in one call. A server limits the size of a message (16 MiB by default) and the memory of a
/// decoded message.
const BATCH_MOST: usize = 4 << 20;

/// The most recipes in one call, for the same reason.
const BATCH_RECIPES: usize = 20_000;

/// The bytes that a message needs per recipe, besides the recipe.
const DRAFT_ENVELOPE: usize = 8;

/// The purpose of sending recipes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Check,
    Keep,
}

impl Client {
    /// Stores several recipes that may read each other. If they are too many for one call, all of them are checked
    /// before the first ones are stored. If the server fails halfway, the first ones may stay.
    pub async fn add_all(
        &self,
        drafts: &[Draft],
        unknown: UnknownFunction,
    ) -> Result<Vec<AddedRecipe>, Error> {
        let batches = batches(drafts)?;
        if batches.len() > 1 {
            self.send_batches(drafts, &batches, unknown, Purpose::Check).await?;
        }
        self.send_batches(drafts, &batches, unknown, Purpose::Keep).await
    }

    async fn send_batches(
        &self,
        drafts: &[Draft],
        batches: &[Range<usize>],
        unknown: UnknownFunction,
        purpose: Purpose,
    ) -> Result<Vec<AddedRecipe>, Error> {
        let unknown_function = wire::from_unknown(unknown).into();
        let dry_run = purpose == Purpose::Check;
        let mut added: Vec<AddedRecipe> = Vec::with_capacity(drafts.len());
        for batch in batches {
            // An earlier recipe of another batch is referred to by its address.
            let earlier = |place: usize| match added.get(place) {
                Some(added) => DraftInput::Address(added.address),
                None => DraftInput::Earlier(place.saturating_sub(batch.start)),
            };
            let written = drafts[batch.clone()].iter().map(|draft| wire::from_draft(draft, earlier));
            let written = written.collect::<Result<Vec<_>, _>>().map_err(unwritable)?;
            let request = proto::AddRequest { drafts: written, unknown_function, dry_run };
            let reply = self.recipes.clone().add(request).await?.into_inner().added;
            if reply.len() != batch.len() {
                let (sent, answered) = (batch.len(), reply.len());
                return Err(Error::Answer(format!("{sent} recipes were sent, and {answered} answered")));
            }
            for one in &reply {
                added.push(wire::added(one)?);
            }
        }
        Ok(added)
    }
}

/// Splits the recipes into calls.
fn batches(drafts: &[Draft]) -> Result<Vec<Range<usize>>, Error> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    // An address is the longest form of an input.
    let longest = DraftInput::Address(Address::from_bytes([0; 32]));
    for (place, draft) in drafts.iter().enumerate() {
        let written = wire::from_draft(draft, |_| longest).map_err(unwritable)?;
        let len = written.encoded_len() + DRAFT_ENVELOPE;
        if place > start && (bytes + len > BATCH_MOST || place - start == BATCH_RECIPES) {
            batches.push(start..place);
            (start, bytes) = (place, 0);
        }
        bytes += len;
    }
    if start < drafts.len() {
        batches.push(start..drafts.len());
    }
    Ok(batches)
}
