//! The counts of a cache.

/// The activity of a cache, and its content now.
///
/// Always `admitted - evicted - removed == entries`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Gets that found their value.
    pub hits: u64,
    /// Gets that did not find it.
    pub misses: u64,
    /// Values that were offered and admitted.
    pub admitted: u64,
    /// Values evicted to make room for others.
    pub evicted: u64,
    /// Values removed on request.
    pub removed: u64,
    /// Values refused as larger than the whole cache.
    pub refused_too_large: u64,
    /// Values refused as larger than the room that pinned values leave.
    pub refused_all_pinned: u64,
    /// Values refused because one that is worth more would have been evicted.
    pub refused_worth_less: u64,
    /// Values held.
    pub entries: u64,
    /// The memory that they take.
    pub bytes: u64,
    /// The memory that the pinned ones take.
    pub pinned_bytes: u64,
}
