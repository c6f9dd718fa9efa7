//! Streaming functions in a row are fused, and nobody can tell by the bytes.

use std::time::Duration;

use anabranch_content::Store;
use anabranch_engine::Engine;
use anabranch_recipe::{
    Address, BeginCost, Call, Config, Executor, Fault, Function, FunctionId, Functions, Get, Invalidate,
    Kernel, OpenInputs, Out, Reach, Recipe, Signature, Source, UnknownFunction,
};
use bytes::Bytes;
use proptest::prelude::*;

use crate::world::{World, get, leaf, recipe, recipe_of, source};

fn executor(fuse_from: u64) -> Executor {
    executor_of(Functions::builtin(), fuse_from)
}

fn executor_of(functions: Functions, fuse_from: u64) -> Executor {
    let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
    let engine = anabranch_engine::Config { batch_threads: 3, ..anabranch_engine::Config::default() };
    let engine = Engine::new(&engine).unwrap();
    Executor::new(store, functions, engine, Config { fuse_from, ..Config::default() })
}

fn patterned(len: usize) -> Bytes {
    (0..len).map(|place| (place * 7 % 251) as u8).collect::<Vec<_>>().into()
}

async fn is_remembered(executor: &Executor, address: Address) -> bool {
    executor.store().recall(&address).await.unwrap().is_some()
}

#[tokio::test]
async fn only_the_end_of_a_row_is_kept() {
    let executor = executor(1 << 20);
    for (len, kept) in [(1 << 20, false), (1000, true)] {
        let data = leaf(&executor, patterned(len)).await;
        let first = recipe(&executor, "bitwise_not", &[data]).await;
        let second = recipe(&executor, "hex_encode", &[first]).await;
        let third = recipe(&executor, "sha256", &[second]).await;
        assert_eq!(source(&executor, third).await, Source::Computed(3));
        assert_eq!(is_remembered(&executor, first).await, kept);
        assert_eq!(is_remembered(&executor, second).await, kept);
        let digest = get(&executor, third).await.unwrap();
        // By itself, each is what it would have been.
        get(&executor, first).await.unwrap();
        get(&executor, second).await.unwrap();
        executor.invalidate(&third, &Default::default()).await.unwrap();
        assert_eq!(source(&executor, third).await, Source::Computed(1));
        assert_eq!(get(&executor, third).await.unwrap(), digest);
    }
}

/// A function that returns its input is not fused: its value is stored already, under the same address.
#[tokio::test]
async fn a_value_that_is_passed_on_is_not_written_again() {
    let executor = executor(1 << 20);
    let data = leaf(&executor, patterned(1 << 20)).await;
    let first = recipe(&executor, "identity", &[data]).await;
    let second = recipe(&executor, "identity", &[first]).await;
    let third = recipe(&executor, "bitwise_not", &[second]).await;
    let fourth = recipe(&executor, "identity", &[third]).await;
    let last = recipe(&executor, "hex_encode", &[fourth]).await;
    // The call of the second recipe is the first recipe.
    assert_eq!(source(&executor, last).await, Source::Computed(4));
    for (address, output) in [(first, data), (second, data)] {
        let memo = executor.store().recall(&address).await.unwrap();
        assert_eq!(memo.map(|memo| (memo.output, memo.cost.cpu)), Some((output, Duration::ZERO)));
    }
    // Behind another function it is fused: its input is not stored.
    assert!(!is_remembered(&executor, third).await);
    assert!(!is_remembered(&executor, fourth).await);
}

/// What two recipes of the store read is kept, even if only one of them is asked for.
#[tokio::test]
async fn what_others_read_as_well_is_kept() {
    let executor = executor(1 << 20);
    let data = leaf(&executor, patterned(1 << 20)).await;
    let shared = recipe(&executor, "bitwise_not", &[data]).await;
    let one = recipe(&executor, "sha256", &[shared]).await;
    recipe(&executor, "md5", &[shared]).await;
    assert_eq!(source(&executor, one).await, Source::Computed(2));
    assert!(is_remembered(&executor, shared).await);
}

