//! Runs the steps of a template, and pauses when enough output waits to be taken away.

use std::fmt::{self, Write};
use std::sync::Arc;

use anabranch_value::Value;

use crate::code::{Loop, Slot, Step, Target, Term};
use crate::error::{Error, Halt, Stop, wrong};
use crate::evaluate::{Evaluation, RunningLoop};
use crate::kinds::called;
use crate::print::print;
use crate::template::{Bounds, Template};
use crate::work::{MEMORY_BYTES, VALUE, Work, is_true};

/// The receiver of the output of a [`Run`].
pub trait Sink {
    /// Takes a part of the output.
    fn write(&mut self, text: &str);

    /// Whether the run should pause until this part of the output is taken away.
    fn is_full(&self) -> bool;
}

impl Sink for String {
    fn write(&mut self, text: &str) {
        self.push_str(text);
    }

    fn is_full(&self) -> bool {
        false
    }
}

/// A run of a template that gives its output in parts.
pub struct Run {
    template: Arc<Template>,
    values: Vec<Option<Value>>,
    bounds: Bounds,
    state: State,
}

impl Run {
    /// A run with one value, or none, per name in [`Template::variables`].
    pub fn new(template: Arc<Template>, values: Vec<Option<Value>>, bounds: Bounds) -> Run {
        let state = State::new(&template, bounds);
        Run { template, values, bounds, state }
    }

    /// The same run with a check, which is called about every millisecond. The run fails once it returns false.
    #[must_use]
    pub fn with_check(mut self, check: impl FnMut() -> bool + Send + 'static) -> Run {
        self.state.work.check = Some(Box::new(check));
        self
    }

    /// The same run with less memory than [`MEMORY_BYTES`]. The caller repeats a run that has too
    /// little, because the error names the usual bound.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Run {
        self.state.work.memory = bytes.min(MEMORY_BYTES);
        self
    }

    /// Writes output up to the end, or up to a pause because the sink is full. Returns whether the end is reached.
    pub fn go_on(&mut self, sink: &mut impl Sink) -> Result<bool, Error> {
        let inputs = Inputs::Some(&self.values);
        let result = self.state.go_on(&self.template, inputs, sink);
        result.map_err(|halt| self.template.error(halt, self.bounds))
    }
}

/// The values of a run.
#[derive(Clone, Copy)]
pub(crate) enum Inputs<'a> {
    All(&'a [Value]),
    Some(&'a [Option<Value>]),
}

impl<'a> Inputs<'a> {
    pub(crate) fn get(self, index: usize) -> Option<&'a Value> {
        match self {
            Inputs::All(values) => values.get(index),
            Inputs::Some(values) => values.get(index)?.as_ref(),
        }
    }

    pub(crate) fn all(self) -> impl Iterator<Item = &'a Value> {
        let len = match self {
            Inputs::All(values) => values.len(),
            Inputs::Some(values) => values.len(),
        };
        (0..len).filter_map(move |index| self.get(index))
    }
}

/// The state of a run.
pub(crate) struct State {
    /// The next step.
    at: usize,
    slots: Vec<Option<Value>>,
    /// The loops under way, the innermost last.
    loops: Vec<RunningLoop>,
    /// Output that is collected, the innermost last.
    captures: Vec<String>,
    work: Work,
    written: usize,
    output_bytes: usize,
}

impl State {
    pub(crate) fn new(template: &Template, bounds: Bounds) -> State {
        State {
            at: 0,
            slots: vec![None; template.slots],
            loops: Vec::new(),
            captures: Vec::new(),
            work: Work::new(template.dialect, bounds.fuel),
            written: 0,
            output_bytes: bounds.output_bytes,
        }
    }

    /// The value of a whole expression.
    pub(crate) fn value(&mut self, inputs: Inputs<'_>, term: &Term) -> Result<Value, Halt> {
        self.work.begin();
        let State { slots, loops, work, .. } = self;
        Evaluation { inputs, slots, loops, work }.value(term)
    }

