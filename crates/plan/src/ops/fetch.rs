//! Reads rows that others point to: one trip for their ids, and one more if their fields are needed.

use std::sync::Arc;

use anabranch_rows::{Batch, Column, Key, Rows};
use arrow_array::{Float64Array, Int64Array};

use super::fields::{FieldReader, Fields};
use super::input;
use crate::call::Call;
use crate::error::OpError;
use crate::op::{
    Demand, Form, Inputs, Node, NodePlan, ParamKind, ParamSpec, Rule, Sources, StartedWork, Takes, Wait,
};
use crate::registry::EndpointKind;
use crate::schema::Schema;
use crate::source::{Data, Fetch, Lists, Pattern, Read, Reader, Reply};

/// Continues with the reply of a trip, immediately if it is available.
pub(super) fn then(fetch: Fetch, next: impl FnOnce(Reply) -> StartedWork + Send + 'static) -> StartedWork {
    match fetch {
        Fetch::Ready(Ok(reply)) => next(reply),
        Fetch::Ready(Err(error)) => StartedWork::Ready(Err(error.into())),
        Fetch::Later(reply) => StartedWork::Later(Box::pin(async move {
            match next(reply.await?) {
                StartedWork::Ready(rows) => rows,
                StartedWork::Later(rows) => rows.await,
            }
        })),
    }
}

/// A source answered with something else than it was bound to.
pub(super) fn unexpected(expected: &str) -> OpError {
    OpError::Value(format!("the source broke its promise: it did not answer with {expected}"))
}

/// A fan-out at load time: each row's list, and the fields of its items.
pub(super) struct FanOut {
    pub(super) endpoint: usize,
    /// The key of a row's list.
    pub(super) list: Pattern,
    pub(super) read: Read,
    /// The column for the scores, for [`Read::Scored`].
    pub(super) score: Option<Key>,
    /// The column for the id of the row that each came from.
    pub(super) parent: Option<Key>,
    pub(super) fields: Fields,
    /// The key of a new row's fields.
    pub(super) fields_at: Pattern,
}

impl FanOut {
    /// The lists `{prefix}{id}`, ids and nothing else.
    pub(super) fn of_ids(endpoint: usize, prefix: &str, limit: u32) -> FanOut {
        FanOut {
            endpoint,
            list: Pattern::of_id(prefix),
            read: Read::List { limit },
            score: None,
            parent: None,
            fields: Fields::default(),
            fields_at: Pattern::of_id("user:"),
        }
    }

    /// The node that does it; its new rows have these columns.
    pub(super) fn planned(self, schema: Schema) -> NodePlan {
        let takes = [Takes::reading(self.list.keys())];
        let endpoint = self.endpoint;
        let limit = match self.read {
            Read::List { limit } | Read::Scored { limit } => limit,
            Read::Fields(_) => unreachable!("a fan-out reads lists"),
        };
        let planned = NodePlan::new(schema, takes, move |demand, sources| self.bind(demand, sources));
        planned.at(endpoint).by(Rule::Listed(limit))
    }

    fn bind(self, demand: &Demand, sources: &mut Sources<'_>) -> Form {
        let enough = |limit: u32| limit.min(demand.rows.unwrap_or(limit));
        let read = match self.read {
            Read::List { limit } => Read::List { limit: enough(limit) },
            Read::Scored { limit } => Read::Scored { limit: enough(limit) },
            Read::Fields(_) => unreachable!("a fan-out reads lists"),
        };
        let fields = self.fields.bind(&self.fields_at, self.endpoint, demand, sources);
        let for_fields = |key: Key| fields.is_some() && self.fields_at.keys().any(|other| other == key);
        let wanted = |key: &Key| demand.keys.has(*key) || for_fields(*key);
        Form::Wait(Arc::new(FanOutReader {
            lists: sources.reader(self.endpoint, &self.list, &read),
            rows: demand.rows.map_or(usize::MAX, |rows| rows as usize),
            score: self.score.filter(wanted),
            parent: self.parent.filter(wanted),
            fields,
        }))
    }
}

