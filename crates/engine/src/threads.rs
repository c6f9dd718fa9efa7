//! The threads of an engine's three pools.

use std::io;

use crate::pool::ThreadPool;

/// For jobs of `Class::Latency`.
pub(crate) fn latency_pool(threads: usize) -> ThreadPool {
    ThreadPool::new("cpu", threads, start)
}

/// For jobs of `Class::Batch`: the same cores at a lower priority.
pub(crate) fn batch_pool(threads: usize) -> ThreadPool {
    ThreadPool::new("batch", threads, |name, body| {
        start(
            name,
            Box::new(move || {
                // Linux keeps niceness per thread. Being refused it costs latency under load, not correctness.
                let _ = rustix::process::setpriority_process(None, 10);
                body();
            }),
        )
    })
}

/// For calls that block, so that they do not occupy the threads for CPU work.
pub(crate) fn blocking_pool(threads: usize) -> ThreadPool {
    ThreadPool::new("blocking", threads, start)
}

fn start(name: String, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    std::thread::Builder::new().name(name).spawn(body).map(drop)
}
