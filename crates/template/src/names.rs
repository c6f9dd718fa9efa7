//! Names at compile time: each becomes an input or a slot.
//!
//! As in Jinja, a loop has a scope of its own, so that `set` in a loop names a value for the rest of the round only, and a
//! branch has not. A name that only some branches set is the input of that name in the others.

use std::collections::{HashMap, HashSet};

use crate::code::{Kind, Place, Slot, Term};
use crate::error::Halt;
use crate::syntax::refused;

/// The most names that a template may set.
const LOCALS: usize = 1000;

/// The names of a template.
#[derive(Default)]
pub(crate) struct Names {
    /// The names that the caller gives values for, in the order of first use.
    pub(crate) inputs: Vec<String>,
    input_indexes: HashMap<String, usize>,
    scopes: Vec<Scope>,
    pub(crate) slots: usize,
    locals: usize,
    /// The slots that have a value whatever branches were taken.
    sure: HashSet<Slot>,
}

#[derive(Default)]
struct Scope {
    locals: HashMap<String, Local>,
    /// The slots that are emptied before each round, if the scope is the body of a loop.
    own: Option<Vec<Slot>>,
}

enum Local {
    Slot(Slot),
    /// A namespace: the slots of its fields.
    Namespace(HashMap<String, Slot>),
}

/// The slots that have a value at one point of the template.
pub(crate) struct Flow(HashSet<Slot>);

impl Names {
    /// Opens the scope of a block.
    pub(crate) fn open(&mut self) {
        self.scopes.push(Scope::default());
    }

    /// Opens the scope of a loop's body.
    pub(crate) fn open_loop(&mut self) {
        self.scopes.push(Scope { locals: HashMap::new(), own: Some(Vec::new()) });
    }

    /// Closes the scope; returns the slots of a loop's body.
    pub(crate) fn close(&mut self) -> Vec<Slot> {
        self.scopes.pop().and_then(|scope| scope.own).unwrap_or_default()
    }

    /// A slot without a name, of the scope with this number.
    fn slot_in(&mut self, scope: usize) -> Slot {
        let slot = self.slots;
        self.slots += 1;
        if let Some(own) = self.scopes[..=scope].iter_mut().rev().find_map(|scope| scope.own.as_mut()) {
            own.push(slot);
        }
        slot
    }

    /// A slot without a name.
    pub(crate) fn hidden(&mut self) -> Slot {
        self.slot_in(self.innermost())
    }

    fn innermost(&self) -> usize {
        self.scopes.len().saturating_sub(1)
    }

    fn declare(&mut self, name: &str, place: Place, local: Local) -> Result<(), Halt> {
        self.locals += 1;
        if self.locals > LOCALS {
            return refused(place, format!("a template sets at most {LOCALS} names"));
        }
        let innermost = self.innermost();
        self.scopes[innermost].locals.insert(name.to_owned(), local);
        Ok(())
    }

    /// The slot of a name that gets a value in the innermost scope.
    pub(crate) fn set(&mut self, name: &str, place: Place) -> Result<Slot, Halt> {
        let innermost = self.innermost();
        let slot = match self.scopes[innermost].locals.get(name) {
            Some(Local::Slot(slot)) => *slot,
            _ => {
                let slot = self.hidden();
                self.declare(name, place, Local::Slot(slot))?;
                slot
            }
        };
        self.sure.insert(slot);
        Ok(slot)
    }

    /// Makes a name a namespace of the innermost scope.
    pub(crate) fn set_namespace(&mut self, name: &str, place: Place) -> Result<(), Halt> {
        self.declare(name, place, Local::Namespace(HashMap::new()))
    }

    /// The slot of a field, if the name is a namespace.
    pub(crate) fn field(&mut self, name: &str, field: &str, place: Place) -> Result<Option<Slot>, Halt> {
        let Some(scope) = self.scopes.iter().rposition(|scope| scope.locals.contains_key(name)) else {
            return Ok(None);
        };
        let found = match &self.scopes[scope].locals[name] {
            Local::Slot(_) => return Ok(None),
            Local::Namespace(fields) => fields.get(field).copied(),
        };
        if found.is_some() {
            return Ok(found);
        }
        self.locals += 1;
        if self.locals > LOCALS {
            return refused(place, format!("a template sets at most {LOCALS} names"));
        }
        let slot = self.slot_in(scope);
        if let Some(Local::Namespace(fields)) = self.scopes[scope].locals.get_mut(name) {
            fields.insert(field.to_owned(), slot);
        }
        Ok(Some(slot))
    }

    /// The value of a name.
    pub(crate) fn read(&mut self, name: &str, place: &Place) -> Result<Kind, Halt> {
        let mut unsure = Vec::new();
        let mut kind = None;
        for scope in self.scopes.iter().rev() {
            match scope.locals.get(name) {
                Some(Local::Namespace(_)) => {
                    return refused(
                        place.clone(),
                        format!("`{name}` is a namespace: only its fields have values"),
                    );
                }
                Some(Local::Slot(slot)) if self.sure.contains(slot) => {
                    kind = Some(Kind::Local(*slot));
                    break;
                }
                Some(Local::Slot(slot)) => unsure.push(*slot),
                None => {}
            }
        }
        let mut kind = kind.unwrap_or_else(|| Kind::Input(self.input(name)));
        for slot in unsure.into_iter().rev() {
            kind = Kind::LocalOr(slot, Box::new(Term { place: place.clone(), kind }));
        }
        Ok(kind)
    }

    fn input(&mut self, name: &str) -> usize {
        let next = self.inputs.len();
        let index = *self.input_indexes.entry(name.to_owned()).or_insert(next);
        if index == next {
            self.inputs.push(name.to_owned());
        }
        index
    }

    /// The slots that have a value here.
    pub(crate) fn flow(&self) -> Flow {
        Flow(self.sure.clone())
    }

    /// Goes on from another point of the template; returns this one.
    pub(crate) fn go_from(&mut self, flow: Flow) -> Flow {
        Flow(std::mem::replace(&mut self.sure, flow.0))
    }

    /// Goes on from here or from the end of another branch.
    pub(crate) fn join(&mut self, other: &Flow) {
        self.sure.retain(|slot| other.0.contains(slot));
    }
}
