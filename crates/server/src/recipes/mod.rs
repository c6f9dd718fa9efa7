//! Our own gRPC service.

mod archives;
mod ended_get;
mod many;

use std::sync::Arc;

use anabranch_content::DryRun;
use anabranch_recipe::{Error, Get, Listener, Notice};
use futures_util::future::{Either, select};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;
use tonic::{Code, Request, Response, Status, Streaming};

use crate::deadline;
use crate::failure::{Answer, Failure, answer};
use crate::observe::CallInfo;
use crate::pieces::{ValuePieces, upload};
use crate::proto::recipes as proto;
use crate::proto::recipes::recipes_server::Recipes;
use crate::service::Shared;
use crate::wire::{self, Part, ResolvedTarget};

/// Our own gRPC service, on an executor.
pub(crate) struct RecipesService(pub(crate) Arc<Shared>);

#[tonic::async_trait]
impl Recipes for RecipesService {
    async fn put(&self, request: Request<Streaming<proto::PutRequest>>) -> Answer<proto::PutReply> {
        answer(async {
            let caller =
                request.extensions().get::<CallInfo>().expect("every request is observed").caller.clone();
            let chunks = request.into_inner().map(|request| request.map(|request| request.chunk));
            let put = self.0.executor.put_stream(upload(&self.0, &caller, chunks)).await?;
            Ok(wire::from_put(&put))
        })
        .await
    }

    async fn add(&self, request: Request<proto::AddRequest>) -> Answer<proto::AddReply> {
        answer(async {
            let proto::AddRequest { drafts, unknown_function, dry_run } = request.into_inner();
            let unknown = wire::unknown(unknown_function)?;
            let drafts: Vec<_> = drafts.into_iter().map(wire::draft).collect::<Result<_, _>>()?;
            self.0.check_drafts(&drafts)?;
            let executor = &self.0.executor;
            let added = if dry_run {
                executor.check_all(&drafts, unknown).await?.iter().map(wire::from_checked).collect()
            } else {
                executor.add_all(&drafts, unknown).await?.iter().map(wire::from_added).collect()
            };
            Ok(proto::AddReply { added })
        })
        .await
    }

    type GetStream = ValuePieces<proto::GetReply>;

    async fn get(&self, request: Request<proto::GetRequest>) -> Answer<Self::GetStream> {
        answer(async {
            let deadline = deadline::of_call(&request)?;
            let proto::GetRequest { target, start, end } = request.into_inner();
            let range = start..end.unwrap_or(u64::MAX);
            if range.end < range.start {
                return Err(Failure::new(Code::InvalidArgument, "`end` is before `start`"));
            }
            let target = wire::target(target)?;
            let address = self.0.find(&target).await?;
            let got = self.0.value(&target.to_string(), &address, &Get { range, deadline }).await?;
            let begin = |got: &anabranch_recipe::FetchedValue, whole: Option<bytes::Bytes>| {
                let header = wire::from_header(&Part::of(got));
                Some(proto::GetReply { header: Some(header), chunk: whole.unwrap_or_default() })
            };
            Ok(ValuePieces::new(got, begin, |chunk| proto::GetReply { header: None, chunk }))
        })
        .await
    }

    type GetManyStream = BoxStream<'static, Result<proto::GetManyReply, Status>>;

    async fn get_many(&self, request: Request<proto::GetManyRequest>) -> Answer<Self::GetManyStream> {
        answer(async {
            let deadline = deadline::of_call(&request)?;
            let call = request.extensions().get::<CallInfo>().expect("every request is observed");
            let client = Arc::clone(&call.caller.name);
            let targets = request.into_inner().targets;
            self.0.check_count("targets", targets.len())?;
            let targets = targets.into_iter().map(|target| wire::target(Some(target)));
            Ok(many::get(&self.0, client, targets.collect::<Result<_, _>>()?, deadline))
        })
        .await
    }

    async fn find(&self, request: Request<proto::FindRequest>) -> Answer<proto::FindReply> {
        answer(async {
            let proto::FindRequest { text, may_be_absent } = request.into_inner();
            let address = match self.0.executor.find(&text).await {
                Err(Error::NoSuchName { .. }) if may_be_absent => bytes::Bytes::new(),
                found => wire::from_address(&found?),
            };
            Ok(proto::FindReply { address })
        })
        .await
    }

    async fn resolve(&self, request: Request<proto::ResolveRequest>) -> Answer<proto::ResolveReply> {
        answer(async {
            let address = self.0.find(&wire::target(request.into_inner().target)?).await?;
            Ok(wire::from_resolved(&ResolvedTarget::find(&self.0.executor, address).await?)?)
        })
        .await
    }

    async fn invalidate(&self, request: Request<proto::InvalidateRequest>) -> Answer<proto::InvalidateReply> {
        answer(async {
            let request = request.into_inner();
            let terms = wire::invalidate(&request)?;
            self.0.check_count("detail", terms.detail)?;
            let address = self.0.find(&wire::target(request.target)?).await?;
            Ok(wire::from_invalidated(&self.0.executor.invalidate(&address, &terms).await?))
        })
        .await
    }

