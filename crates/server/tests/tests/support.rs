//! A server on a free port of this machine, clients for it, and functions that wait to be told.

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use anabranch_content::Store;
use anabranch_engine::clock::{Clock, Sleep};
use anabranch_engine::options::Class;
use anabranch_engine::seams::Seams;
use anabranch_engine::{Config, Engine};
use anabranch_recipe::{
    Call, Executor, Fault, Function, FunctionId, Functions, Holds, Kernel, Out, Signature,
};
use anabranch_server::{Client, Service, Settings, ShutdownReport};
use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tonic::transport::{Channel, Endpoint};

/// So long no wait of a test is, however busy the machine is. Only a failing test waits as long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// What comes of a call, which must come in time.
#[allow(clippy::disallowed_methods, reason = "real sockets need a real bound")]
pub(crate) async fn soon<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, call).await.expect("it takes too long")
}

/// Waits until something holds.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    soon(async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// The functions that come with the executor.
pub(crate) fn functions() -> Functions {
    Functions::builtin()
}

/// A server at work; dropping it stops it.
pub(crate) struct Server {
    pub(crate) executor: Executor,
    pub(crate) service: Service,
    /// The clock of timeouts that concern clients, if it is the test's.
    pub(crate) clock: Arc<TestClock>,
    pub(crate) url: String,
    stop: Option<oneshot::Sender<()>>,
    served: JoinSet<ShutdownReport>,
}

impl Server {
    /// A server with the functions that tests use.
    pub(crate) async fn start() -> Server {
        Server::with(functions(), Settings::default()).await
    }

    pub(crate) async fn with(functions: Functions, settings: Settings) -> Server {
        Server::on(Executor::in_memory(functions).unwrap(), settings).await
    }

    pub(crate) async fn on(executor: Executor, settings: Settings) -> Server {
        let service = Service::new(executor.clone(), settings);
        Server::of(executor, service, Arc::default()).await
    }

    /// A server for a service that was set up by the test.
    pub(crate) async fn serving(executor: Executor, service: Service) -> Server {
        Server::of(executor, service, Arc::default()).await
    }

    /// A server whose clients have all the time that they need until the test's clock is advanced.
    pub(crate) async fn on_test_time(functions: Functions, settings: Settings) -> Server {
        let executor = Executor::in_memory(functions).unwrap();
        let clock = Arc::new(TestClock::default());
        let service = Service::with_clock(executor.clone(), settings, Arc::clone(&clock) as Arc<dyn Clock>);
        Server::of(executor, service, clock).await
    }

    /// A server that is set up further, on the test's time.
    pub(crate) async fn set_up(
        functions: Functions,
        settings: Settings,
        set_up: impl FnOnce(Service) -> Service,
    ) -> Server {
        let executor = Executor::in_memory(functions).unwrap();
        let clock = Arc::new(TestClock::default());
        let service = Service::with_clock(executor.clone(), settings, Arc::clone(&clock) as Arc<dyn Clock>);
        Server::of(executor, set_up(service), clock).await
    }

    pub(crate) async fn of(executor: Executor, service: Service, clock: Arc<TestClock>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let mut served = JoinSet::new();
        let handle = service.clone();
        served.spawn(async move { handle.serve(listener, async { drop(stopped.await) }).await });
        Server { executor, service, clock, url, stop: Some(stop), served }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.url.strip_prefix("http://").unwrap()).await.unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(&self.url).await.unwrap()
    }

    pub(crate) async fn channel(&self) -> Channel {
        Endpoint::from_shared(self.url.clone()).unwrap().connect().await.unwrap()
    }

    /// Tells the server to come to rest.
    pub(crate) fn stop(&mut self) {
        self.stop.take().expect("stopped once").send(()).unwrap();
    }

    /// What became of a server that was told to.
    pub(crate) async fn served(&mut self) -> ShutdownReport {
        soon(self.served.join_next()).await.expect("it is served once").unwrap()
    }
}

/// An empty folder of a test.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("anabranch-server-{}-{test}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A clock that stands still until the test advances it.
pub(crate) struct TestClock {
    now: watch::Sender<Instant>,
}

