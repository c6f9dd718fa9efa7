//! What an op is: its parameters as data, a check at load, and a form to run.
//!
//! An op is one file here and one line in [`Ops::builtin`]. Users of the library add theirs with
//! [`Ops::add`]; nothing is reserved for the ones that come along.

mod files;
mod spec;
mod node;
mod form;
mod contract;
mod rule;

use std::sync::Arc;

use anabranch_engine::Check;
use anabranch_rows::{Key, Rows};

use crate::call::Call;
use crate::expr::Filter;
use crate::schema::{KeySet, Schema};
pub(crate) use crate::source::Sources;
use crate::value::Values;

pub use contract::Contract;
pub use files::NamedFile;
pub(crate) use files::{Files, FilesFrom};
pub use form::{Compute, Form, Inputs, Started, Wait, WaitFuture};
pub use node::Node;
pub use rule::{Join, Keep, Matching, Repeats, Rule, Window};
pub use spec::{Arg, Effect, Mark, ParamKind, ParamSpec, Spec};

/// A kind of node.
pub trait Op: Send + Sync + 'static {
    /// Its name, parameters and promises.
    fn spec(&self) -> &Spec;

    /// Checks one node of this kind and says what it makes of its inputs. Everything wrong is noted on `node`; `None`
    /// when nothing sensible can be said about its output.
    fn plan(&self, node: &mut Node<'_>) -> Option<Planned>;
}

/// What a checked node makes of its inputs.
pub struct Planned {
    /// The columns of its output.
    pub schema: Schema,
    /// What it takes from each input: those of `inputs`, then those of its node parameters.
    pub takes: Vec<Takes>,
    /// Makes its form, once it is known what is asked of it.
    pub build: Build,
    /// The endpoint whose trips it waits for, by its place.
    pub endpoint: Option<usize>,
    /// If it gives back one of its inputs: which, so that the other need not run.
    pub choice: Option<Choice>,
    /// What decides which rows come out, for those who ask why one does not.
    pub rule: Option<Rule>,
    /// Its rows without the columns that it reads, if they are known beforehand.
    pub bare: Option<fn(&Call) -> Rows>,
}

/// One of two inputs.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What decides.
    pub when: When,
    /// The input, by its place, if it says yes.
    pub then: usize,
    /// The input, by its place, if it says no; if there is none, what the node's fallback says.
    pub or: Option<usize>,
}

impl Choice {
    /// The input, by its place, whose first row the condition reads.
    pub(crate) fn on(&self) -> Option<usize> {
        match &self.when {
            When::Holds(condition) => condition.on,
            When::InTime => None,
        }
    }
}

/// The condition that decides between two inputs.
#[derive(Clone, Debug)]
pub enum When {
    /// A predicate over the request's parameters and, if it reads columns, the first row of a third input.
    Holds(Condition),
    /// The first input was there in time.
    InTime,
}

/// A predicate that is asked once per request.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The predicate.
    pub filter: Arc<Filter>,
    /// The input, by its place, whose first row it reads; without one it reads parameters only.
    pub on: Option<usize>,
}

impl Condition {
    /// Whether it holds. `rows` are those of the input `on`; a condition on an input without rows does not hold.
    pub fn holds(&self, rows: Option<&Rows>, params: &Values) -> Result<bool, crate::expr::Error> {
        match (self.on, rows) {
            (None, _) => self.filter.holds(params),
            (Some(_), Some(rows)) if !rows.is_empty() => {
                let selected = self.filter.select(&rows.first(1), params, &Check::never())?;
                Ok(!selected.is_empty())
            }
            (Some(_), _) => Ok(false),
        }
    }
}

/// Makes the form of a node.
pub type Build = Box<dyn FnOnce(&Demand, &mut Sources<'_>) -> Form>;

/// What a node takes from one of its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Takes {
    /// Columns that it looks at.
    pub reads: KeySet,
    /// Whether the input's other columns are in the output, for those who ask for them.
    pub passes: bool,
    /// Which rows it needs.
    pub rows: RowsNeeded,
    /// Columns that it makes, when that is all it reads for: the input's own are not passed on, and when nobody asks
    /// for one of these, nothing is read.
    pub makes: KeySet,
    /// Columns of the input that are not passed on: others of the same keys take their place.
    pub withholds: KeySet,
}