/// The lines of a city, sorted, with so many streaming functions after that. Returns the recipes after the first.
async fn report(executor: &Executor, sales: &str, streaming: usize) -> Vec<Address> {
    let sales = leaf(executor, sales.to_owned()).await;
    let grep = Recipe::new(FunctionId::new("grep", "1.0.0"), vec![sales]).with("pattern", "Oslo");
    let oslo = executor.add(&grep, UnknownFunction::Refuse).await.unwrap().address;
    let mut all = vec![recipe(executor, "sort", &[oslo]).await];
    for place in 0..streaming {
        let prefix = recipe_of("line_prefix", &[all[place]]).with("prefix", format!("{place} "));
        all.push(executor.add(&prefix, UnknownFunction::Refuse).await.unwrap().address);
    }
    all
}

const SALES: [&str; 2] = ["Oslo 1\nBergen 2\n", "Oslo 1\nBergen 3\n"];

/// The number of recipes that ran and that did not have to.
async fn counts(executor: &Executor, address: Address) -> (Source, u32) {
    let got = executor.get(&address, &Get::default()).await.unwrap();
    (got.source, got.cut_off)
}

#[tokio::test]
async fn equal_values_cut_fused_functions_off() {
    for streaming in 1..=5 {
        let executor = executor(1);
        let last = report(&executor, SALES[0], streaming).await[streaming];
        assert_eq!(counts(&executor, last).await, (Source::Computed(2 + streaming as u32), 0));
        let value = get(&executor, last).await.unwrap();
        let last = report(&executor, SALES[1], streaming).await[streaming];
        let only_grep = (Source::Computed(1), 1 + streaming as u32);
        assert_eq!(counts(&executor, last).await, only_grep, "{streaming} streaming functions");
        assert_eq!(get(&executor, last).await.unwrap(), value);
        // A part of the fused functions that was computed alone is cut off, and the others read its value.
        let parts = report(&executor, "Oslo 3\n", streaming).await;
        get(&executor, parts[1]).await.unwrap();
        let parts = report(&executor, "Oslo 3\nBergen 4\n", streaming).await;
        let some = (Source::Computed(streaming as u32), 2);
        assert_eq!(counts(&executor, parts[streaming]).await, some, "{streaming} streaming functions");
    }
}

/// Fused functions are remembered by call, and that is forgotten with the value of each of them.
#[tokio::test]
async fn an_invalidated_recipe_of_a_fused_chain_is_computed() {
    const STREAMING: usize = 4;
    let dependents = Invalidate { reach: Reach::Dependents, ..Invalidate::default() };
    for stage in 1..=STREAMING {
        // Before it was computed, by the call of another recipe that read the same value.
        let executor = executor(1);
        let first = report(&executor, SALES[0], STREAMING).await;
        get(&executor, first[STREAMING]).await.unwrap();
        let second = report(&executor, SALES[1], STREAMING).await;
        get(&executor, second[0]).await.unwrap();
        executor.invalidate(&second[stage], &dependents).await.unwrap();
        let all = (Source::Computed(STREAMING as u32), 0);
        assert_eq!(counts(&executor, second[STREAMING]).await, all, "stage {stage}");
        // After it was computed, and a part of the chain, too.
        get(&executor, second[stage - 1]).await.unwrap();
        executor.invalidate(&second[stage], &dependents).await.unwrap();
        let rest = (Source::Computed((STREAMING + 1 - stage) as u32), 0);
        assert_eq!(counts(&executor, second[STREAMING]).await, rest, "stage {stage}");
        // Alone, before the value of the last one is needed.
        let third = report(&executor, "Oslo 1\nBergen 4\n", STREAMING).await;
        if stage < STREAMING {
            get(&executor, third[stage]).await.unwrap();
            executor.invalidate(&third[stage], &Invalidate::default()).await.unwrap();
            let (source, _) = counts(&executor, third[STREAMING]).await;
            assert!(matches!(source, Source::Computed(1..)), "stage {stage}: {source:?}");
        }
    }
}