    async fn pin(&self, request: Request<proto::PinRequest>) -> Answer<proto::PinReply> {
        answer(async {
            let address = self.0.find(&wire::target(request.into_inner().target)?).await?;
            Ok(proto::PinReply { new: self.0.executor.store().pin(&address).await? })
        })
        .await
    }

    async fn unpin(&self, request: Request<proto::UnpinRequest>) -> Answer<proto::UnpinReply> {
        answer(async {
            let address = self.0.find(&wire::target(request.into_inner().target)?).await?;
            Ok(proto::UnpinReply { was_pinned: self.0.executor.store().unpin(&address).await? })
        })
        .await
    }

    async fn pins(&self, request: Request<proto::PinsRequest>) -> Answer<proto::PinsReply> {
        answer(async {
            let proto::PinsRequest { after, most } = request.into_inner();
            self.0.check_count("most", most as usize)?;
            let after = after.map(|after| wire::address("after", &after)).transpose()?;
            let pins = self.0.executor.store().pins(after, most as usize).await?;
            Ok(proto::PinsReply { addresses: wire::from_addresses(&pins) })
        })
        .await
    }

    async fn set_ref(&self, request: Request<proto::SetRefRequest>) -> Answer<proto::SetRefReply> {
        answer(async {
            let proto::SetRefRequest { name, address, expected, forget } = request.into_inner();
            let address = address.map(|address| wire::address("address", &address)).transpose()?;
            let store = self.0.executor.store();
            if forget {
                if address.is_some() || expected.is_some() {
                    let message = "`forget` drops a name; `address` and `expected` must not be set";
                    return Err(Failure::new(Code::InvalidArgument, message));
                }
                return Ok(proto::SetRefReply { changed: store.forget_name(&name).await? });
            }
            let changed = match expected {
                None => store.name(&name, address).await?,
                Some(proto::ExpectedRef { address: expected }) => {
                    let expected = expected.map(|it| wire::address("expected", &it)).transpose()?;
                    store.name_if(&name, address, expected).await?
                }
            };
            Ok(proto::SetRefReply { changed })
        })
        .await
    }

    async fn history(&self, request: Request<proto::HistoryRequest>) -> Answer<proto::HistoryReply> {
        answer(async {
            let history = self.0.executor.store().history(&request.get_ref().name).await?;
            Ok(proto::HistoryReply { history: history.iter().map(wire::from_named).collect() })
        })
        .await
    }

    async fn refs(&self, request: Request<proto::RefsRequest>) -> Answer<proto::RefsReply> {
        answer(async {
            let proto::RefsRequest { after, most } = request.into_inner();
            let page = self.0.names(&after, most as usize).await?;
            let named = |(name, address)| proto::Ref { name, address: wire::from_address(&address) };
            let refs = page.names.into_iter().map(named).collect();
            Ok(proto::RefsReply { refs, next: page.next.unwrap_or_default() })
        })
        .await
    }

    async fn collect(&self, request: Request<proto::CollectRequest>) -> Answer<proto::CollectReply> {
        answer(async {
            let terms = wire::collect(request.get_ref())?;
            self.0.check_count("detail", terms.detail)?;
            Ok(wire::from_collected(&self.0.executor.store().collect(terms).await?))
        })
        .await
    }

    async fn scrub(&self, request: Request<proto::ScrubRequest>) -> Answer<proto::ScrubReply> {
        answer(async {
            let bytes_per_second = request.get_ref().bytes_per_second;
            let terms = anabranch_content::Scrub { bytes_per_second };
            Ok(wire::from_scrubbed(&self.0.executor.store().scrub(terms).await?))
        })
        .await
    }

    type ExportStream = BoxStream<'static, Result<proto::ExportReply, Status>>;

    async fn export(&self, request: Request<proto::ExportRequest>) -> Answer<Self::ExportStream> {
        answer(async {
            let targets = request.into_inner().targets;
            self.0.check_count("targets", targets.len())?;
            let mut addresses = Vec::with_capacity(targets.len());
            for target in targets {
                addresses.push(self.0.find(&wire::target(Some(target))?).await?);
            }
            archives::export(&self.0, addresses)
        })
        .await
    }

    async fn import(&self, request: Request<Streaming<proto::ImportRequest>>) -> Answer<proto::ImportReply> {
        answer(archives::import(&self.0, request.into_inner())).await
    }

    async fn imports(&self, _: Request<proto::ImportsRequest>) -> Answer<proto::ImportsReply> {
        answer(async {
            let imports = self.0.executor.store().imports().await?;
            Ok(proto::ImportsReply { imports: imports.iter().map(wire::from_import_record).collect() })
        })
        .await
    }

