//! Loops with the widest vectors of the processor that runs them, found out at run time.

/// Runs `work`, compiled once for any processor and, on x86-64, once more for those with AVX2.
///
/// Use it around one loop over numbers. Both versions give the same results: neither reorders nor fuses operations on
/// floats.
#[inline(always)]
pub fn with_wide_vectors<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[allow(unsafe_code, reason = "the processor has the instructions; it was just asked")]
        return unsafe { with_avx2(work) };
    }
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}