/// The memo of a fused call says how its functions were fused. It counts only while its value does.
#[tokio::test]
async fn an_invalidated_call_does_not_say_what_is_fused() {
    let executor = executor(1);
    let [first, between, last] = &report(&executor, SALES[0], 2).await[..] else { unreachable!() };
    get(&executor, *last).await.unwrap();
    assert!(!is_remembered(&executor, *between).await, "it is fused");
    // The call of the last one is found by the value of the first one, which is forgotten before.
    for address in [first, last] {
        executor.invalidate(address, &Invalidate::default()).await.unwrap();
    }
    // From now on, two recipes read the value between them.
    recipe(&executor, "sha256", &[*between]).await;
    get(&executor, *last).await.unwrap();
    assert!(is_remembered(&executor, *between).await);
}

/// Streams its input through, once the gate is open; counts its calls.
struct GatedStream(Signature, World);

impl Function for GatedStream {
    fn signature(&self) -> &Signature {
        &self.0
    }

    fn begin(&self, _: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        self.1.calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.1.pass();
        Ok(Box::new(Through))
    }
}

struct Through;

impl Kernel for Through {
    fn wants(&self, open: &OpenInputs<'_>) -> Option<usize> {
        open.first()
    }

    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        out.push(chunk);
        Ok(())
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// M7: a value inside of a row that another get computes at this moment is shared. A row that is under way keeps no value
/// between its functions, so a get of such a value that comes later computes it.
#[test]
fn a_value_between_fused_functions_is_shared_with_an_earlier_get() {
    for (inner_first, calls) in [(true, 1), (false, 2)] {
        let world = World::default();
        let mut functions = world.functions();
        let signature = Signature::new(FunctionId::new("gated_stream", "1"), "Streams its input through.");
        let signature = Signature { begin: BeginCost::Compiles, ..signature.nanos_per_kib(1) };
        functions.add(GatedStream(signature, world.clone()));
        let executor = executor_of(functions, 1);
        let (second, third) = block_on(async {
            let data = leaf(&executor, patterned(1 << 20)).await;
            let first = recipe(&executor, "gated_stream/1", &[data]).await;
            let second = recipe(&executor, "bitwise_not", &[first]).await;
            (second, recipe(&executor, "hex_encode", &[second]).await)
        });
        let order = if inner_first { [second, third] } else { [third, second] };
        let mut events = executor.listen();
        let mut lengths = std::thread::scope(|scope| {
            let [one, other] = order.map(|address| {
                let executor = &executor;
                move || block_on(get(executor, address)).unwrap().len()
            });
            let one = scope.spawn(one);
            world.wait_for(1);
            let other = scope.spawn(other);
            if inner_first {
                block_on(async { while executor.status().gets < 2 && events.next().await.is_some() {} });
            } else {
                world.wait_for(2);
            }
            world.open();
            [one.join().unwrap(), other.join().unwrap()]
        });
        lengths.sort_unstable();
        assert_eq!(lengths, [1 << 20, 2 << 20]);
        assert!(block_on(is_remembered(&executor, second)));
        assert_eq!(world.calls(), calls, "the get of the inner value came first: {inner_first}");
    }
}

/// In Deriva, a value that a streaming graph reads twice is a panic.
#[tokio::test]
async fn a_large_diamond_comes_together() {
    let executor = executor(1);
    let data = patterned(3 << 20);
    let leaf = leaf(&executor, data.clone()).await;
    let same = recipe(&executor, "identity", &[leaf]).await;
    let left = recipe(&executor, "bitwise_not", &[same]).await;
    let right = recipe(&executor, "identity", &[same]).await;
    let top = recipe(&executor, "concat", &[left, right, left]).await;
    let value = get(&executor, top).await.unwrap();
    assert_eq!(value.len(), 3 * data.len());
    assert!(value[data.len()..2 * data.len()] == data);
    let twice = recipe(&executor, "concat", &[leaf, leaf]).await;
    assert!(get(&executor, twice).await.unwrap() == [&data[..], &data[..]].concat());
}

/// In Deriva, a function that needs whole inputs cannot read one that streams.
#[tokio::test]
async fn whole_functions_read_streaming_ones() {
    let executor = executor(1);
    let data = leaf(&executor, patterned(2 << 20)).await;
    let same = recipe(&executor, "identity", &[data]).await;
    let turned = recipe(&executor, "reverse", &[same]).await;
    let back = recipe(&executor, "reverse", &[turned]).await;
    let again = recipe(&executor, "identity", &[back]).await;
    assert!(get(&executor, again).await.unwrap() == patterned(2 << 20));
}

#[tokio::test]
async fn a_fault_in_a_row_is_told_of_its_own_recipe() {
    let executor = executor(1);
    let data = leaf(&executor, patterned(1 << 20)).await;
    let fine = recipe(&executor, "bitwise_not", &[data]).await;
    let bad = recipe(&executor, "hex_decode", &[fine]).await;
    let above = recipe(&executor, "sha256", &[bad]).await;
    let error = get(&executor, above).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("`hex_decode/1.0.0` of {bad:?} failed: input 1:")), "{error}");
    assert_eq!(executor.status().computing, 0);
}

