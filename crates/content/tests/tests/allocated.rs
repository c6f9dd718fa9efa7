//! The test binary's allocator: the system's, which counts for one thread while that thread asks for it.
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct CountingAllocator;

thread_local! {
    /// The bytes that this thread allocated less those that it freed, in blocks as glibc cuts them.
    static HELD: Cell<i64> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// Runs `work` with a function that says how many bytes it has allocated so far and not freed. Only this thread
/// counts.
pub(crate) fn count<T>(work: impl FnOnce(&dyn Fn() -> i64) -> T) -> T {
    let before = HELD.get();
    work(&|| HELD.get() - before)
}

/// The result of `work`, and the bytes of the largest allocation that it made on this thread.
pub(crate) fn largest_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.set(0);
    let output = work();
    (output, LARGEST.get())
}

/// A block of glibc has 8 bytes in front, is a multiple of 16 and at least 32.
fn block(layout: Layout) -> i64 {
    (layout.size() + 8).next_multiple_of(16).max(32) as i64
}

/// A thread may allocate while its locals are being torn down; nobody measures then.
fn note(bytes: i64) {
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: every call goes on to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(block(layout));
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note(-block(layout));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}
