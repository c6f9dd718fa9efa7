use std::sync::mpsc;

use super::*;

/// Says when it is dropped, and on which thread.
struct DropNotice(mpsc::Sender<String>);

impl Drop for DropNotice {
    fn drop(&mut self) {
        let name = thread::current().name().unwrap_or_default().to_owned();
        let _ = self.0.send(name);
    }
}

/// A pool of one thread that is busy until the sender is dropped.
async fn busy() -> (Pool, mpsc::Sender<()>, Job<()>) {
    let pool = Pool::new(1);
    let (release, wait) = mpsc::channel::<()>();
    let (begun, begins) = oneshot::channel();
    let job = pool.place().await.unwrap().start(move || {
        begun.send(()).unwrap();
        let _ = wait.recv();
    });
    begins.await.unwrap();
    (pool, release, job)
}

#[tokio::test]
async fn work_is_answered_from_a_named_thread() {
    let pool = Pool::new(2);
    let name = pool.run(|| thread::current().name().map(str::to_owned)).await;
    assert_eq!(name, Ok(Some("content-io-1".to_owned())));
}

#[tokio::test]
async fn a_panic_is_an_answer_and_costs_no_thread() {
    let pool = Pool::new(1);
    let answer: Result<(), JobFailure> = pool.run(|| panic!("no such sector")).await;
    assert_eq!(answer, Err(JobFailure::Panicked("no such sector".to_owned())));
    assert_eq!(pool.run(|| 7).await, Ok(7));
}

#[tokio::test]
async fn work_nobody_waits_for_is_skipped_and_dropped_on_a_thread() {
    let (pool, release, job) = busy().await;
    let (sender, dropped) = mpsc::channel();
    let told = DropNotice(sender.clone());
    let ran = sender;
    drop(pool.place().await.unwrap().start(move || {
        ran.send("ran".to_owned()).unwrap();
        drop(told);
    }));
    drop(release);
    job.await.unwrap();
    assert_eq!(dropped.recv().unwrap(), "content-io-1");
    assert!(dropped.recv().is_err());
}

#[tokio::test]
async fn an_answer_nobody_takes_is_dropped_on_a_thread() {
    let pool = Pool::new(1);
    let (sender, dropped) = mpsc::channel();
    let job = pool.place().await.unwrap().start(move || DropNotice(sender));
    // With one thread, what was asked later is answered later.
    pool.run(|| ()).await.unwrap();
    drop(job);
    assert_eq!(dropped.recv().unwrap(), "content-io-1");
}

#[tokio::test]
async fn a_parked_value_is_taken_or_dropped_on_a_thread() {
    let pool = Pool::new(1);
    let (sender, dropped) = mpsc::channel();
    let parked = pool.park(DropNotice(sender));
    let parked = pool.park(parked.take());
    assert!(dropped.try_recv().is_err());
    drop(parked);
    assert_eq!(dropped.recv().unwrap(), "content-io-1");
}

#[tokio::test]
async fn the_queue_is_bounded() {
    let (pool, release, job) = busy().await;
    let mut waiting: Vec<_> =
        std::iter::from_fn(|| Some(pool.try_place()?.start(|| ()))).take(1000).collect();
    assert_eq!(waiting.len(), Pool::PLACES);
    let mut next = Box::pin(pool.run(|| 7));
    assert!(next.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending());
    drop(release);
    job.await.unwrap();
    assert_eq!(next.await, Ok(7));
    waiting.pop().unwrap().await.unwrap();
}

#[tokio::test]
async fn a_dropped_pool_abandons_what_has_not_begun() {
    let (pool, release, job) = busy().await;
    let queued = pool.place().await.unwrap().start(|| 7);
    let (closing, closed) = mpsc::channel();
    let owner = thread::Builder::new().spawn(move || {
        drop(pool);
        closing.send(()).unwrap();
    });
    assert_eq!(queued.await, Err(JobFailure::Closed));
    assert!(closed.try_recv().is_err(), "the pool waits for what has begun");
    drop(release);
    owner.unwrap().join().unwrap();
    assert_eq!(job.await, Ok(()));
}

#[tokio::test]
async fn work_may_own_the_pool() {
    let pool = Arc::new(Pool::new(1));
    let place = pool.place().await.unwrap();
    assert_eq!(place.start(move || drop(pool)).await, Ok(()));
}

#[tokio::test]
async fn threads_work_side_by_side() {
    let pool = Pool::new(2);
    let (left, right) = (mpsc::channel(), mpsc::channel());
    let first = pool.place().await.unwrap().start(move || {
        left.0.send(()).unwrap();
        right.1.recv().unwrap();
    });
    let second = pool.run(move || {
        left.1.recv().unwrap();
        right.0.send(()).unwrap();
    });
    assert_eq!((second.await, first.await), (Ok(()), Ok(())));
}
