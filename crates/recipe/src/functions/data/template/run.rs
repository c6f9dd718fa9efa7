//! Runs the steps of a template, and stops whenever enough waits to be taken away.

use std::fmt::{self, Write};

use minijinja::Value;
use minijinja::value::ValueKind;

use super::code::{Loop, Place, Step};
use super::evaluate::{Halt, Running, Scope};
use super::filters::list;
use super::work::{Stop, Work};
use crate::function::Out;

/// A template under way.
pub(super) struct Run {
    pub(super) steps: Vec<Step>,
    /// The next one.
    pub(super) at: usize,
    pub(super) scope: Scope,
    pub(super) work: Work,
    /// Bytes that were given, and may be.
    pub(super) given: u64,
    pub(super) most: u64,
}

impl Run {
    /// Gives what comes out, up to the end or a pause.
    pub(super) fn go_on(&mut self, out: &mut Out) -> Result<(), Halt> {
        while let Some(step) = self.steps.get(self.at) {
            if out.is_full() {
                out.pause();
                return Ok(());
            }
            let (scope, work) = (&mut self.scope, &mut self.work);
            work.steps(1).map_err(nowhere)?;
            self.at += 1;
            match step {
                Step::Text(text) => {
                    self.given += text.len() as u64;
                    if self.given > self.most {
                        return Err(nowhere(Stop::Given));
                    }
                    work.look(text.len()).map_err(nowhere)?;
                    // A short text is not worth a chunk of its own.
                    match text.len() < 4 << 10 {
                        true => out.write(text),
                        false => out.push(text.clone()),
                    }
                }
                Step::Show(term) => {
                    let value = scope.value(work, term)?;
                    let mut shown = Shown { out, work, given: &mut self.given, most: self.most, stop: None };
                    if write!(shown, "{value}").is_err() {
                        let stop = shown.stop.unwrap_or(Stop::Wrong("cannot be written as text".into()));
                        return Err(Halt { place: term.place.clone(), stop });
                    }
                }
                Step::Unless(term, to) => {
                    if !scope.value(work, term)?.is_true() {
                        self.at = *to;
                    }
                }
                Step::Jump(to) => self.at = *to,
                Step::Begin(rounds, otherwise) => {
                    if !begin(scope, work, rounds)? {
                        self.at = *otherwise;
                    }
                }
                Step::Next(behind) => {
                    if !next(scope)? {
                        scope.loops.pop();
                        self.at = *behind;
                    }
                }
                Step::Break(behind) => {
                    scope.loops.pop();
                    self.at = *behind;
                }
            }
        }
        Ok(())
    }
}

fn nowhere(stop: Stop) -> Halt {
    Halt { place: Place::default(), stop }
}

/// Begins a loop, if there is anything in it.
fn begin(scope: &mut Scope, work: &mut Work, rounds: &Loop) -> Result<bool, Halt> {
    let at = |stop| Halt { place: rounds.over.place.clone(), stop };
    let before: usize = scope.loops.iter().map(|running| running.made).sum();
    let over = scope.value(work, &rounds.over)?;
    let over = match over.kind() {
        ValueKind::Seq => over,
        _ => list(work, &over).map_err(at)?.into(),
    };
    let made = work.made - before;
    let len = over.len().unwrap_or(0);
    let (names, bound, place) = (rounds.names.clone(), Vec::new(), rounds.over.place.clone());
    scope.loops.push(Running { names, bound, list: over, len, rounds: 0, made, place });
    if let Some(only) = &rounds.only {
        let mut kept = Vec::new();
        while next(scope)? {
            if scope.value(work, only)?.is_true() {
                work.make(size_of::<Value>()).map_err(at)?;
                let running = scope.loops.last_mut().expect("it was just begun");
                running.made += size_of::<Value>();
                kept.push(element(running));
            }
        }
        let running = scope.loops.last_mut().expect("it was just begun");
        (running.len, running.rounds, running.list) = (kept.len(), 0, kept.into());
    }
    let running = scope.loops.last().expect("it was just begun");
    if running.len == 0 {
        scope.loops.pop();
        return Ok(false);
    }
    Ok(true)
}

/// The element of the round.
fn element(running: &Running) -> Value {
    running.list.get_item_by_index(running.rounds - 1).unwrap_or(Value::UNDEFINED)
}

/// Begins the next round of the innermost loop, if there is one.
fn next(scope: &mut Scope) -> Result<bool, Halt> {
    let running = scope.loops.last_mut().expect("a round is inside of a loop");
    if running.rounds == running.len {
        return Ok(false);
    }
    running.rounds += 1;
    let element = element(running);
    running.bind(element).map_err(|stop| Halt { place: running.place.clone(), stop })?;
    Ok(true)
}

/// What is given, as far as it may go.
struct Shown<'a> {
    out: &'a mut Out,
    work: &'a mut Work,
    given: &'a mut u64,
    most: u64,
    stop: Option<Stop>,
}

impl Write for Shown<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        *self.given += text.len() as u64;
        let stop = match *self.given > self.most {
            true => Err(Stop::Given),
            false => self.work.look(text.len()),
        };
        match stop {
            Ok(()) => {
                self.out.write(text.as_bytes());
                Ok(())
            }
            Err(stop) => {
                self.stop = Some(stop);
                Err(fmt::Error)
            }
        }
    }
}