impl Default for TestClock {
    #[allow(clippy::disallowed_methods, reason = "an instant cannot be had in another way")]
    fn default() -> TestClock {
        TestClock { now: watch::Sender::new(Instant::now()) }
    }
}

impl Clock for TestClock {
    fn now(&self) -> Instant {
        *self.now.borrow()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        let mut now = self.now.subscribe();
        Box::pin(async move { drop(now.wait_for(|now| *now >= at).await) })
    }
}

impl TestClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.now.send_modify(|now| *now += by);
    }

    /// What comes of something while time goes by in steps.
    pub(crate) async fn steps<T>(&self, step: Duration, work: impl Future<Output = T>) -> T {
        let steps = async {
            loop {
                self.advance(step);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            done = soon(work) => done,
            () = steps => unreachable!("time does not end"),
        }
    }
}

/// An executor on the test's clock.
pub(crate) fn timed_executor(clock: &Arc<TestClock>) -> Executor {
    let threads = Engine::new(&Config::default()).unwrap();
    let [latency, batch] = [Class::Latency, Class::Batch].map(|class| Arc::clone(threads.pool(class)));
    let (tasks, blocking) = (Arc::clone(threads.tasks()), Arc::clone(&batch));
    let seams = Seams { clock: Arc::clone(clock) as _, tasks, latency, batch, blocking };
    let engine = Engine::with_seams(seams, &Config::default());
    let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
    Executor::new(store, functions(), engine, anabranch_recipe::Config::default())
}

/// Runs beside the test until its owner drops it.
pub(crate) struct Beside<T> {
    handle: JoinHandle<T>,
}

#[allow(clippy::disallowed_methods, reason = "it is aborted with its owner")]
pub(crate) fn beside<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> Beside<T> {
    Beside { handle: tokio::spawn(call) }
}

impl<T> Beside<T> {
    pub(crate) async fn done(mut self) -> T {
        soon(&mut self.handle).await.unwrap()
    }
}

impl<T> Drop for Beside<T> {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

/// A function that gives its input back once the gate is open.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub(crate) fn wait(&self) {
        let is_shut = |open: &mut bool| !*open;
        drop(self.0.1.wait_timeout_while(self.0.0.lock().unwrap(), PATIENCE, is_shut).unwrap());
    }

    /// The functions that tests use, and `gate/1.0.0`.
    pub(crate) fn functions(&self) -> Functions {
        let mut functions = functions();
        // Its cost is such that it is never called in place.
        let signature = Signature::new(FunctionId::new("gate", "1.0.0"), "Its input, later.");
        let signature = Signature {
            other_params: true,
            holds: Holds::Everything,
            nanos_per_kib: Signature::OPAQUE,
            memory: anabranch_recipe::MemoryNeed::WHOLE,
            ..signature
        };
        functions.add(GateFunction { signature, gate: self.clone() });
        functions
    }
}

/// Opens it, so that no thread is left waiting.
pub(crate) struct OpenOnDrop(pub(crate) Gate);

impl Drop for OpenOnDrop {
    fn drop(&mut self) {
        self.0.open();
    }
}

struct GateFunction {
    signature: Signature,
    gate: Gate,
}

impl Function for GateFunction {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn begin(&self, _: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        Ok(Box::new(GateKernel { gate: self.gate.clone() }))
    }
}

struct GateKernel {
    gate: Gate,
}

impl Kernel for GateKernel {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.gate.wait();
        out.push(chunk);
        Ok(())
    }
}

/// Bytes that look like nothing.
pub(crate) fn noise(len: usize, seed: u64) -> Bytes {
    let mut rng = anabranch_testkit::Rng::new(seed);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&rng.bits().to_le_bytes());
    }
    bytes.truncate(len);
    bytes.into()
}

/// A folder of one test, which is removed with it.
pub(crate) struct TempFolder(PathBuf);

impl TempFolder {
    pub(crate) fn new() -> TempFolder {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("anabranch-server-test-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        TempFolder(path)
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
