//! Timelines of simulated runs, with and without losses, and of events in no order at all.

use std::time::Duration;

use anabranch_engine::event::{Event, EventKind, FailureReason, ListenerItem, Placement, RunId, WaitReason};
use anabranch_engine::timeline::Timeline;
use anabranch_engine::{Config, Dag, Edge, NodeId, Options};
use anabranch_testkit::{Rng, Sim};
use expect_test::expect;

use super::hold::hold;
use super::words;
use crate::script::{Player, Script, listen};
use crate::tape::at;

fn played(text: &str, in_flight: usize, deadline: Option<u64>) -> (Script, Vec<ListenerItem>) {
    let script = Script::parse(text);
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let mut listener = listen(&engine);
    let deadline = deadline.map(|millis| engine.clock().now() + Duration::from_millis(millis));
    let options = Options { in_flight, deadline, ..Options::default() };
    let mut player = Player::new(&script, engine.clock());
    let _ = sim.block_on(engine.run(&script.dag, &script.policies, &mut player, &options).unwrap());
    let heard = std::iter::from_fn(|| listener.try_next()).collect();
    (script, heard)
}

fn run_of(heard: &[ListenerItem]) -> RunId {
    match heard[0] {
        ListenerItem::Event(event) => event.run,
        ListenerItem::Lost(_) => panic!("lost events"),
    }
}

#[test]
fn a_real_run_with_one_slot_waits_for_it() {
    let (script, heard) = played("v: io 10; f: io 15 <- v; r: io 20 <- v; m <- f r", 1, None);
    let timeline = Timeline::new(run_of(&heard), &script.dag, &heard).unwrap();
    expect![[r#"
        v 0/0/10 Finished: Io 10
        f 10/10/25 Finished: Inputs 10, Io 15
        r 10/25/45 Finished: Inputs 10, Slot 15, Io 20
        m 45/45/45 Finished: Inputs 45
        v > r > m in 45: Slot 15, Io 30"#]]
    .assert_eq(&words(&timeline, &|node| script.name(node).to_owned()));
    hold(&timeline);
}

#[test]
fn whatever_a_simulated_run_does_its_path_adds_up() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let text: Vec<String> = (0..rng.within(1..60)).map(|node| random_node(&mut rng, node)).collect();
        let deadline = rng.percent(30).then(|| rng.within(1..60));
        let (script, mut heard) = played(&text.join("; "), rng.within(1..9) as usize, deadline);
        let run = run_of(&heard);
        hold(&Timeline::new(run, &script.dag, &heard).unwrap());
        let count = heard.len() as u64;
        for _ in 0..count / 5 {
            heard.remove(rng.within(0..heard.len() as u64) as usize);
        }
        heard.insert(0, ListenerItem::Lost(count / 5));
        if let Ok(timeline) = Timeline::new(run, &script.dag, &heard) {
            hold(&timeline);
        }
    }
}

fn random_node(rng: &mut Rng, node: u64) -> String {
    let place = *rng.choose(&["io", "spawn", "cpu", "block"]);
    let end = *rng.choose(&[
        "",
        "",
        "",
        "",
        "fail isolate",
        "fail fallback",
        "skip",
        "panic isolate",
        "timeout 3 isolate",
    ]);
    let inputs: Vec<String> = (0..node).filter(|_| rng.percent(8)).map(|input| input.to_string()).collect();
    let after = if rng.percent(30) { "~" } else { "" };
    let inputs: Vec<String> = inputs.iter().map(|input| format!("{after}n{input}")).collect();
    let arrow = if inputs.is_empty() { "" } else { "<-" };
    format!("n{node}: {place} {} {end} {arrow} {}", rng.within(0..9), inputs.join(" "))
}

#[test]
fn no_order_of_events_is_too_odd() {
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let node_count = rng.within(1..8) as u32;
        let pairs = (0..node_count).flat_map(|to| (0..to).map(move |from| (from, to)));
        let edges: Vec<_> =
            pairs.filter(|_| rng.percent(30)).map(|(a, b)| (NodeId(a), NodeId(b), Edge::Needs)).collect();
        let graph = Dag::new(node_count, &edges).unwrap();
        let heard: Vec<ListenerItem> =
            (0..rng.within(1..30)).map(|_| random_event(&mut rng, node_count)).collect();
        if let Ok(timeline) = Timeline::new(RunId(0), &graph, &heard) {
            hold(&timeline);
        }
    }
}

fn random_event(rng: &mut Rng, node_count: u32) -> ListenerItem {
    let node = NodeId(rng.within(0..u64::from(node_count)) as u32);
    let kind = match rng.within(0..10) {
        0 => EventKind::RunStarted(node_count),
        1 => EventKind::Waiting(node, *rng.choose(&[WaitReason::Limit, WaitReason::Retry])),
        2..5 => {
            EventKind::Started(node, *rng.choose(&[Placement::Inline, Placement::Future, Placement::Pool]))
        }
        5 => EventKind::Running(node),
        6 => EventKind::Finished(node),
        7 => EventKind::Failed(node, FailureReason::Error),
        8 => EventKind::Dropped(node),
        _ => return ListenerItem::Lost(1),
    };
    ListenerItem::Event(Event { run: RunId(0), at: at(rng.within(0..50) as f64), kind })
}
