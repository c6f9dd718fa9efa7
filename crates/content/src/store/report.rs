//! Reports the events of a store: to the listener, to the log (`tracing`), and as the health in the statistics.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anabranch_text::count;
use tracing::{debug, error, info, warn};

use super::config::Listener;
use super::event::{Event, OpenReport};
use crate::facts::Class;

/// The health of a store since it was opened, opening included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Acknowledged items that are known to be lost: values, derivations, pins, names, or unreadable stretches of the
    /// log, whose content is unknown.
    pub lost: u64,
    /// Damaged items that were moved to quarantine, acknowledged or derivable.
    pub damaged: u64,
    /// Derivations that were remembered with another output than before.
    pub diverged: u64,
    /// Background work that failed.
    pub failures: u64,
    /// The index is damaged, and is being rebuilt from the log.
    pub index_damaged: bool,
    /// The number of times a damaged index was rebuilt from the log. The data is whole, but the disk changed bytes.
    pub index_rebuilt: u64,
    /// The store is over its quota, and collection cannot get it below.
    pub over_quota: bool,
}

impl Health {
    /// Whether there is nothing to report.
    pub fn is_fine(&self) -> bool {
        *self == Health::default()
    }
}

/// `fine`, or one sentence that names each problem.
impl fmt::Display for Health {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems = [
            (self.lost, count(self.lost, "acknowledged item") + " lost"),
            (self.damaged, count(self.damaged, "damaged item") + " in quarantine"),
            (self.diverged, count(self.diverged, "derivation") + " with another output than before"),
            (self.failures, count(self.failures, "failure") + " in the background"),
            (self.index_damaged.into(), "the index is damaged and is being rebuilt".to_owned()),
            (
                self.index_rebuilt,
                "a damaged index was rebuilt ".to_owned() + &count(self.index_rebuilt, "time"),
            ),
            (self.over_quota.into(), "the quota is exceeded".to_owned()),
        ];
        let problems: Vec<String> =
            problems.into_iter().filter_map(|(count, problem)| (count > 0).then_some(problem)).collect();
        match problems.is_empty() {
            true => out.write_str("fine"),
            false => write!(out, "{}; see the log", problems.join(", ")),
        }
    }
}

/// Reports the events of one store. All parts of the store share one reporter.
#[derive(Default)]
pub(crate) struct Reporter {
    listener: Option<Listener>,
    lost: AtomicU64,
    damaged: AtomicU64,
    diverged: AtomicU64,
    failures: AtomicU64,
    index_damaged: AtomicBool,
    index_rebuilt: AtomicU64,
    over_quota: AtomicBool,
}

impl Reporter {
    pub(crate) fn new(listener: Option<Listener>) -> Reporter {
        Reporter { listener, ..Reporter::default() }
    }

    /// Calls the listener, counts the event and writes its log line. The log has no line for [`Event::Done`].
    pub(crate) fn tell(&self, event: &Event) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
        self.count(event);
        log(event);
    }

    /// The health so far. Whether the quota is exceeded at this moment is for the caller to say.
    pub(crate) fn health(&self) -> Health {
        Health {
            lost: self.lost.load(Ordering::Relaxed),
            damaged: self.damaged.load(Ordering::Relaxed),
            diverged: self.diverged.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            index_damaged: self.index_damaged.load(Ordering::Relaxed),
            index_rebuilt: self.index_rebuilt.load(Ordering::Relaxed),
            over_quota: self.over_quota.load(Ordering::Relaxed),
        }
    }

    fn count(&self, event: &Event) {
        let add = |counter: &AtomicU64, count| {
            counter.fetch_add(count, Ordering::Relaxed);
        };
        match event {
            // The losses may have been reported one by one before.
            Event::Opened(opened) => _ = self.lost.fetch_max(opened.losses(), Ordering::Relaxed),
            Event::Quarantined { class, .. } => {
                add(&self.damaged, 1);
                add(&self.lost, u64::from(*class == Class::Acknowledged));
            }
            Event::Lost { count, .. } => add(&self.lost, *count),
            Event::Diverged { .. } => add(&self.diverged, 1),
            Event::IndexDamaged { .. } => self.index_damaged.store(true, Ordering::Relaxed),
            Event::IndexRebuilt { .. } => {
                self.index_damaged.store(false, Ordering::Relaxed);
                add(&self.index_rebuilt, 1);
            }
            Event::OverQuota { .. } => self.over_quota.store(true, Ordering::Relaxed),
            Event::Failed { .. } | Event::LeftBehind { .. } => add(&self.failures, 1),
            Event::Done { .. } | Event::Removed { .. } | Event::Indexed | Event::Cleaned { .. } => {}
        }
    }
}

/// The target of every log line of this crate.
macro_rules! log_line {
    ($level:ident, $($rest:tt)*) => { $level!(target: "anabranch_content", $($rest)*) };
}