/// A bomb that is fused goes through memory piece by piece.
#[tokio::test]
async fn what_grows_in_a_row_is_bounded() {
    let executor = executor(1);
    let data = leaf(&executor, patterned(64 << 10)).await;
    let many = recipe_of("repeat", &[data]).with("count", "4000");
    let many = executor.add(&many, UnknownFunction::Refuse).await.unwrap().address;
    let small = recipe(&executor, "sha256", &[many]).await;
    assert_eq!(get(&executor, small).await.unwrap().len(), 32);
}

fn stages() -> impl Strategy<Value = Vec<Recipe>> {
    let plain = prop_oneof![
        Just("identity"),
        Just("concat"),
        Just("bitwise_not"),
        Just("hex_encode"),
        Just("hex_decode"),
        Just("base64_encode"),
        Just("base64_decode"),
        Just("non_empty"),
        Just("sha256"),
        Just("byte_count"),
        Just("reverse"),
        Just("gzip_compress"),
        Just("gzip_decompress"),
        Just("utf8_validate"),
    ]
    .prop_map(|name| recipe_of(name, &[]));
    let cut = (prop_oneof![Just("take"), Just("skip")], 0..3000u32)
        .prop_map(|(name, bytes)| recipe_of(name, &[]).with("bytes", bytes.to_string()));
    let repeat = (1..40u32).prop_map(|count| recipe_of("repeat", &[]).with("count", count.to_string()));
    let prefix = Just(recipe_of("prefix", &[]).with("prefix", "before "));
    prop::collection::vec(prop_oneof![6 => plain, 2 => cut, 1 => repeat, 1 => prefix], 1..7)
}

async fn outcome(fuse_from: u64, data: Bytes, stages: &[Recipe]) -> Result<Bytes, String> {
    let executor = executor(fuse_from);
    let mut tip = leaf(&executor, data).await;
    for stage in stages {
        let stage = Recipe { inputs: vec![tip], ..stage.clone() };
        tip = executor.add(&stage, UnknownFunction::Accept).await.unwrap().address;
    }
    get(&executor, tip).await.map_err(|error| error.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn rows_come_to_the_same_fused_or_not(len in 0..40_000usize, stages in stages()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let data = patterned(len);
        let fused = runtime.block_on(outcome(1, data.clone(), &stages));
        let apart = runtime.block_on(outcome(u64::MAX, data, &stages));
        // Where two stages fail, a fused chain may meet the later one's failure first.
        prop_assert_eq!(fused.ok(), apart.ok());
    }
}
