//! The floor under a Redis driver: raw sockets, the same bytes, replies only counted to their ends, and writes put
//! together in the same way as ours.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// Bytes of commands, and the number of their replies.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) replies: usize,
}

/// Connections that all requests share, each taken in turn.
#[derive(Clone)]
pub(super) struct Floor {
    links: Arc<[Arc<Mutex<Queue>>]>,
    next: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    waiting: Vec<(usize, oneshot::Sender<()>)>,
    waker: Option<Waker>,
}

impl Floor {
    pub(super) async fn open(port: u16, count: usize) -> io::Result<Floor> {
        let mut links = Vec::new();
        for _ in 0..count {
            let socket = TcpStream::connect(("127.0.0.1", port)).await?;
            socket.set_nodelay(true)?;
            let queue: Arc<Mutex<Queue>> = Arc::default();
            let task = Task::new(socket, Arc::clone(&queue));
            tokio::spawn(task.run());
            links.push(queue);
        }
        Ok(Floor { links: links.into(), next: Arc::default() })
    }

    /// Sends the batches of a request, each when the one before it is answered.
    pub(super) async fn ask(&self, batches: &[Batch]) {
        for batch in batches {
            let link = &self.links[self.next.fetch_add(1, Ordering::Relaxed) % self.links.len()];
            let (done, answered) = oneshot::channel();
            let waker = {
                let mut queue = link.lock().expect("no panic");
                queue.bytes.extend_from_slice(&batch.bytes);
                queue.waiting.push((batch.replies, done));
                queue.waker.take()
            };
            waker.into_iter().for_each(Waker::wake);
            answered.await.expect("the Redis answers");
        }
    }
}

struct Task {
    socket: TcpStream,
    queue: Arc<Mutex<Queue>>,
    buffer: Vec<u8>,
    end: usize,
    counter: Counter,
    writing: Vec<u8>,
    written: usize,
    in_flight: VecDeque<(usize, oneshot::Sender<()>)>,
    waited: bool,
    last_batch: usize,
}

impl Task {
    fn new(socket: TcpStream, queue: Arc<Mutex<Queue>>) -> Task {
        Task {
            socket,
            queue,
            buffer: vec![0; 64 << 10],
            end: 0,
            counter: Counter::default(),
            writing: Vec::new(),
            written: 0,
            in_flight: VecDeque::new(),
            waited: false,
            last_batch: 0,
        }
    }

    async fn run(mut self) {
        poll_fn(|cx| {
            if self.turn(cx) {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        })
        .await;
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> bool {
        let mut slice = 0;
        while slice < 64 << 10 {
            let mut space = ReadBuf::new(&mut self.buffer[self.end..]);
            match Pin::new(&mut self.socket).poll_read(cx, &mut space) {
                Poll::Pending => break,
                Poll::Ready(read) => read.expect("the Redis answers"),
            }
            let count = space.filled().len();
            assert!(count > 0, "the Redis answers");
            self.end += count;
            slice += count;
            self.count();
        }
        let again = self.take_queue(cx) || slice >= 64 << 10;
        while self.written < self.writing.len() {
            match Pin::new(&mut self.socket).poll_write(cx, &self.writing[self.written..]) {
                Poll::Pending => break,
                Poll::Ready(wrote) => self.written += wrote.expect("the Redis reads"),
            }
        }
        again
    }

    fn take_queue(&mut self, cx: &Context<'_>) -> bool {
        if self.written < self.writing.len() {
            return false;
        }
        let mut queue = self.queue.lock().expect("no panic");
        queue.waker = Some(cx.waker().clone());
        if queue.waiting.is_empty() {
            return false;
        }
        if !self.waited && (!self.in_flight.is_empty() || self.last_batch > 1) {
            self.waited = true;
            return true;
        }
        self.waited = false;
        self.last_batch = queue.waiting.len();
        self.writing.clear();
        self.written = 0;
        std::mem::swap(&mut self.writing, &mut queue.bytes);
        self.in_flight.extend(queue.waiting.drain(..));
        false
    }

    fn count(&mut self) {
        let mut start = 0;
        while let Some((left, _)) = self.in_flight.front_mut() {
            let (used, complete) = self.counter.feed(&self.buffer[start..self.end]);
            start += used;
            if !complete {
                break;
            }
            *left -= 1;
            if *left == 0
                && let Some((_, done)) = self.in_flight.pop_front()
            {
                let _ = done.send(());
            }
        }
        self.buffer.copy_within(start..self.end, 0);
        self.end -= start;
    }
}

/// Finds the ends of replies.
#[derive(Default)]
struct Counter {
    /// Values of the reply that are still to come; 0 before it begins.
    left: usize,
}

impl Counter {
    fn feed(&mut self, input: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while let Some(line) = input[at..].iter().position(|byte| *byte == b'\n') {
            let text = &input[at + 1..at + line - 1];
            let number = || text.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
            let mut end = at + line + 1;
            let mut more = 0;
            match input[at] {
                b'*' if text != b"-1" => more = number(),
                b'$' if text != b"-1" => end += number() + 2,
                _ => {}
            }
            if end > input.len() {
                break;
            }
            at = end;
            self.left = self.left.max(1) - 1 + more;
            if self.left == 0 {
                return (at, true);
            }
        }
        (at, false)
    }
}
