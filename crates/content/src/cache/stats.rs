//! What a cache counts.

/// What a cache has done, and what it holds now.
///
/// Always `admitted - evicted - removed == entries`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Gets that found their value.
    pub hits: u64,
    /// Gets that did not.
    pub misses: u64,
    /// Values that were offered and taken.
    pub admitted: u64,
    /// Values thrown out to make room for others.
    pub evicted: u64,
    /// Values dropped on demand.
    pub removed: u64,
    /// Values refused as larger than the whole cache.
    pub refused_too_large: u64,
    /// Values refused as larger than what is not pinned.
    pub refused_all_pinned: u64,
    /// Values refused as worth less than something that they would have thrown out.
    pub refused_worth_less: u64,
    /// Values held.
    pub entries: u64,
    /// What they take.
    pub bytes: u64,
    /// What those of them take that are pinned.
    pub pinned_bytes: u64,
}