    /// Runs up to the end (true) or a pause (false).
    pub(crate) fn go_on(
        &mut self,
        template: &Template,
        inputs: Inputs<'_>,
        sink: &mut impl Sink,
    ) -> Result<bool, Halt> {
        while let Some(step) = template.steps.get(self.at) {
            if sink.is_full() {
                return Ok(false);
            }
            self.work.steps(1).map_err(Halt::nowhere)?;
            self.at += 1;
            self.step(step, inputs, sink)?;
        }
        Ok(true)
    }

    fn step(&mut self, step: &Step, inputs: Inputs<'_>, sink: &mut impl Sink) -> Result<(), Halt> {
        match step {
            Step::Text(text, place) => {
                let written = self.output(sink, |out| out.write_str(text));
                written.map_err(|stop| Halt { place: place.clone(), stop })?;
            }
            Step::Show(term) => {
                let value = self.value(inputs, term)?;
                let dialect = self.work.dialect;
                let written = self.output(sink, |out| print(out, &value, dialect));
                written.map_err(|stop| Halt { place: term.place.clone(), stop })?;
            }
            Step::Unless(term, to) => {
                if !is_true(&self.value(inputs, term)?) {
                    self.at = *to;
                }
            }
            Step::Jump(to) => self.at = *to,
            Step::Begin(rounds, otherwise) => {
                if !self.begin(inputs, rounds)? {
                    self.at = *otherwise;
                }
            }
            Step::Next(behind) => {
                if !self.next()? {
                    self.leave()?;
                    self.at = *behind;
                }
            }
            Step::Break(behind) => {
                self.leave()?;
                self.at = *behind;
            }
            Step::Set(target, term) => {
                let value = self.named(inputs, term)?;
                self.work.name();
                bind(&mut self.slots, target, value)
                    .map_err(|stop| Halt { place: term.place.clone(), stop })?;
            }
            Step::Keep(slot, term) => {
                let value = self.named(inputs, term)?;
                let at = |stop| Halt { place: term.place.clone(), stop };
                let bytes = self.work.weigh(&value).map_err(at)?;
                self.work.keep(bytes).map_err(at)?;
                self.slots[*slot] = Some(value);
            }
            Step::Capture => self.captures.push(String::new()),
            Step::EndCapture(slot) => {
                self.slots[*slot] = self.captures.pop().map(Value::from);
            }
        }
        Ok(())
    }

    /// The value of an expression that gets a name.
    fn named(&mut self, inputs: Inputs<'_>, term: &Term) -> Result<Value, Halt> {
        let value = self.value(inputs, term)?;
        if !term.is_named() {
            self.work.check_depth(&value).map_err(|stop| Halt { place: term.place.clone(), stop })?;
        }
        Ok(value)
    }

    /// Begins a loop, unless it has no elements.
    fn begin(&mut self, inputs: Inputs<'_>, rounds: &Loop) -> Result<bool, Halt> {
        let at = |stop| Halt { place: rounds.over.place.clone(), stop };
        let named_before = self.work.named;
        let over = self.named(inputs, &rounds.over)?;
        let list: Arc<[Value]> = match over {
            Value::List(list) => list,
            other => self.work.elements(&other).map_err(at)?.into(),
        };
        self.work.name();
        self.loops.push(RunningLoop {
            target: rounds.target.clone(),
            own: rounds.own.clone(),
            list,
            place: rounds.over.place.clone(),
            rounds: 0,
            named_before,
            named_inside: self.work.named,
        });
        if let Some(only) = &rounds.only {
            let mut kept = Vec::new();
            while self.next()? {
                if is_true(&self.value(inputs, only)?) {
                    kept.extend(self.loops.last().and_then(RunningLoop::element));
                }
            }
            self.work.begin();
            self.work.make(kept.len() * VALUE).map_err(at)?;
            self.work.name();
            let named_inside = self.work.named;
            let running = self.loops.last_mut().expect("the loop has just begun");
            (running.rounds, running.list, running.named_inside) = (0, kept.into(), named_inside);
        }
        if self.loops.last().is_some_and(|running| running.list.is_empty()) {
            self.leave()?;
            return Ok(false);
        }
        Ok(true)
    }

