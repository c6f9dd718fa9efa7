//! Metrics of the store and of the computed values.

use anabranch_engine::metrics::MetricsPage;
use anabranch_recipe::Status;

use super::{counter, gauge};

pub(super) fn write(status: &Status, page: &mut MetricsPage<'_>) {
    let store = &status.store;
    for (name, help, value) in [
        ("store_blobs", "Blobs.", store.blobs),
        ("store_blob_bytes", "Bytes of all blobs.", store.blob_bytes),
        ("store_recipes", "Recipes.", store.derivations),
        ("store_memos", "Remembered values.", store.memos),
        ("store_pins", "Pinned addresses.", store.pins),
        ("store_names", "Names.", store.names),
        ("store_used_bytes", "Bytes that count against the quota.", store.used_bytes),
        ("store_index_bytes", "Bytes of the index on disk.", store.index_bytes),
        ("store_index_damaged", "1 while a damaged index is rebuilt.", u64::from(store.health.index_damaged)),
        (
            "store_over_quota",
            "1 if the store cannot get below its quota.",
            u64::from(store.health.over_quota),
        ),
        ("recipes_computing", "Recipes that are being computed.", status.computing as u64),
    ] {
        gauge(page, name, help, value);
    }
    for (name, help, value) in [
        ("values", "Values that were requested.", status.gets),
        ("memo_hits", "Requested values that were remembered.", status.hits),
        ("memo_misses", "Requested values that were not.", status.gets.saturating_sub(status.hits)),
        ("recipes_computed", "Recipes that were computed.", status.computed),
        ("recipes_failed", "Recipes that could not be computed.", status.failed),
        ("cache_hits", "Reads that the cache of values answered.", store.cache.hits),
        ("cache_misses", "Reads that it did not.", store.cache.misses),
        ("cache_evictions", "Values that it evicted.", store.cache.evicted),
        ("store_damaged", "Records and files that were found damaged.", store.health.damaged),
        ("store_lost", "Acknowledged items that were lost.", store.health.lost),
        (
            "store_diverged",
            "Recipes with another value than the one that was remembered.",
            store.health.diverged,
        ),
        ("store_failures", "Work in the background that failed.", store.health.failures),
        ("store_index_rebuilt", "Rebuilds of a damaged index.", store.health.index_rebuilt),
    ] {
        counter(page, name, help, value);
    }
    let operations = |value: fn(&anabranch_content::Operation) -> u64| {
        store.operations.iter().map(move |operation| (vec![("operation", operation.name)], value(operation)))
    };
    page.counters("store_operations", "Operations of the store.", operations(|operation| operation.count));
    page.counters("store_errors", "Operations that failed.", operations(|operation| operation.errors));
    page.counters("store_bytes", "Bytes in and out of the store.", operations(|operation| operation.bytes));
}