/// Writes one line: an error if acknowledged data was lost, a warning if work has to be done or data derived again.
fn log(event: &Event) {
    match event {
        Event::Done { .. } => {}
        Event::Opened(opened) => log_opened(opened),
        Event::Quarantined { address, what, class: Class::Acknowledged } => {
            log_line!(error, %address, what, "acknowledged data is damaged and was moved to quarantine; put it again");
        }
        Event::Quarantined { address, what, class: Class::Derivable } => {
            log_line!(warn, %address, what, "derivable data is damaged and was moved to quarantine; it is derived again when needed");
        }
        Event::Lost { what, count } => log_line!(error, count, what, "acknowledged data was lost"),
        Event::Diverged { derivation, before, now } => {
            log_line!(warn, %derivation, %before, %now, "a derivation has another output than before");
        }
        Event::Removed { count, why } => log_line!(debug, count, %why, "removed"),
        Event::Indexed => log_line!(debug, "recent entries were written to the index"),
        Event::IndexDamaged { what } => {
            log_line!(
                warn,
                what,
                "the index is damaged; it is rebuilt from the log, and calls that need the damaged part wait for that"
            );
        }
        Event::IndexRebuilt { replayed, took } => {
            let took_ms = took.as_millis() as u64;
            log_line!(
                warn,
                replayed,
                took_ms,
                "the damaged index was rebuilt from the log; no data was lost by it"
            );
        }
        Event::Cleaned { segments, bytes } => {
            log_line!(debug, segments, bytes, "segments of the log were rewritten");
        }
        Event::OverQuota { used } => {
            log_line!(warn, used, "the quota leaves no room, and collecting derivable data does not help");
        }
        Event::LeftBehind { address, error } => {
            log_line!(warn, %address, error = %ErrorChain(error), "a file that is no longer needed could not be removed");
        }
        Event::Failed { doing, error } => {
            log_line!(warn, doing, error = %ErrorChain(error), "background work failed and is tried again");
        }
    }
}

fn log_opened(opened: &OpenReport) {
    let OpenReport { clean, replayed, unfinished, .. } = opened;
    let (lost, unreadable) = (opened.losses(), opened.unreadable.len());
    if lost > 0 {
        log_line!(error, clean, replayed, unfinished, unreadable, lost, "{opened}");
    } else if opened.rebuilt.is_some() {
        log_line!(warn, clean, replayed, unfinished, unreadable, "{opened}");
    } else if opened.is_repaired() {
        log_line!(info, clean, replayed, unfinished, unreadable, "{opened}");
    } else {
        log_line!(debug, clean, "{opened}");
    }
}

