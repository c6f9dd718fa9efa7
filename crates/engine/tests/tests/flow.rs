//! Flows: typed inputs, how values travel, policies, errors with names.

mod errors;
mod policies;
mod random;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_engine::flow::{Error, Results, optional};
use anabranch_engine::{Config, Engine, Flow};
use anabranch_testkit::{Leftovers, Sim};

/// A simulation with an engine.
struct World {
    sim: Sim,
    engine: Engine,
}

impl World {
    fn new() -> World {
        let sim = Sim::new(1);
        World { engine: sim.engine(&Config::default()), sim }
    }

    fn run(&self, flow: Flow) -> Result<Results, Error> {
        let results = self.sim.block_on(flow.run(&self.engine));
        assert_eq!(self.sim.settle(), Leftovers { tasks: 0, jobs: 0 });
        results
    }

    /// Virtual time that passes.
    fn sleep(&self, millis: u64) -> impl Future<Output = ()> + Send + 'static {
        let clock = Arc::clone(self.engine.clock());
        async move { clock.sleep_until(clock.now() + Duration::from_millis(millis)).await }
    }
}

#[test]
fn inputs_keep_their_types() {
    let world = World::new();
    let mut flow = Flow::new("types");
    let name = flow.node("name").future((), |()| async { Ok("Ada".to_owned()) });
    let numbers: Vec<_> =
        (1..=3).map(|number| flow.node("number").job((), move |(), _| Ok(number))).collect();
    let flags = [true, false].map(|flag| flow.node("flag").future((), move |()| async move { Ok(flag) }));
    let slice = flow.node("slice").job(&numbers[..2], |numbers, _| Ok(numbers.iter().sum::<u64>()));
    let text = flow.node("text").job(
        (&name, &numbers, flags, slice, optional(&name)),
        |(name, numbers, flags, slice, again), _| {
            Ok(format!("{name} {numbers:?} {flags:?} {slice} {again:?}"))
        },
    );
    let doubled = flow.node("moved").job(numbers, |numbers: Vec<u64>, _| Ok(numbers.len()));
    let mut results = world.run(flow).unwrap();
    assert_eq!(results.take(text).unwrap(), "Ada [1, 2, 3] [true, false] 3 Some(\"Ada\")");
    assert_eq!((results.get(&name).unwrap().as_str(), results.get(&doubled).unwrap()), ("Ada", &3));
}

/// Counts its clones.
struct CloneCounter(Arc<AtomicUsize>);

impl Clone for CloneCounter {
    fn clone(&self) -> CloneCounter {
        self.0.fetch_add(1, Ordering::SeqCst);
        CloneCounter(Arc::clone(&self.0))
    }
}

#[test]
fn a_moved_handle_moves_the_value_and_a_borrowed_one_clones_it() {
    let clones = |read: fn(&mut Flow, anabranch_engine::flow::Node<CloneCounter>)| {
        let (world, count, mut flow) = (World::new(), Arc::<AtomicUsize>::default(), Flow::new("clones"));
        let value = CloneCounter(Arc::clone(&count));
        let node = flow.node("value").future((), move |()| async move { Ok(value) });
        read(&mut flow, node);
        world.run(flow).unwrap();
        count.load(Ordering::SeqCst)
    };
    assert_eq!(clones(|flow, node| drop(flow.node("a").job(node, |_, _| Ok(())))), 0, "moved");
    assert_eq!(clones(|flow, node| drop(flow.node("a").job(&node, |_, _| Ok(())))), 1, "borrowed");
    let both = clones(|flow, node| {
        flow.node("a").job(&node, |_, _| Ok(()));
        flow.node("b").job(node, |_, _| Ok(()));
    });
    assert_eq!(both, 2, "borrowed and moved");
    let twice = clones(|flow, node| drop(flow.node("a").job((&node, optional(&node)), |_, _| Ok(()))));
    assert_eq!(twice, 2, "twice by the same node");
}

#[test]
fn a_value_that_is_not_clone_travels_by_move() {
    struct Solid(u64);
    let world = World::new();
    let mut flow = Flow::new("solid");
    let first = flow.node("first").job((), |(), _| Ok(Solid(1)));
    let second = flow.node("second").future(first, |solid| async move { Ok(Solid(solid.0 + 1)) });
    let mut results = world.run(flow).unwrap();
    assert_eq!(results.take(second).unwrap().0, 2);
}

#[test]
fn a_moved_value_is_freed_with_its_reader_and_a_borrowed_one_stays() {
    let world = World::new();
    let mut flow = Flow::new("freed");
    let (moved, borrowed) = (Arc::new(1), Arc::new(2));
    let watched = (Arc::downgrade(&moved), Arc::downgrade(&borrowed));
    let moved = flow.node("moved").future((), move |()| async move { Ok(moved) });
    let borrowed = flow.node("borrowed").future((), move |()| async move { Ok(borrowed) });
    let reader = flow.node("reader").future((moved, &borrowed), |_| async { Ok(()) });
    let seen = flow.node("seen").after(&reader).future((), move |()| async move {
        Ok((watched.0.upgrade().is_some(), watched.1.upgrade().is_some()))
    });
    let mut results = world.run(flow).unwrap();
    assert_eq!(results.take(seen).unwrap(), (false, true));
    assert_eq!(**results.get(&borrowed).unwrap(), 2);
}

#[test]
fn a_run_of_a_flow_can_be_spawned() {
    fn is_send<T: Send>(future: T) -> T {
        future
    }
    let world = World::new();
    let mut flow = Flow::new("send");
    let node = flow.node("node").future((), |()| async { Ok(Mutex::new(1)) });
    let mut results = world.sim.block_on(is_send(flow.run(&world.engine))).unwrap();
    assert_eq!(results.take(node).unwrap().into_inner().unwrap(), 1);
}

#[test]
fn an_empty_flow_ends_at_once() {
    assert_eq!(World::new().run(Flow::new("empty")).unwrap().report().finished, 0);
}
