//! Deriva's service.

use std::sync::Arc;
use std::time::Duration;

use anabranch_content::{Address, Collect, DryRun, Scope};
use anabranch_recipe::{DerivaRecipe, FunctionId, Get, Invalidate, InvalidationReport, Reach};
use bytes::Bytes;
use tonic::{Code, Request, Response, Status};

use crate::deadline;
use crate::failure::{Answer, Failure, answer};
use crate::pieces::ValuePieces;
use crate::proto::deriva as proto;
use crate::proto::deriva::deriva_server::Deriva;
use crate::service::Shared;
use crate::wire::{address, addresses, from_address, from_addresses};

/// Deriva's service, on an executor.
pub(crate) struct DerivaService(pub(crate) Arc<Shared>);

impl DerivaService {
    fn micros_since(&self, began: std::time::Instant) -> u64 {
        let since = self.0.executor.engine().clock().now().saturating_duration_since(began);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }

    /// The number of addresses in a response. Deriva's clients accept messages of at most 4 MiB.
    fn detail(&self, wanted: bool) -> usize {
        if wanted { self.0.settings.addresses_most } else { 0 }
    }

    async fn theirs(&self, ours: &[Address]) -> Result<Vec<Bytes>, Failure> {
        let mut theirs = Vec::with_capacity(ours.len());
        for address in ours {
            theirs.push(from_address(&self.0.executor.deriva().theirs(address).await?));
        }
        Ok(theirs)
    }

    async fn forget(&self, addr: &[u8], terms: Invalidate) -> Result<InvalidationReport, Failure> {
        let executor = &self.0.executor;
        let ours = executor.deriva().find(&address("addr", addr)?).await?;
        match executor.invalidate(&ours, &terms).await {
            Ok(done) => Ok(done),
            Err(error) => Err(executor.deriva().error_in_their_terms(error).await.into()),
        }
    }
}

/// The terms of the requested policy; `None` for the policy `none` without its root.
fn policy(request: &proto::CascadeInvalidateRequest, detail: usize) -> Result<Option<Invalidate>, Failure> {
    let (dependents, dry_run) = match &*request.policy {
        "none" => (false, DryRun::No),
        "immediate" => (true, DryRun::No),
        "dry_run" => (true, DryRun::Yes),
        other => {
            let message = format!("policy {other:?} is unknown; it may be none, immediate or dry_run");
            return Err(Failure::new(Code::InvalidArgument, message));
        }
    };
    let reach = match (dependents, request.include_root) {
        (false, false) => return Ok(None),
        (false, true) => Reach::Alone,
        (true, true) => Reach::Dependents,
        (true, false) => Reach::DependentsAlone,
    };
    Ok(Some(Invalidate { reach, dry_run, detail }))
}

#[tonic::async_trait]
impl Deriva for DerivaService {
    async fn put_leaf(&self, request: Request<proto::PutLeafRequest>) -> Answer<proto::PutLeafResponse> {
        answer(async {
            let put = self.0.executor.put(request.into_inner().data).await?;
            Ok(proto::PutLeafResponse { addr: from_address(&put.address) })
        })
        .await
    }

    async fn put_recipe(
        &self,
        request: Request<proto::PutRecipeRequest>,
    ) -> Answer<proto::PutRecipeResponse> {
        answer(async {
            let request = request.into_inner();
            let function = FunctionId::new(request.function_name, request.function_version);
            let inputs = addresses("inputs", &request.inputs)?;
            let theirs = DerivaRecipe { function, inputs, params: request.params };
            let put = self.0.executor.deriva().put_recipe(&theirs).await?;
            Ok(proto::PutRecipeResponse { addr: from_address(&put) })
        })
        .await
    }

    type GetStream = ValuePieces<proto::GetResponse>;

    async fn get(&self, request: Request<proto::GetRequest>) -> Answer<Self::GetStream> {
        answer(async {
            let executor = &self.0.executor;
            let deadline = deadline::of_call(&request)?;
            let theirs = address("addr", &request.get_ref().addr)?;
            let ours = executor.deriva().find(&theirs).await?;
            let got = match executor.get(&ours, &Get { deadline, ..Get::default() }).await {
                Ok(got) => got,
                Err(error) => return Err(executor.deriva().error_in_their_terms(error).await.into()),
            };
            let write = |chunk| proto::GetResponse { chunk };
            Ok(ValuePieces::new(got, |_, whole| whole.filter(|whole| !whole.is_empty()).map(write), write))
        })
        .await
    }

    async fn resolve(&self, request: Request<proto::ResolveRequest>) -> Answer<proto::ResolveResponse> {
        answer(async {
            let theirs = address("addr", &request.get_ref().addr)?;
            Ok(match self.0.executor.deriva().resolve(&theirs).await? {
                None => proto::ResolveResponse::default(),
                Some(DerivaRecipe { function, inputs, params }) => proto::ResolveResponse {
                    found: true,
                    function_name: function.name,
                    function_version: function.version,
                    inputs: from_addresses(&inputs),
                    params,
                },
            })
        })
        .await
    }