    /// Begins the next round of the innermost loop, if there is one.
    fn next(&mut self) -> Result<bool, Halt> {
        let running = self.loops.last_mut().expect("a round is inside of a loop");
        let at = |stop| Halt { place: running.place.clone(), stop };
        self.work.named = running.named_inside;
        let Some(element) = running.list.get(running.rounds).cloned() else { return Ok(false) };
        running.rounds += 1;
        self.work.steps(running.own.len() / 8).map_err(at)?;
        empty(&mut self.slots, &running.own);
        bind(&mut self.slots, &running.target, element).map_err(at)?;
        Ok(true)
    }

    /// Ends the innermost loop.
    fn leave(&mut self) -> Result<(), Halt> {
        let running = self.loops.pop().expect("a round is inside of a loop");
        self.work.steps(running.own.len() / 8).map_err(Halt::nowhere)?;
        empty(&mut self.slots, &running.own);
        self.work.named = running.named_before;
        Ok(())
    }

    /// Writes output, into the innermost capture if there is one.
    fn output(
        &mut self,
        sink: &mut impl Sink,
        write: impl FnOnce(&mut Output<'_, '_>) -> fmt::Result,
    ) -> Result<(), Stop> {
        let State { captures, work, written, output_bytes, .. } = self;
        let to = match captures.last_mut() {
            Some(capture) => Destination::Capture(capture),
            None => Destination::Sink { sink, written, output_bytes: *output_bytes },
        };
        let mut output = Output { to, work, stop: None };
        match write(&mut output) {
            Ok(()) => Ok(()),
            Err(_) => Err(output.stop.unwrap_or(Stop::Wrong("the value cannot be written as text".into()))),
        }
    }
}

fn empty(slots: &mut [Option<Value>], own: &[Slot]) {
    own.iter().for_each(|slot| slots[*slot] = None);
}

/// Names a value, or its parts.
fn bind(slots: &mut [Option<Value>], target: &Target, value: Value) -> Result<(), Stop> {
    match target {
        Target::One(slot) => slots[*slot] = Some(value),
        Target::Each(targets) => match &value {
            Value::List(parts) if parts.len() == targets.len() => {
                for (target, part) in targets.iter().zip(parts.iter()) {
                    bind(slots, target, part.clone())?;
                }
            }
            _ => {
                let (count, got) = (targets.len(), called(&value));
                return wrong(format!("an element is {got}, and not a list of {count}"));
            }
        },
    }
    Ok(())
}

/// The output, as far as the bounds allow.
struct Output<'a, 's> {
    to: Destination<'a, 's>,
    work: &'a mut Work,
    stop: Option<Stop>,
}

enum Destination<'a, 's> {
    Capture(&'a mut String),
    Sink { sink: &'s mut dyn Sink, written: &'a mut usize, output_bytes: usize },
}

impl Output<'_, '_> {
    fn take(&mut self, text: &str) -> Result<(), Stop> {
        match &mut self.to {
            Destination::Capture(capture) => {
                self.work.keep(text.len())?;
                capture.push_str(text);
            }
            Destination::Sink { sink, written, output_bytes } => {
                **written = written.saturating_add(text.len());
                if **written > *output_bytes {
                    return Err(Stop::Output);
                }
                self.work.look(text.len())?;
                sink.write(text);
            }
        }
        Ok(())
    }
}

impl Write for Output<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.take(text).map_err(|stop| {
            self.stop = Some(stop);
            fmt::Error
        })
    }
}
