//! Events as text: `0 run 2; 0 a start pool; 3 a running; 5 a done; 5 b drop; 5 end complete`.
//!
//! An entry is a time in milliseconds, a node (a letter, `a` being the first) and what it did; or `run COUNT`,
//! `end HOW`. `@2 ...` tells of run 2 (else 0); `lost 7` stands alone.

use std::time::{Duration, Instant};

use anabranch_engine::NodeId;
use anabranch_engine::event::{Ending, Event, Heard, Place, Reason, RunId, Wait, What};

#[allow(clippy::disallowed_methods, reason = "any instant will do to count from")]
pub(crate) fn zero() -> Instant {
    static ZERO: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    *ZERO.get_or_init(Instant::now)
}

pub(crate) fn at(millis: f64) -> Instant {
    zero() + Duration::from_secs_f64(millis / 1e3)
}

pub(crate) fn tape(text: &str) -> Vec<Heard> {
    let entries = text.split([';', '\n']).map(str::trim).filter(|entry| !entry.is_empty());
    entries.map(entry).collect()
}

fn entry(text: &str) -> Heard {
    let mut words = text.split_whitespace().peekable();
    let mut run = RunId(0);
    if let Some(number) = words.peek().and_then(|word| word.strip_prefix('@')) {
        run = RunId(number.parse().unwrap());
        words.next();
    }
    let words: Vec<&str> = words.collect();
    if let ["lost", count] = words[..] {
        return Heard::Lost(count.parse().unwrap());
    }
    let what = match words[1..] {
        ["run", count] => What::RunStarted(count.parse().unwrap()),
        ["end", how] => What::RunEnded(ending(how)),
        [name, ref verb @ ..] => of_node(node(name), verb),
        [] => panic!("`{text}` says nothing"),
    };
    Heard::Event(Event { run, at: at(words[0].parse().unwrap()), what })
}

fn node(name: &str) -> NodeId {
    match name.as_bytes() {
        [letter @ b'a'..=b'z'] => NodeId(u32::from(letter - b'a')),
        _ => NodeId(name.parse().unwrap()),
    }
}

fn of_node(node: NodeId, verb: &[&str]) -> What {
    match *verb {
        ["limit"] => What::Waiting(node, Wait::Limit),
        ["retry"] => What::Waiting(node, Wait::Retry),
        ["start", place] => What::Started(node, self::place(place)),
        ["running"] => What::Running(node),
        ["done"] => What::Finished(node),
        ["fallback", why] => What::FellBack(node, reason(why)),
        ["fail", why] => What::Failed(node, reason(why)),
        ["drop"] => What::Dropped(node),
        _ => panic!("unknown verb {verb:?}"),
    }
}

fn place(word: &str) -> Place {
    match word {
        "inline" => Place::Inline,
        "future" => Place::Future,
        "spawned" => Place::Spawned,
        "pool" => Place::Pool,
        "blocking" => Place::Blocking,
        _ => panic!("unknown place `{word}`"),
    }
}

fn reason(word: &str) -> Reason {
    match word {
        "error" => Reason::Error,
        "panic" => Reason::Panic,
        "timeout" => Reason::Timeout,
        "deadline" => Reason::Deadline,
        "abandoned" => Reason::Abandoned,
        _ => panic!("unknown reason `{word}`"),
    }
}

fn ending(word: &str) -> Ending {
    match word {
        "complete" => Ending::Complete,
        "failed" => Ending::Failed,
        "deadline" => Ending::Deadline,
        "cut" => Ending::Cut,
        "dropped" => Ending::Dropped,
        _ => panic!("unknown ending `{word}`"),
    }
}
