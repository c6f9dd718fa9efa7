//! Searches that follow all states of an automaton at once (Pike's algorithm): slower than a DFA, but they know Unicode
//! word boundaries and groups, and check the call's budget at intervals.

use std::sync::Arc;

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::{NonMaxUsize, StateID};
use regex_automata::{Anchored, Input};

use crate::budget::{CallBudget, Claim};
use crate::function::Fault;

/// Where each group starts and ends.
type Slot = Option<NonMaxUsize>;

/// Finds the first match and fills `slots` with its groups, as many as there is room for. Returns whether there is a
/// match.
pub(super) fn search(
    nfa: &NFA,
    input: &Input<'_>,
    slots: &mut [Slot],
    budget: &Arc<CallBudget>,
) -> Result<bool, Fault> {
    let states = nfa.states().len();
    let thread = size_of::<StateID>() + size_of_val(slots);
    // Both lists of threads may grow by doubling.
    let bytes = states.saturating_mul(size_of::<usize>() + size_of::<Frame>() + 4 * thread);
    let mut claim = Claim::new(budget);
    claim.grow_to(bytes as u64)?;
    Search { nfa, input, seen: vec![0; states], stack: Vec::new(), budget }.run(slots)
}

struct Search<'a> {
    nfa: &'a NFA,
    input: &'a Input<'a>,
    /// One more than the position at which each state was reached last.
    seen: Vec<usize>,
    stack: Vec<Frame>,
    budget: &'a CallBudget,
}

/// The states that wait for the next byte, each with its slots. Those that count more come first.
#[derive(Default)]
struct Threads {
    states: Vec<StateID>,
    slots: Vec<Slot>,
}

enum Frame {
    Explore(StateID),
    /// Restores a slot once all states behind it were reached.
    Restore(usize, Slot),
}

impl Search<'_> {
    fn run(&mut self, found: &mut [Slot]) -> Result<bool, Fault> {
        let Search { nfa, input, .. } = *self;
        let is_anchored = input.get_anchored() != Anchored::No;
        let count = found.len();
        let (mut now, mut next) = (Threads::default(), Threads::default());
        let mut scratch: Vec<Slot> = vec![None; count];
        let mut is_found = false;
        for at in input.start()..=input.end() {
            if !is_found && (!is_anchored || at == input.start()) {
                scratch.fill(None);
                self.add(&mut now, nfa.start_anchored(), at, &mut scratch)?;
            } else if now.states.is_empty() {
                break;
            }
            for (place, id) in now.states.iter().enumerate() {
                let slots = &now.slots[place * count..][..count];
                let state = nfa.state(*id);
                if matches!(state, State::Match { .. }) {
                    found.copy_from_slice(slots);
                    is_found = true;
                    // The threads behind it count less.
                    break;
                }
                if at < input.end()
                    && let Some(to) = after(state, input.haystack()[at])
                {
                    scratch.copy_from_slice(slots);
                    self.add(&mut next, to, at + 1, &mut scratch)?;
                }
            }
            if is_found && input.get_earliest() {
                break;
            }
            std::mem::swap(&mut now, &mut next);
            next.states.clear();
            next.slots.clear();
        }
        Ok(is_found)
    }

    /// Adds a state, and those that it reaches without a byte.
    fn add(
        &mut self,
        threads: &mut Threads,
        from: StateID,
        at: usize,
        slots: &mut [Slot],
    ) -> Result<(), Fault> {
        self.stack.push(Frame::Explore(from));
        while let Some(frame) = self.stack.pop() {
            match frame {
                Frame::Restore(slot, before) => slots[slot] = before,
                Frame::Explore(id) => self.explore(threads, id, at, slots)?,
            }
        }
        Ok(())
    }

    fn explore(
        &mut self,
        threads: &mut Threads,
        mut id: StateID,
        at: usize,
        slots: &mut [Slot],
    ) -> Result<(), Fault> {
        while std::mem::replace(&mut self.seen[id], at + 1) != at + 1 {
            self.budget.work(1)?;
            id = match self.nfa.state(id) {
                State::Fail => return Ok(()),
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) | State::Match { .. } => {
                    threads.states.push(id);
                    threads.slots.extend_from_slice(slots);
                    return self.budget.work(slots.len() as u64);
                }
                State::Look { look, next } => {
                    if !self.nfa.look_matcher().matches(*look, self.input.haystack(), at) {
                        return Ok(());
                    }
                    *next
                }
                State::Union { alternates } => {
                    let Some((first, others)) = alternates.split_first() else { return Ok(()) };
                    self.stack.extend(others.iter().rev().map(|other| Frame::Explore(*other)));
                    *first
                }
                State::BinaryUnion { alt1, alt2 } => {
                    self.stack.push(Frame::Explore(*alt2));
                    *alt1
                }
                State::Capture { next, slot, .. } => {
                    if let Some(value) = slots.get_mut(slot.as_usize()) {
                        self.stack.push(Frame::Restore(slot.as_usize(), *value));
                        *value = NonMaxUsize::new(at);
                    }
                    *next
                }
            };
        }
        Ok(())
    }
}

/// The state behind a byte.
fn after(state: &State, byte: u8) -> Option<StateID> {
    match state {
        State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
        State::Sparse(transitions) => transitions.matches_byte(byte),
        State::Dense(transitions) => transitions.matches_byte(byte),
        _ => None,
    }
}
