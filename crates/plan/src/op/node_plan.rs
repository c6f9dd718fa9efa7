//! A node that its op has checked.

use std::sync::Arc;

use anabranch_engine::Check;
use anabranch_rows::Rows;

use super::{Demand, Form, Rule, Takes};
use crate::call::Call;
use crate::expr::Filter;
use crate::schema::Schema;
use crate::source::Sources;
use crate::value::Values;

/// A checked node: the columns of its output, its use of its inputs, and the way to its form.
pub struct NodePlan {
    /// The columns of its output.
    pub schema: Schema,
    /// Its use of each input: those of `inputs`, then those of its node parameters.
    pub takes: Vec<Takes>,
    /// Makes its form, once the demand on its output is known.
    pub build: Build,
    /// The endpoint whose trips it waits for, by its place.
    pub endpoint: Option<usize>,
    /// Set if it returns one of its inputs: the choice between them, so that the other need not run.
    pub choice: Option<Choice>,
    /// The rule that decides which rows come out, for `why`.
    pub rule: Option<Rule>,
    /// Its rows without the columns that it reads, if they are known in advance.
    pub bare: Option<fn(&Call) -> Rows>,
}

/// One of two inputs.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The condition.
    pub when: When,
    /// The input, by its place, if the condition holds.
    pub then: usize,
    /// The input, by its place, if the condition does not hold; without one, the node's fallback decides.
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
    /// The outcome of the condition. `rows` are those of the input `on`; a condition on an input without rows does not hold.
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

/// Creates the form of a node.
pub type Build = Box<dyn FnOnce(&Demand, &mut Sources<'_>) -> Form>;

impl NodePlan {
    /// A node with these columns, which takes this from its inputs.
    pub fn new(
        schema: Schema,
        takes: impl Into<Vec<Takes>>,
        build: impl FnOnce(&Demand, &mut Sources<'_>) -> Form + 'static,
    ) -> NodePlan {
        NodePlan {
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
    pub fn at(mut self, endpoint: usize) -> NodePlan {
        self.endpoint = Some(endpoint);
        self
    }

    /// One whose rows are decided by this rule.
    #[must_use]
    pub fn by(mut self, rule: Rule) -> NodePlan {
        self.rule = Some(rule);
        self
    }

    /// One that knows its rows beforehand, though not all their columns.
    #[must_use]
    pub fn bare(mut self, rows: fn(&Call) -> Rows) -> NodePlan {
        self.bare = Some(rows);
        self
    }

    /// The same plan, for a node that returns one of its inputs.
    #[must_use]
    pub fn choosing(mut self, choice: Choice) -> NodePlan {
        self.choice = Some(choice);
        self
    }
}
