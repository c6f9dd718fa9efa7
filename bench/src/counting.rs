//! A global allocator that counts, when asked to.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering::Relaxed};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The system's allocator; outside of [`count`] it costs one more branch.
struct CountingAllocator;

static ON: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

/// What a piece of work asked of the allocator, on all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocationCounts {
    /// Calls that allocated or grew something.
    pub(crate) calls: usize,
    /// The most bytes it held at a time.
    pub(crate) peak: usize,
    /// The bytes it still held at its end.
    pub(crate) kept: usize,
}

/// Counts what `work` allocates. One count at a time: the counters are the process's.
pub(crate) fn count<T>(work: impl FnOnce() -> T) -> (T, AllocationCounts) {
    CALLS.store(0, Relaxed);
    LIVE.store(0, Relaxed);
    PEAK.store(0, Relaxed);
    ON.store(true, Relaxed);
    let result = work();
    ON.store(false, Relaxed);
    let bytes = |counter: &AtomicIsize| counter.load(Relaxed).max(0) as usize;
    (result, AllocationCounts { calls: CALLS.load(Relaxed), peak: bytes(&PEAK), kept: bytes(&LIVE) })
}

fn note(calls: usize, bytes: isize) {
    if ON.load(Relaxed) {
        CALLS.fetch_add(calls, Relaxed);
        let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
        PEAK.fetch_max(live, Relaxed);
    }
}

#[allow(unsafe_code, reason = "an allocator is unsafe by its trait; each call is passed on as it came")]
// SAFETY: the system's allocator does the work, with the caller's own arguments.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(0, -(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(1, size as isize - layout.size() as isize);
        unsafe { System.realloc(pointer, layout, size) }
    }
}
