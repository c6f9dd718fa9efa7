//! Requests and replies of the larger calls to the store and the executor.

use std::time::Duration;

use anabranch_content::{
    CacheStats, Collect, CollectReport, DryRun, ExportReport, Health, Put, Scope, ScrubReport, Stats,
    UnreadableStretch,
};
use anabranch_recipe::{Invalidate, InvalidationReport, Reach, Status};

use super::{MalformedMessage, address, addresses, from_address, from_addresses, known, set, size};
use crate::proto::recipes as proto;

fn dry_run(yes: bool) -> DryRun {
    if yes { DryRun::Yes } else { DryRun::No }
}

pub(crate) fn put(reply: &proto::PutReply) -> Result<Put, MalformedMessage> {
    Ok(Put { address: address("address", &reply.address)?, len: reply.size, new: reply.new })
}

pub(crate) fn from_put(put: &Put) -> proto::PutReply {
    proto::PutReply { address: from_address(&put.address), size: put.len, new: put.new }
}

/// The terms of an invalidation. Its target is parsed separately.
pub(crate) fn invalidate(request: &proto::InvalidateRequest) -> Result<Invalidate, MalformedMessage> {
    let reach = match known("reach", request.reach)? {
        proto::Reach::Alone => Reach::Alone,
        proto::Reach::Dependents => Reach::Dependents,
        proto::Reach::DependentsAlone => Reach::DependentsAlone,
    };
    Ok(Invalidate { reach, dry_run: dry_run(request.dry_run), detail: request.detail as usize })
}

pub(crate) fn from_invalidate(target: proto::Target, terms: &Invalidate) -> proto::InvalidateRequest {
    let reach = match terms.reach {
        Reach::Alone => proto::Reach::Alone,
        Reach::Dependents => proto::Reach::Dependents,
        Reach::DependentsAlone => proto::Reach::DependentsAlone,
    };
    proto::InvalidateRequest {
        target: Some(target),
        reach: reach.into(),
        dry_run: terms.dry_run == DryRun::Yes,
        detail: detail(terms.detail),
    }
}

/// A list cannot be longer than a message, so the maximum stands for all.
fn detail(most: usize) -> u32 {
    u32::try_from(most).unwrap_or(u32::MAX)
}

pub(crate) fn invalidated(reply: &proto::InvalidateReply) -> Result<InvalidationReport, MalformedMessage> {
    let mut result = InvalidationReport::default();
    result.was_remembered = reply.was_remembered;
    result.forgotten = reply.forgotten;
    result.looked_at = reply.looked_at;
    result.depth = reply.depth;
    result.bytes = reply.bytes;
    result.addresses = addresses("addresses", &reply.addresses)?;
    Ok(result)
}

pub(crate) fn from_invalidated(result: &InvalidationReport) -> proto::InvalidateReply {
    proto::InvalidateReply {
        was_remembered: result.was_remembered,
        forgotten: result.forgotten,
        looked_at: result.looked_at,
        depth: result.depth,
        bytes: result.bytes,
        addresses: from_addresses(&result.addresses),
    }
}

pub(crate) fn collect(request: &proto::CollectRequest) -> Result<Collect, MalformedMessage> {
    let scope = match known("scope", request.scope)? {
        proto::Scope::All => Scope::All,
        proto::Scope::Derivable => Scope::Derivable,
        proto::Scope::KeepDerivations => Scope::KeepDerivations,
    };
    Ok(Collect {
        grace: Duration::from_millis(request.grace_millis),
        scope,
        dry_run: dry_run(request.dry_run),
        most: size("most", request.most)?,
        until_bytes: request.until_bytes,
        detail: request.detail as usize,
    })
}

pub(crate) fn from_collect(terms: &Collect) -> proto::CollectRequest {
    let scope = match terms.scope {
        Scope::All => proto::Scope::All,
        Scope::Derivable => proto::Scope::Derivable,
        Scope::KeepDerivations => proto::Scope::KeepDerivations,
    };
    proto::CollectRequest {
        grace_millis: u64::try_from(terms.grace.as_millis()).unwrap_or(u64::MAX),
        scope: scope.into(),
        dry_run: terms.dry_run == DryRun::Yes,
        most: terms.most as u64,
        until_bytes: terms.until_bytes,
        detail: detail(terms.detail),
    }
}

pub(crate) fn collected(reply: &proto::CollectReply) -> Result<CollectReport, MalformedMessage> {
    let mut result = CollectReport::default();
    result.blobs = reply.blobs;
    result.bytes = reply.bytes;
    result.memos = reply.memos;
    result.derivations = reply.derivations;
    result.held = reply.held;
    result.young = reply.young;
    result.left = reply.left;
    result.removed = addresses("removed", &reply.removed)?;
    Ok(result)
}

