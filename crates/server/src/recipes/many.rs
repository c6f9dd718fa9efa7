//! Several values in one response.

use std::sync::Arc;
use std::time::Instant;

use anabranch_recipe::{FetchedValue, Get};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::task::JoinSet;
use tonic::{Code, Status};

use crate::failure::Failure;
use crate::load::Work;
use crate::pieces::ValuePieces;
use crate::proto::recipes as proto;
use crate::proto::recipes::get_many_reply::Part as ReplyPart;
use crate::service::Shared;
use crate::wire::{self, Part, Target};

/// The values of the targets in order. A few are fetched ahead. Each takes a slot of the client.
pub(super) fn get(
    shared: &Arc<Shared>,
    client: Arc<str>,
    targets: Vec<Target>,
    deadline: Option<Instant>,
) -> BoxStream<'static, Result<proto::GetManyReply, Status>> {
    let ahead = shared.settings.ahead.max(1);
    let shared = Arc::clone(shared);
    let one = move |target: Target| {
        let (shared, client) = (Arc::clone(&shared), Arc::clone(&client));
        driven(async move {
            let _slot = shared.slot(Work::Other, &client, deadline).await?;
            let address = shared.find(&target).await?;
            shared.value(&target.to_string(), &address, &Get { deadline, ..Get::default() }).await
        })
    };
    let values = stream::iter(targets).map(one).buffered(ahead).enumerate();
    values.flat_map(|(index, got)| parts(index as u32, got)).boxed()
}

/// A get that continues while the client does not read, because others may wait for the same computation or for its
/// memory. Dropping this future cancels it.
async fn driven(
    get: impl Future<Output = Result<FetchedValue, Failure>> + Send + 'static,
) -> Result<FetchedValue, Failure> {
    let mut task = JoinSet::new();
    task.spawn(get);
    match task.join_next().await {
        Some(Ok(got)) => got,
        Some(Err(error)) => Err(Failure::new(Code::Internal, error.to_string())),
        None => unreachable!("there is one task"),
    }
}

fn parts(
    index: u32,
    got: Result<FetchedValue, Failure>,
) -> BoxStream<'static, Result<proto::GetManyReply, Status>> {
    let reply = move |part| Ok(proto::GetManyReply { index, part: Some(part) });
    match got {
        Err(failure) => stream::iter([reply(ReplyPart::Failure(from_failure(failure)))]).boxed(),
        Ok(got) => {
            let header = reply(ReplyPart::Header(wire::from_header(&Part::of(&got))));
            let pieces = ValuePieces::new(
                got,
                |_, whole| whole.filter(|whole| !whole.is_empty()).map(ReplyPart::Chunk),
                ReplyPart::Chunk,
            );
            let failed = |status: Status| ReplyPart::Failure(from_failure(status.into()));
            let pieces = pieces.map(move |piece| reply(piece.unwrap_or_else(failed)));
            stream::iter([header]).chain(pieces).boxed()
        }
    }
}

fn from_failure(failure: Failure) -> proto::Failure {
    proto::Failure { code: failure.code.into(), message: failure.message }
}