/// Which rows of an input a node needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsNeeded {
    /// All of them.
    All,
    /// The first so many.
    First(u32),
    /// The rows of a window, or fewer of them if fewer are asked of the node itself.
    Window(Window),
    /// The first so many as are asked of the node itself.
    AsAsked,
}

/// What is asked of a node's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Columns somebody reads; the others may be left out.
    pub keys: KeySet,
    /// If somebody only wants the first rows: how many.
    pub rows: Option<u32>,
}

impl Planned {
    /// A node with these columns, which takes this from its inputs.
    pub fn new(
        schema: Schema,
        takes: impl Into<Vec<Takes>>,
        build: impl FnOnce(&Demand, &mut Sources<'_>) -> Form + 'static,
    ) -> Planned {
        Planned {
            schema,
            takes: takes.into(),
            build: Box::new(build),
            endpoint: None,
            choice: None,
            rule: None,
            bare: None,
        }
    }

    /// One that waits for trips to this endpoint.
    #[must_use]
    pub fn at(mut self, endpoint: usize) -> Planned {
        self.endpoint = Some(endpoint);
        self
    }

    /// One whose rows are decided by this rule.
    #[must_use]
    pub fn by(mut self, rule: Rule) -> Planned {
        self.rule = Some(rule);
        self
    }

    /// One that knows its rows beforehand, though not all their columns.
    #[must_use]
    pub fn bare(mut self, rows: fn(&Call) -> Rows) -> Planned {
        self.bare = Some(rows);
        self
    }

    /// One that gives back one of its inputs.
    #[must_use]
    pub fn choosing(mut self, choice: Choice) -> Planned {
        self.choice = Some(choice);
        self
    }
}

impl Takes {
    /// All rows, and of their columns these, for itself.
    pub fn reading(reads: impl IntoIterator<Item = Key>) -> Takes {
        let reads = reads.into_iter().collect();
        let (makes, withholds) = (KeySet::default(), KeySet::default());
        Takes { reads, passes: false, rows: RowsNeeded::All, makes, withholds }
    }

    /// All rows, these columns for itself, the others for those who ask for them.
    pub fn passing(reads: impl IntoIterator<Item = Key>) -> Takes {
        Takes { passes: true, ..Takes::reading(reads) }
    }

    /// Only these rows.
    #[must_use]
    pub fn rows(mut self, rows: RowsNeeded) -> Takes {
        self.rows = rows;
        self
    }

    /// All but these columns, for those who ask for them.
    #[must_use]
    pub fn withholding(mut self, keys: impl IntoIterator<Item = Key>) -> Takes {
        self.withholds = keys.into_iter().collect();
        self
    }

    /// Only to make these columns.
    #[must_use]
    pub fn making(mut self, makes: impl IntoIterator<Item = Key>) -> Takes {
        self.makes = makes.into_iter().collect();
        self
    }
}

/// The beginning of the names of ops for tests.
const TEST_PREFIX: &str = "test::";

/// The kinds of node there are.
#[derive(Clone, Default)]
pub struct Ops(Vec<Arc<dyn Op>>);

impl Ops {
    /// The ops that come along, those for tests (`test::*`) included.
    pub fn builtin() -> Ops {
        crate::ops::all()
    }

    /// The same without the ops for tests that take as much time as a plan says: `test::sleep` and `test::busy_cpu`.
    /// `test::fixed_source` stays, since the budget of a request bounds its rows.
    #[must_use]
    pub fn without_test_ops(mut self) -> Ops {
        self.0.retain(|op| !(op.spec().name.starts_with(TEST_PREFIX) && op.spec().distinct));
        self
    }

    /// Adds an op, or replaces the one of the same name.
    pub fn add(&mut self, op: impl Op) {
        self.0.retain(|other| other.spec().name != op.spec().name);
        self.0.push(Arc::new(op));
    }

    /// The op called `name`, as in `core::take`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Op>> {
        self.0.iter().find(|op| op.spec().name == name)
    }

    /// All ops.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Op>> {
        self.0.iter()
    }
}