/// An error and its causes, in one line.
struct ErrorChain<'a>(&'a crate::Error);

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)?;
        let mut next = std::error::Error::source(self.0);
        while let Some(cause) = next {
            write!(out, ": {cause}")?;
            next = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use expect_test::{Expect, expect};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Metadata, Subscriber};

    use super::*;
    use crate::facts::RemovalReason;
    use crate::{Address, Error, UnreadableStretch};

    /// Collects log lines.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &tracing::Event<'_>) {
            let mut fields = Fields::default();
            event.record(&mut fields);
            let message = fields.0.remove("message").unwrap_or_default();
            let fields: String = fields.0.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            let (level, target) = (event.metadata().level(), event.metadata().target());
            self.0.lock().unwrap().push(format!("{level} {target}: {message}{fields}"));
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[derive(Default)]
    struct Fields(BTreeMap<&'static str, String>);

    impl Visit for Fields {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            self.0.insert(field.name(), format!("{value:?}"));
        }
    }

    /// The log lines of events, and the health after them.
    fn check(events: &[Event], expected: &Expect) {
        let lines = Lines::default();
        let heard = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&heard);
        let reporter = Reporter::new(Some(Arc::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        })));
        tracing::subscriber::with_default(lines.clone(), || {
            events.iter().for_each(|event| reporter.tell(event));
        });
        assert_eq!(heard.load(Ordering::Relaxed), events.len() as u64, "the listener hears every event");
        let health = reporter.health();
        assert_eq!(health.is_fine(), health.to_string() == "fine");
        expected.assert_eq(&format!("{}\n{health}\n", lines.0.lock().unwrap().join("\n")));
    }

    fn address() -> Address {
        Address::from_bytes([7; 32])
    }

    #[test]
    fn each_event_has_one_line_and_is_counted() {
        let what = || "the hash is another one".to_owned();
        let error = || Error::disk("write", "log/1".as_ref(), std::io::Error::other("no space"));
        check(
            &[
                Event::Quarantined { address: address(), what: what(), class: Class::Acknowledged },
                Event::Quarantined { address: address(), what: what(), class: Class::Derivable },
                Event::Lost { what: "the end of the log".to_owned(), count: 3 },
                Event::Diverged { derivation: address(), before: address(), now: address() },
                Event::IndexDamaged { what: what() },
                Event::IndexRebuilt { replayed: 7, took: std::time::Duration::from_millis(5) },
                Event::IndexDamaged { what: what() },
                Event::OverQuota { used: 9 },
                Event::LeftBehind { address: address(), error: error() },
                Event::Failed { doing: "clean the log", error: error() },
            ],
            &expect![[r#"
                ERROR anabranch_content: acknowledged data is damaged and was moved to quarantine; put it again address=0707070707070707070707070707070707070707070707070707070707070707 what="the hash is another one"
                WARN anabranch_content: derivable data is damaged and was moved to quarantine; it is derived again when needed address=0707070707070707070707070707070707070707070707070707070707070707 what="the hash is another one"
                ERROR anabranch_content: acknowledged data was lost count=3 what="the end of the log"
                WARN anabranch_content: a derivation has another output than before before=0707070707070707070707070707070707070707070707070707070707070707 derivation=0707070707070707070707070707070707070707070707070707070707070707 now=0707070707070707070707070707070707070707070707070707070707070707
                WARN anabranch_content: the index is damaged; it is rebuilt from the log, and calls that need the damaged part wait for that what="the hash is another one"
                WARN anabranch_content: the damaged index was rebuilt from the log; no data was lost by it replayed=7 took_ms=5
                WARN anabranch_content: the index is damaged; it is rebuilt from the log, and calls that need the damaged part wait for that what="the hash is another one"
                WARN anabranch_content: the quota leaves no room, and collecting derivable data does not help used=9
                WARN anabranch_content: a file that is no longer needed could not be removed address=0707070707070707070707070707070707070707070707070707070707070707 error=could not write `log/1`: no space
                WARN anabranch_content: background work failed and is tried again doing="clean the log" error=could not write `log/1`: no space
                4 acknowledged items lost, 2 damaged items in quarantine, 1 derivation with another output than before, 2 failures in the background, the index is damaged and is being rebuilt, a damaged index was rebuilt 1 time, the quota is exceeded; see the log
            "#]],
        );
    }

    #[test]
    fn what_is_usual_is_only_for_debugging() {
        check(
            &[
                Event::Done { operation: "put", outcome: crate::Outcome::Bytes(1) },
                Event::Opened(OpenReport::default()),
                Event::Opened(OpenReport { clean: true, ..OpenReport::default() }),
                Event::Removed { count: 2, why: RemovalReason::Collected },
                Event::Indexed,
                Event::Cleaned { segments: 1, bytes: 100 },
            ],
            &expect![[r#"
                DEBUG anabranch_content: opened clean=false
                DEBUG anabranch_content: opened clean=true
                DEBUG anabranch_content: removed count=2 why=collected
                DEBUG anabranch_content: recent entries were written to the index
                DEBUG anabranch_content: segments of the log were rewritten bytes=100 segments=1
                fine
            "#]],
        );
    }

    #[test]
    fn opening_tells_repairs_from_losses() {
        let stretch = |torn| UnreadableStretch {
            file: "log/00000001.log".to_owned(),
            from: 100,
            bytes: 20,
            torn,
            covered: false,
        };
        let check = |opened: OpenReport, expected: Expect| check(&[Event::Opened(opened)], &expected);
        check(
            OpenReport {
                replayed: 20_000,
                unfinished: 1,
                unreadable: vec![stretch(true)],
                ..OpenReport::default()
            },
            expect![[r#"
                INFO anabranch_content: opened after a crash: 20000 records read again from the log; an unfinished write of 20 bytes dropped; 1 file of unfinished puts removed clean=false replayed=20000 unfinished=1 unreadable=1
                fine
            "#]],
        );
        check(
            OpenReport {
                clean: true,
                rebuilt: Some("it was found damaged".to_owned()),
                ..OpenReport::default()
            },
            expect![[r#"
                WARN anabranch_content: opened: the index was rebuilt from the log (it was found damaged) clean=true replayed=0 unfinished=0 unreadable=0
                fine
            "#]],
        );
        check(
            OpenReport { clean: true, strays: vec!["files/notes.txt".to_owned()], ..OpenReport::default() },
            expect![[r#"
                INFO anabranch_content: opened: 1 unknown file left alone clean=true replayed=0 unfinished=0 unreadable=0
                fine
            "#]],
        );
        check(
            OpenReport {
                replayed: 1,
                unfinished: 2,
                unreadable: vec![stretch(false), stretch(false)],
                ..OpenReport::default()
            },
            expect![[r#"
                ERROR anabranch_content: opened after a crash: at least 2 acknowledged items lost; log/00000001.log is unreadable for 20 bytes from byte 100; log/00000001.log is unreadable for 20 bytes from byte 100; 1 record read again from the log; 2 files of unfinished puts moved to quarantine clean=false lost=2 replayed=1 unfinished=2 unreadable=2
                2 acknowledged items lost; see the log
            "#]],
        );
        check(
            OpenReport { lost: 5, unreadable: vec![stretch(false)], ..OpenReport::default() },
            expect![[r#"
            ERROR anabranch_content: opened after a crash: at least 5 acknowledged items lost; log/00000001.log is unreadable for 20 bytes from byte 100 clean=false lost=5 replayed=0 unfinished=0 unreadable=1
            5 acknowledged items lost; see the log
        "#]],
        );
    }
}
