//! The rows of every node of a request, including those that no node needed.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_engine::Check;
use anabranch_rows::Rows;
use anabranch_text::{Problem, Problems};

use super::node_records::{NodeRecord, NodeRecords};
use anabranch_plan::Answer;
use anabranch_plan::Error;
use anabranch_plan::LedgerEntry;
use anabranch_plan::call::Call;
use anabranch_plan::document::{Document, DocumentNode};
use anabranch_plan::inspect::{Compiled, PlanNode, short};
use anabranch_plan::op::{Form, Inputs, Rule, When};
use anabranch_plan::source::Lists;
use anabranch_plan::{Plan, Request};

/// The rows that every node of a request made.
pub(super) struct Table<'a> {
    pub(super) plan: &'a Compiled,
    document: Document,
    /// The places of the document's nodes, by id.
    written: HashMap<String, usize>,
    pub(super) call: Arc<Call>,
    pub(super) ledger: &'a [LedgerEntry],
    /// While the request ran.
    made: Vec<NodeRecord>,
    /// All rows of computing nodes; the needed rows of nodes that read.
    rows: Vec<Option<Rows>>,
    /// Whether a node was run again.
    again: Vec<bool>,
}

impl<'a> Table<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        request: Request,
        answer: &'a Answer,
        seen: &NodeRecords,
    ) -> Result<Table<'a>, Error> {
        let engine = plan.engine();
        let mut problems = Problems::default();
        let document =
            Document::parse(&plan.compiled().origin.text, engine.ops(), engine.registries(), &mut problems);
        let Some(document) = document else { return Err(Error::Plan(problems)) };
        let call = Arc::new(Call::of(request, Arc::clone(engine.runs().clock())));
        let count = plan.compiled().nodes.len();
        let written = document.nodes.iter().enumerate().map(|(at, node)| (node.id.clone(), at)).collect();
        let mut table = Table {
            plan: plan.compiled(),
            document,
            written,
            call,
            ledger: &answer.ledger,
            made: seen.made(),
            rows: vec![None; count],
            again: vec![false; count],
        };
        let all = plan.compiled_for_all_rows()?;
        if all.nodes.len() == count {
            table.ask_again(&all);
        }
        if all.nodes.len() != count || !table.answers(answer) {
            let what =
                "it does not answer now as it did: a file that it names has changed since it was loaded";
            problems.error(Problem::new(format!("plan `{}`", plan.name()), what).help("load it again"));
            return Err(Error::Plan(problems));
        }
        Ok(table)
    }

    /// Asks the nodes that compute for all their rows.
    fn ask_again(&mut self, all: &Compiled) {
        for (number, node) in self.plan.nodes.iter().enumerate() {
            let Some(made) = self.made[number].rows.clone() else { continue };
            let wanted = node.demand.rows.map_or(usize::MAX, |rows| rows as usize);
            let again = match &all.nodes[number].form {
                Form::Compute(form) if self.degraded(number).is_none() => {
                    let inputs: Inputs = node.inputs.iter().map(|input| self.rows[*input].clone()).collect();
                    // If a node fails for unneeded rows, its original rows are kept.
                    form.run(&inputs, &self.call, &Check::never()).ok()
                }
                _ => None,
            };
            self.again[number] = again.is_some();
            self.rows[number] = Some(again.unwrap_or_else(|| made.first(wanted)));
        }
    }

    /// True if the answer is the same as it was.
    fn answers(&self, answer: &Answer) -> bool {
        let mut outputs = self.outputs().zip(&answer.outputs);
        outputs.all(|(node, rows)| self.rows[node].as_ref().is_some_and(|own| own.ids().eq(rows.ids())))
    }

    /// The nodes whose rows are the answer, in order.
    pub(super) fn outputs(&self) -> impl Iterator<Item = usize> + '_ {
        let last = |stage: &usize| self.plan.last_node(*stage).expect("an output has rows");
        self.plan.outputs.iter().map(last)
    }

    pub(super) fn node(&self, node: usize) -> &PlanNode {
        &self.plan.nodes[node]
    }

    /// A node's id.
    pub(super) fn id(&self, node: usize) -> String {
        self.plan.nodes[node].id.clone()
    }

    /// A node's op, in short.
    pub(super) fn op(&self, node: usize) -> String {
        short(self.plan.nodes[node].op.spec().name).to_owned()
    }

    /// A node as the file says it, unless it was added behind one for its fallback.
    pub(super) fn written(&self, node: usize) -> Option<&DocumentNode> {
        let place = self.written.get(&self.plan.nodes[node].id)?;
        Some(&self.document.nodes[*place])
    }

    pub(super) fn document(&self) -> &Document {
        &self.document
    }

    /// All rows of a node, if it ran.
    pub(super) fn rows(&self, node: usize) -> Option<&Rows> {
        self.rows[node].as_ref()
    }

    /// The rows of an input as a node had them. Those that matter have the places that they have among all.
    pub(super) fn input(&self, node: usize, at: usize) -> Option<&Rows> {
        let input = self.plan.nodes[node].inputs[at];
        if self.again[node] { self.rows[input].as_ref() } else { self.made[input].rows.as_ref() }
    }

    /// Whether a node has only the rows that were needed, because it reads and was not run again.
    pub(super) fn is_partial(&self, node: usize) -> bool {
        !self.again[node] && self.plan.nodes[node].demand.rows.is_some()
    }

    /// The lists that contained a node's rows; `None` if the node was dropped.
    pub(super) fn lists(&self, node: usize) -> Option<&Lists> {
        let own = self.degraded(node).is_none_or(|entry| entry.age.is_some());
        self.made[node].lists.as_ref().filter(|_| own)
    }

    /// The rows that replaced a node's own rows, if any did.
    pub(super) fn degraded(&self, node: usize) -> Option<&LedgerEntry> {
        let PlanNode { id, inputs, alone, .. } = &self.plan.nodes[node];
        // A region that was added for one node's fallback is reported as that node.
        let told = if *alone { &self.plan.nodes[inputs[0]].id } else { id };
        let mut replaced = self.ledger.iter().filter(|entry| entry.replaces_rows());
        replaced.find(|entry| match &entry.region {
            Some(region) => region == id,
            None => entry.node == *told,
        })
    }

    /// The index of the input that a node with a choice returns; `None` if it returns neither.
    pub(super) fn taken_side(&self, node: usize) -> Option<usize> {
        let choice = self.plan.nodes[node].choice.as_ref()?;
        let first = match &choice.when {
            When::Holds(condition) => {
                let on = condition.on.and_then(|on| self.input(node, on));
                condition.holds(on, &self.call.params).ok()?
            }
            When::InTime => self.degraded(node).is_none(),
        };
        match (first, &choice.when) {
            (true, _) => Some(choice.then),
            (false, When::Holds(_)) => choice.or,
            (false, When::InTime) => choice
                .or
                .filter(|_| self.degraded(node).is_some_and(|entry| entry.fallback.starts_with("node "))),
        }
    }

    /// The node that wants no more of a node's rows than the first ones.
    pub(super) fn wanted_by(&self, node: usize) -> Option<usize> {
        let mut at = node;
        // Each turn goes on to a node behind it.
        loop {
            let nodes = &self.plan.nodes;
            let takers = || (at + 1..nodes.len()).filter(|taker| nodes[*taker].inputs.contains(&at));
            let limit = takers().find(|taker| matches!(nodes[*taker].about.rule, Some(Rule::Slice(_))));
            if limit.is_some() {
                return limit;
            }
            at = takers().find(|taker| nodes[*taker].demand.rows.is_some())?;
        }
    }
}