pub(crate) fn from_collected(result: &CollectReport) -> proto::CollectReply {
    proto::CollectReply {
        blobs: result.blobs,
        bytes: result.bytes,
        memos: result.memos,
        derivations: result.derivations,
        held: result.held,
        young: result.young,
        left: result.left,
        removed: from_addresses(&result.removed),
    }
}

pub(crate) fn scrubbed(reply: proto::ScrubReply) -> Result<ScrubReport, MalformedMessage> {
    let unreadable = |part: proto::Unreadable| UnreadableStretch {
        file: part.file,
        from: part.from,
        bytes: part.bytes,
        torn: part.torn,
        covered: true,
    };
    let mut result = ScrubReport::default();
    result.records = reply.records;
    result.files = reply.files;
    result.bytes = reply.bytes;
    result.damaged = addresses("damaged", &reply.damaged)?;
    result.unreadable = reply.unreadable.into_iter().map(unreadable).collect();
    result.index = reply.index;
    Ok(result)
}

pub(crate) fn from_scrubbed(result: &ScrubReport) -> proto::ScrubReply {
    let unreadable = |part: &UnreadableStretch| proto::Unreadable {
        file: part.file.clone(),
        from: part.from,
        bytes: part.bytes,
        torn: part.torn,
    };
    proto::ScrubReply {
        records: result.records,
        files: result.files,
        bytes: result.bytes,
        damaged: from_addresses(&result.damaged),
        unreadable: result.unreadable.iter().map(unreadable).collect(),
        index: result.index.clone(),
    }
}

pub(crate) fn exported(reply: &proto::ExportReport) -> Result<ExportReport, MalformedMessage> {
    let mut result = ExportReport::default();
    result.blobs = reply.blobs;
    result.derivations = reply.derivations;
    result.memos = reply.memos;
    result.bytes = reply.bytes;
    result.names = reply.names;
    result.missing = addresses("missing", &reply.missing)?;
    Ok(result)
}

pub(crate) fn from_exported(result: &ExportReport) -> proto::ExportReport {
    proto::ExportReport {
        blobs: result.blobs,
        derivations: result.derivations,
        memos: result.memos,
        bytes: result.bytes,
        missing: from_addresses(&result.missing),
        names: result.names,
    }
}

/// The status of a reply. The server does not send the counts of store operations by kind.
pub(crate) fn status(reply: &proto::StatusReply) -> Result<Status, MalformedMessage> {
    let mut store = Stats::default();
    store.blobs = reply.blobs;
    store.blob_bytes = reply.blob_bytes;
    store.derivations = reply.recipes;
    store.memos = reply.memos;
    store.pins = reply.pins;
    store.names = reply.names;
    store.gone = reply.gone;
    store.used_bytes = reply.used_bytes;
    store.index_bytes = reply.index_bytes;
    store.cache = CacheStats {
        entries: reply.cache_entries,
        bytes: reply.cache_bytes,
        hits: reply.cache_hits,
        misses: reply.cache_misses,
        ..CacheStats::default()
    };
    store.health = health(set("health", reply.health)?);
    let mut status = Status::default();
    status.store = store;
    status.functions = size("functions", reply.functions)?;
    status.gets = reply.gets;
    status.hits = reply.hits;
    status.computed = reply.computed;
    status.failed = reply.failed;
    status.computing = size("computing", reply.computing)?;
    Ok(status)
}

pub(crate) fn from_status(status: &Status) -> proto::StatusReply {
    let Stats { blobs, blob_bytes, derivations, memos, pins, names, gone, used_bytes, index_bytes, .. } =
        status.store;
    let cache = &status.store.cache;
    proto::StatusReply {
        blobs,
        blob_bytes,
        recipes: derivations,
        memos,
        pins,
        names,
        gone,
        used_bytes,
        index_bytes,
        cache_entries: cache.entries,
        cache_bytes: cache.bytes,
        cache_hits: cache.hits,
        cache_misses: cache.misses,
        functions: status.functions as u64,
        gets: status.gets,
        hits: status.hits,
        computed: status.computed,
        failed: status.failed,
        computing: status.computing as u64,
        health: Some(from_health(&status.store.health)),
    }
}

fn health(health: proto::Health) -> Health {
    let proto::Health { lost, damaged, diverged, failures, index_damaged, over_quota, index_rebuilt } =
        health;
    let mut result = Health::default();
    result.lost = lost;
    result.damaged = damaged;
    result.diverged = diverged;
    result.failures = failures;
    result.index_damaged = index_damaged;
    result.index_rebuilt = index_rebuilt;
    result.over_quota = over_quota;
    result
}

fn from_health(health: &Health) -> proto::Health {
    proto::Health {
        lost: health.lost,
        damaged: health.damaged,
        diverged: health.diverged,
        failures: health.failures,
        index_damaged: health.index_damaged,
        over_quota: health.over_quota,
        index_rebuilt: health.index_rebuilt,
    }
}