    async fn drop_import(
        &self,
        request: Request<proto::DropImportRequest>,
    ) -> Answer<proto::DropImportReply> {
        answer(async {
            let dropped = self.0.executor.drop_import(&request.get_ref().id).await?;
            let (memos, names) = dropped.as_ref().map_or((0, 0), |dropped| (dropped.memos, dropped.names));
            let dropped = dropped.map(|dropped| wire::from_import_record(&dropped.record));
            Ok(proto::DropImportReply { dropped, memos, names })
        })
        .await
    }

    async fn list(&self, request: Request<proto::ListRequest>) -> Answer<proto::ListReply> {
        answer(async {
            let (kind, request) = (request.get_ref().kind, request.get_ref());
            self.0.check_count("most", request.most as usize)?;
            let after = request.after.as_ref().map(|after| wire::address("after", after)).transpose()?;
            let (store, most) = (self.0.executor.store(), request.most as usize);
            let listed = match proto::ListKind::try_from(kind) {
                Ok(proto::ListKind::Blobs) => {
                    store.list_blobs(after, most).await?.iter().map(wire::from_listed_blob).collect()
                }
                Ok(proto::ListKind::Recipes) => store
                    .list_derivations(after, most)
                    .await?
                    .iter()
                    .map(wire::from_listed_derivation)
                    .collect(),
                Ok(proto::ListKind::Memos) => {
                    store.list_memos(after, most).await?.iter().map(wire::from_listed_memo).collect()
                }
                Err(_) => {
                    return Err(Failure::new(Code::InvalidArgument, format!("`kind` is {kind}")));
                }
            };
            Ok(proto::ListReply { listed })
        })
        .await
    }

    async fn find_prefix(
        &self,
        request: Request<proto::FindPrefixRequest>,
    ) -> Answer<proto::FindPrefixReply> {
        answer(async {
            let proto::FindPrefixRequest { prefix, most } = request.into_inner();
            self.0.check_count("most", most as usize)?;
            let found = self.0.executor.store().find_prefix(&prefix, most as usize).await?;
            Ok(proto::FindPrefixReply { addresses: wire::from_addresses(&found) })
        })
        .await
    }

    async fn remove(&self, request: Request<proto::RemoveRequest>) -> Answer<proto::RemoveReply> {
        answer(async {
            let proto::RemoveRequest { address, dry_run, after } = request.into_inner();
            self.0.check_count("after", after.len())?;
            let (address, after) = (wire::address("address", &address)?, wire::addresses("after", &after)?);
            let store = self.0.executor.store();
            let removed = match dry_run {
                true => store.would_remove(&address, &after).await?,
                false => store.remove(&address, DryRun::No).await?,
            };
            let (blob, derivation, memos) = (removed.blob, removed.derivation, removed.memos);
            Ok(proto::RemoveReply { blob, derivation, memos })
        })
        .await
    }

    async fn usage(&self, request: Request<proto::UsageRequest>) -> Answer<proto::UsageReply> {
        answer(async {
            let proto::UsageRequest { most, addresses } = request.into_inner();
            self.0.check_count("most", most as usize)?;
            self.0.check_count("addresses", addresses.len())?;
            let addresses = wire::addresses("addresses", &addresses)?;
            let usage = self.0.executor.store().usage(most as usize, &addresses).await?;
            Ok(wire::from_usage(&usage))
        })
        .await
    }

    async fn functions(&self, _: Request<proto::FunctionsRequest>) -> Answer<proto::FunctionsReply> {
        let functions = self.0.executor.functions().list();
        let functions = functions.map(|function| wire::from_function(function.signature())).collect();
        Ok(Response::new(proto::FunctionsReply { functions }))
    }

    async fn status(&self, _: Request<proto::StatusRequest>) -> Answer<proto::StatusReply> {
        Ok(Response::new(wire::from_status(&self.0.status().await)))
    }

    type EventsStream = BoxStream<'static, Result<proto::EventsReply, Status>>;

    async fn events(&self, _: Request<proto::EventsRequest>) -> Answer<Self::EventsStream> {
        use proto::events_reply::Heard as WireEvent;
        let listening = proto::EventsReply { heard: Some(WireEvent::Listening(proto::Listening {})) };
        let state = (self.0.executor.listen(), self.0.closing.subscribe());
        let events = stream::unfold(state, |(mut listener, mut closing)| async move {
            let event = wire::from_event(next_event(&mut listener, &mut closing).await?);
            Some((event.map_err(|bad| Status::unimplemented(bad.0)), (listener, closing)))
        });
        Ok(Response::new(stream::iter([Ok(listening)]).chain(events).boxed()))
    }
}

/// The next event; `None` once the server shuts down.
async fn next_event(listener: &mut Listener, closing: &mut watch::Receiver<bool>) -> Option<Notice> {
    let closed = std::pin::pin!(closing.wait_for(|closing| *closing));
    match select(std::pin::pin!(listener.next()), closed).await {
        Either::Left((event, _)) => event,
        Either::Right(_) => None,
    }
}
