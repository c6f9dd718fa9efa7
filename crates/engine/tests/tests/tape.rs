//! Events as text: `0 run 2; 0 a start pool; 3 a running; 5 a done; 5 b drop; 5 end complete`.
//!
//! An entry is a time in milliseconds, a node (a letter, `a` being the first) and what it did; or `run COUNT`,
//! `end HOW`. `@2 ...` tells of run 2 (else 0); `lost 7` stands alone.

use std::time::{Duration, Instant};

use anabranch_engine::NodeId;
use anabranch_engine::event::{
    Event, EventKind, FailureReason, ListenerItem, Placement, RunEnding, RunId, WaitReason,
};

#[allow(clippy::disallowed_methods, reason = "any instant will do to count from")]
pub(crate) fn zero() -> Instant {
    static ZERO: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    *ZERO.get_or_init(Instant::now)
}

pub(crate) fn at(millis: f64) -> Instant {
    zero() + Duration::from_secs_f64(millis / 1e3)
}

pub(crate) fn tape(text: &str) -> Vec<ListenerItem> {
    let entries = text.split([';', '\n']).map(str::trim).filter(|entry| !entry.is_empty());
    entries.map(entry).collect()
}

fn entry(text: &str) -> ListenerItem {
    let mut words = text.split_whitespace().peekable();
    let mut run = RunId(0);
    if let Some(number) = words.peek().and_then(|word| word.strip_prefix('@')) {
        run = RunId(number.parse().unwrap());
        words.next();
    }
    let words: Vec<&str> = words.collect();
    if let ["lost", count] = words[..] {
        return ListenerItem::Lost(count.parse().unwrap());
    }
    let kind = match words[1..] {
        ["run", count] => EventKind::RunStarted(count.parse().unwrap()),
        ["end", how] => EventKind::RunEnded(ending(how)),
        [name, ref verb @ ..] => of_node(node(name), verb),
        [] => panic!("`{text}` says nothing"),
    };
    ListenerItem::Event(Event { run, at: at(words[0].parse().unwrap()), kind })
}

fn node(name: &str) -> NodeId {
    match name.as_bytes() {
        [letter @ b'a'..=b'z'] => NodeId(u32::from(letter - b'a')),
        _ => NodeId(name.parse().unwrap()),
    }
}

fn of_node(node: NodeId, verb: &[&str]) -> EventKind {
    match *verb {
        ["limit"] => EventKind::Waiting(node, WaitReason::Limit),
        ["retry"] => EventKind::Waiting(node, WaitReason::Retry),
        ["start", place] => EventKind::Started(node, self::place(place)),
        ["running"] => EventKind::Running(node),
        ["done"] => EventKind::Finished(node),
        ["fallback", why] => EventKind::FellBack(node, reason(why)),
        ["fail", why] => EventKind::Failed(node, reason(why)),
        ["drop"] => EventKind::Dropped(node),
        _ => panic!("unknown verb {verb:?}"),
    }
}

fn place(word: &str) -> Placement {
    match word {
        "inline" => Placement::Inline,
        "future" => Placement::Future,
        "spawned" => Placement::Spawned,
        "pool" => Placement::Pool,
        "blocking" => Placement::Blocking,
        _ => panic!("unknown place `{word}`"),
    }
}

fn reason(word: &str) -> FailureReason {
    match word {
        "error" => FailureReason::Error,
        "panic" => FailureReason::Panic,
        "timeout" => FailureReason::Timeout,
        "deadline" => FailureReason::Deadline,
        "abandoned" => FailureReason::Abandoned,
        _ => panic!("unknown reason `{word}`"),
    }
}

fn ending(word: &str) -> RunEnding {
    match word {
        "complete" => RunEnding::Complete,
        "failed" => RunEnding::Failed,
        "deadline" => RunEnding::Deadline,
        "cut" => RunEnding::Cut,
        "drained" => RunEnding::Drained,
        "dropped" => RunEnding::Dropped,
        _ => panic!("unknown ending `{word}`"),
    }
}