/// The parameters of a fan-out to users.
pub(super) const USERS: &[ParamSpec] = &[
    ParamSpec::required(
        "endpoint",
        ParamKind::Endpoint(Some(EndpointKind::Redis)),
        "where lists and users are kept",
    ),
    ParamSpec::required("fanout", ParamKind::Int(1, u32::MAX as i64), "the most ids of a list"),
];

/// The users on the lists `{prefix}{id}`, with their `country`.
pub(super) fn users(node: &mut Node<'_>, prefix: &str) -> Option<NodePlan> {
    let fanout = width(node, "fanout");
    let fields = Fields::country(node)?;
    let schema = Schema::new(fields.columns());
    let endpoint = node.endpoint("endpoint")?.index;
    Some(FanOut { fields, ..FanOut::of_ids(endpoint, prefix, fanout?) }.planned(schema))
}

/// The `fanout` of a node, if the registries allow it.
pub(super) fn width(node: &mut Node<'_>, param: &str) -> Option<u32> {
    let width = node.int(param)?;
    let most = node.registries().limits.max_fanout;
    let fits = u32::try_from(width).ok().filter(|width| *width <= most);
    if fits.is_none() {
        node.problem(param, format!("{width} exceeds the limit of {most} (max_fanout of validation.toml)"));
    }
    fits
}

struct FanOutReader {
    lists: Reader,
    /// The number of rows that are needed.
    rows: usize,
    score: Option<Key>,
    parent: Option<Key>,
    fields: Option<Arc<FieldReader>>,
}

impl Wait for FanOutReader {
    fn start(self: Arc<Self>, inputs: Inputs, call: &Arc<Call>) -> StartedWork {
        let parents = input(&inputs, 0).clone();
        if parents.is_empty() || self.rows == 0 {
            let none = Lists { scores: Some(Vec::new()), ..Lists::default() };
            return self.flattened(&parents.first(0), none, call);
        }
        if let Err(over) = call.budget.take_values(parents.len() as u64) {
            return StartedWork::Ready(Err(over.into()));
        }
        let fetch = self.lists.read(&parents, call);
        let call = Arc::clone(call);
        then(fetch, move |Reply { data, .. }| match data {
            Data::Lists(lists) => self.flattened(&parents, lists, &call),
            Data::Columns(_) => StartedWork::Ready(Err(unexpected("lists"))),
        })
    }
}

impl FanOutReader {
    /// The rows of all lists, one list after the other, and then their fields.
    fn flattened(&self, parents: &Rows, lists: Lists, call: &Arc<Call>) -> StartedWork {
        match self.rows_of(parents, lists, call) {
            Ok(rows) => match &self.fields {
                Some(fields) => Arc::clone(fields).start(&rows, call),
                None => StartedWork::Ready(Ok(rows)),
            },
            Err(error) => StartedWork::Ready(Err(error)),
        }
    }

    fn rows_of(&self, parents: &Rows, lists: Lists, call: &Call) -> Result<Rows, OpError> {
        let Lists { lens, mut ids, scores } = lists;
        let total: usize = lens.iter().map(|len| *len as usize).sum();
        if lens.len() != parents.len() || total != ids.len() {
            return Err(unexpected("a list a row"));
        }
        ids.truncate(self.rows);
        let count = ids.len();
        if u32::try_from(count).is_err() {
            return Err(OpError::Value(format!("{count} rows are more than a batch holds; fan out less")));
        }
        let columns = usize::from(self.score.is_some()) + usize::from(self.parent.is_some());
        call.budget.take_rows(count as u64, columns as u64)?;
        let mut columns = Vec::new();
        if let Some(key) = self.score {
            let mut scores =
                scores.filter(|scores| scores.len() == total).ok_or_else(|| unexpected("scores"))?;
            scores.truncate(count);
            columns.push((key, Column::Float(Float64Array::from(scores))));
        }
        if let Some(key) = self.parent {
            let each = parents.ids().zip(&lens);
            let each = each.flat_map(|(id, len)| std::iter::repeat_n(id, *len as usize)).take(count);
            columns.push((key, Column::Int(Int64Array::from_iter_values(each))));
        }
        Ok(Rows::new(Batch::with_columns(ids, columns)))
    }
}
