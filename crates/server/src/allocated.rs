//! The allocator of this crate's unit tests. It is the system's, and records the peak of each thread.
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: PeakAllocator = PeakAllocator;

struct PeakAllocator;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Returns the result of `work`, and the peak of the bytes that it held on this thread.
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (T, i64) {
    let before = HELD.get();
    PEAK.set(before);
    let output = work();
    (output, PEAK.get() - before)
}

/// The bytes that this thread has allocated and not freed.
pub(crate) fn held() -> i64 {
    HELD.get()
}

/// A thread may allocate while its locals are destroyed. Nothing is measured then.
fn note(bytes: i64) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        PEAK.try_with(|peak| peak.set(peak.get().max(held.get())))
    });
}

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for PeakAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note(-(layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}
