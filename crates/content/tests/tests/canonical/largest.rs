//! Watches how much the current thread asks for at once.
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Watching;

#[global_allocator]
static ALLOCATOR: Watching = Watching;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread may allocate while its locals are being torn down; nobody measures then.
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

/// What `work` gives, and the bytes of the largest allocation that it made.
pub(crate) fn largest_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.set(0);
    let output = work();
    (output, LARGEST.get())
}