    async fn invalidate(
        &self,
        request: Request<proto::InvalidateRequest>,
    ) -> Answer<proto::InvalidateResponse> {
        answer(async {
            let proto::InvalidateRequest { addr, cascade } = request.get_ref();
            let reach = if *cascade { Reach::Dependents } else { Reach::Alone };
            let done = self.forget(addr, Invalidate { reach, ..Invalidate::default() }).await?;
            Ok(proto::InvalidateResponse { was_cached: done.was_remembered, evicted_count: done.forgotten })
        })
        .await
    }

    async fn cascade_invalidate(
        &self,
        request: Request<proto::CascadeInvalidateRequest>,
    ) -> Answer<proto::CascadeInvalidateResponse> {
        answer(async {
            let began = self.0.executor.engine().clock().now();
            let request = request.get_ref();
            address("addr", &request.addr)?;
            let terms = policy(request, self.detail(request.detail_addrs))?;
            // Deriva counts the visited dependents without the root.
            let root = u64::from(terms.as_ref().is_some_and(|terms| terms.reach != Reach::DependentsAlone));
            let done = match terms {
                Some(terms) => self.forget(&request.addr, terms).await?,
                None => InvalidationReport::default(),
            };
            Ok(proto::CascadeInvalidateResponse {
                evicted_count: done.forgotten,
                traversed_count: done.looked_at.saturating_sub(root),
                max_depth: done.depth,
                bytes_reclaimed: done.bytes,
                evicted_addrs: self.theirs(&done.addresses).await?,
                duration_micros: self.micros_since(began),
            })
        })
        .await
    }

    async fn status(&self, _: Request<proto::StatusRequest>) -> Answer<proto::StatusResponse> {
        let status = self.0.status().await;
        let hit_rate = if status.gets == 0 { 0.0 } else { status.hits as f64 / status.gets as f64 };
        Ok(Response::new(proto::StatusResponse {
            recipe_count: status.store.derivations,
            blob_count: status.store.put_blobs,
            cache_entries: status.store.memos,
            cache_size_bytes: status.store.cache.bytes,
            cache_hit_rate: hit_rate,
            verification_mode: "off".to_owned(),
            ..proto::StatusResponse::default()
        }))
    }

    async fn verify(&self, request: Request<proto::VerifyRequest>) -> Answer<proto::VerifyResponse> {
        answer(async {
            address("addr", &request.get_ref().addr)?;
            let message = "this server does not support Verify: it does not compute values a second time";
            Err(Failure::new(Code::Unimplemented, message))
        })
        .await
    }

    async fn garbage_collect(&self, request: Request<proto::GcRequest>) -> Answer<proto::GcResponse> {
        answer(async {
            let executor = &self.0.executor;
            let began = executor.engine().clock().now();
            let request = request.get_ref();
            let most = match usize::try_from(request.max_removals).unwrap_or(usize::MAX) {
                0 => usize::MAX,
                most => most,
            };
            let done = executor.store().collect(Collect {
                grace: Duration::from_secs(request.grace_period_secs),
                scope: Scope::KeepDerivations,
                dry_run: if request.dry_run { DryRun::Yes } else { DryRun::No },
                most,
                until_bytes: None,
                detail: self.detail(request.detail_addrs),
            });
            let done = done.await?;
            let stats = executor.store().stats();
            // A dry run removes nothing, so the blobs that it counts still exist. They are not live.
            let still_there = if request.dry_run { done.blobs } else { 0 };
            Ok(proto::GcResponse {
                blobs_removed: done.blobs,
                recipes_removed: done.derivations,
                cache_entries_removed: done.memos,
                bytes_reclaimed_blobs: done.bytes,
                bytes_reclaimed_cache: 0,
                total_bytes_reclaimed: done.bytes,
                live_blobs: stats.put_blobs.saturating_sub(still_there),
                live_recipes: stats.derivations,
                pinned_count: stats.pins,
                duration_micros: self.micros_since(began),
                removed_addrs: self.theirs(&done.removed).await?,
                dry_run: request.dry_run,
            })
        })
        .await
    }

    async fn pin(&self, request: Request<proto::PinRequest>) -> Answer<proto::PinResponse> {
        answer(async {
            let theirs = address("addr", &request.get_ref().addr)?;
            Ok(proto::PinResponse { was_new: self.0.executor.deriva().pin(&theirs).await? })
        })
        .await
    }

    async fn unpin(&self, request: Request<proto::UnpinRequest>) -> Answer<proto::UnpinResponse> {
        answer(async {
            let theirs = address("addr", &request.get_ref().addr)?;
            Ok(proto::UnpinResponse { was_pinned: self.0.executor.deriva().unpin(&theirs).await? })
        })
        .await
    }

    async fn list_pins(&self, _: Request<proto::ListPinsRequest>) -> Answer<proto::ListPinsResponse> {
        answer(async {
            // The answer is bounded, and so is what is read for it; the store counts its pins.
            let (executor, most) = (&self.0.executor, self.0.settings.addresses_most);
            let listed = executor.deriva().pins(most).await?;
            let count = if listed.len() < most { listed.len() as u64 } else { executor.store().stats().pins };
            Ok(proto::ListPinsResponse { addrs: from_addresses(&listed), count })
        })
        .await
    }

    async fn cluster_status(
        &self,
        _: Request<proto::ClusterStatusRequest>,
    ) -> Answer<proto::ClusterStatusResponse> {
        Err(Status::unavailable("this server is not part of a cluster"))
    }
}
