//! Compiles a plan file: checks it, simplifies it, and cuts it into stages.
//!
//! Nodes that no output needs are left out, equal nodes become one, unneeded columns and rows are not read or computed,
//! and chains of computing nodes become one stage.

mod order;
mod equal;
mod early;
mod demand;
mod choices;
mod guards;
mod regions;
mod stages;
mod settings;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::limit::LimitKey;
use anabranch_text::{Problem, Problems};

use crate::compiled::{About, Compiled, Origin, PlanNode, StandIn};
use crate::document::{Document, DocumentNode, Fallback};
use crate::op::{Choice, Demand, Files, FilesFrom, Node, NodePlan, Op, Ops, Takes, When};
use crate::registry::Registries;
use crate::source::{Hedging, ReadTimes, Reader, Source, Sources, StaleStore};

use choices::ChoiceBranches;

/// The parts of an engine that plans are compiled against.
pub(crate) struct Surroundings<'a> {
    pub(crate) ops: &'a Ops,
    pub(crate) registries: &'a Arc<Registries>,
    /// One source per endpoint.
    pub(crate) sources: &'a [Arc<dyn Source>],
    /// The hedges of each endpoint that has them.
    pub(crate) hedges: &'a [Option<Arc<Hedging>>],
    /// The times of the reads of each endpoint.
    pub(crate) times: &'a [Arc<ReadTimes>],
    /// The replies that are remembered for fallbacks.
    pub(crate) memory: &'a StaleStore,
    /// The limit on trips to each endpoint.
    pub(crate) limits: &'a [Option<LimitKey>],
    /// The place of the files that a plan names.
    pub(crate) files: FilesFrom<'a>,
    /// The number of rows asked of nodes that compute.
    pub(crate) asking: RowDemand,
}

impl Surroundings<'_> {
    /// The sources, ready to bind reads to.
    fn sources(&self) -> Sources<'_> {
        Sources::new(self.sources, self.hedges, self.times, Some(self.memory))
    }
}

/// The number of rows asked of nodes that compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowDemand {
    /// Only the rows that are needed.
    Wanted,
    /// All rows, to show where the unneeded ones are.
    All,
}

/// A checked node on its way through the planner.
struct Draft {
    op: Arc<dyn Op>,
    planned: NodePlan,
    /// The indexes in the document; after merging, those of the representing nodes.
    inputs: Vec<usize>,
    part: Part,
}

/// The part of a node that was split in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// It was not split.
    Whole,
    /// The reads, made with earlier rows.
    Early,
    /// The columns that were read, put on the node's own rows.
    Attached,
}

/// Compiles the text of a plan. A plan comes back only when `problems` got no error.
pub(crate) fn compile(text: &str, with: &Surroundings<'_>, problems: &mut Problems) -> Option<Compiled> {
    let mut document = Document::read(text, with.ops, with.registries, problems)?;
    let added = guards::expand(&mut document, problems);
    let mut order = order::inputs_first(&document);
    let files = Files::new(with.files);
    let mut drafts = draft(&document, &order, with, &files, problems)?;
    let mut same = equal::merge(&document, &order, &mut drafts);
    early::split(early::Plan {
        document: &mut document,
        order: &mut order,
        drafts: &mut drafts,
        same: &mut same,
    });
    let document = document;
    let outputs: Vec<usize> = document.outputs.iter().map(|place| same[*place]).collect();
    let live = order::live(&order, &drafts, &outputs);
    let dead = warn_of_dead(&document, &same, &live, problems);
    let mut demands = demand::of(&order, &live, &drafts, &outputs);
    if with.asking == RowDemand::All {
        let computing = demands.iter_mut().zip(&drafts).filter(|(_, draft)| draft.planned.endpoint.is_none());
        computing.for_each(|(demand, _)| demand.rows = None);
    }
    let ids: Vec<String> = document.nodes.iter().map(|node| node.id.clone()).collect();
    let sources = with.sources();
    let mut builder = Builder { ids: &ids, with, sources, nodes: Vec::new() };
    let mut number = vec![usize::MAX; drafts.len()];
    let mut drafts: Vec<Option<Draft>> = drafts.into_iter().map(Some).collect();
    for &place in order.iter().filter(|place| live[**place]) {
        let draft = drafts[place].take().expect("an order names each node once");
        number[place] = builder.nodes.len();
        let node = &document.nodes[place];
        let settings = settings::of(&document, node, draft.op.spec(), with.registries);
        builder.add(node, settings, draft, &number, &demands[place]);
        warn_of_refusals(node, builder.sources.of_node(), problems);
        builder.nodes[number[place]].alone = added.get(place).is_some_and(|added| *added);
    }
    builder.name_merged(&same, &live, &number);
    let outputs: Vec<usize> = outputs.iter().map(|place| number[*place]).collect();
    let sides = choices::sides(&builder.nodes, &outputs);
    regions::check(&builder.nodes, &sides, problems);
    if !problems.is_fine() {
        return None;
    }
    let mut stand_ins = StandInsByNode::new();
    for &place in order.iter().filter(|place| live[**place]) {
        let made = builder.stand_ins(&document.nodes[place], number[place], &sides, problems);
        if !made.is_empty() {
            stand_ins.insert(number[place], made);
        }
    }
    let Builder { nodes, sources, .. } = builder;
    let Document { name, deadline, node_timeout, output_names, .. } = document;
    let shared_reads = sources.shared_count();
    let origin = Origin { text: text.into(), files: files.into_read() };
    let parts = Parts {
        name,
        nodes,
        stand_ins,
        outputs,
        output_names: output_names.into(),
        dead,
        shared_reads,
        deadline,
        node_timeout,
        origin,
    };
    problems.is_fine().then(|| stages::cut(parts, &sides, with))
}

/// The fallbacks of the nodes that have some.
type StandInsByNode = BTreeMap<usize, Vec<StandIn>>;

/// The checked nodes of a plan, before they are grouped into stages.
struct Parts {
    name: String,
    nodes: Vec<PlanNode>,
    stand_ins: StandInsByNode,
    outputs: Vec<usize>,
    output_names: Arc<[String]>,
    dead: Vec<(String, String)>,
    shared_reads: usize,
    deadline: Option<Duration>,
    node_timeout: Option<Duration>,
    origin: Origin,
}

/// Lets every valid node be checked by its op, including dead ones. Nodes after an invalid one are skipped, because
/// their problems may only follow from it.
fn draft(
    document: &Document,
    order: &[usize],
    with: &Surroundings<'_>,
    files: &Files<'_>,
    problems: &mut Problems,
) -> Option<Vec<Draft>> {
    let mut drafts: Vec<Option<Draft>> = document.nodes.iter().map(|_| None).collect();
    for &place in order {
        let node = &document.nodes[place];
        if !node.sound {
            continue;
        }
        let op = with.ops.get(&node.op).expect("the document was checked to name ops that exist");
        let schemas = node.inputs.iter().map(|input| Some(&drafts[*input].as_ref()?.planned.schema));
        let Some(inputs) = schemas.collect::<Option<Vec<_>>>() else { continue };
        let planned = op.plan(&mut Node {
            id: &node.id,
            spec: op.spec(),
            args: &node.args,
            inputs,
            document,
            registries: with.registries,
            files,
            problems,
        });
        if let Some(planned) = planned {
            guards::check(document, place, &planned, with.registries, problems);
            debug_assert_eq!(
                planned.takes.len(),
                node.inputs.len(),
                "an op says what it takes of each input"
            );
            let inputs = used(&planned, &node.inputs);
            drafts[place] = Some(Draft { op: Arc::clone(op), planned, inputs, part: Part::Whole });
        }
    }
    if !problems.is_fine() {
        in_file_order(document, &mut problems.errors);
        return None;
    }
    let complete: Option<Vec<Draft>> = drafts.into_iter().collect();
    if complete.is_none() {
        let place = format!("plan `{}`", document.name);
        problems.error(Problem::new(place, "an op refused a node without saying why"));
    }
    complete
}

/// Puts the errors of nodes in the order of the file. Errors of the file's head stay before them, errors of its outputs
/// and tables come after.
fn in_file_order(document: &Document, errors: &mut [Problem]) {
    let places: HashMap<&str, usize> =
        document.nodes.iter().enumerate().map(|(place, node)| (node.id.as_str(), place)).collect();
    let place_of = |problem: &Problem| {
        let (id, _) = problem.place.strip_prefix("node `")?.split_once('`')?;
        places.get(id).copied()
    };
    let head = errors.iter().take_while(|problem| place_of(problem).is_none()).count();
    let head = if head == errors.len() { 0 } else { head };
    errors[head..].sort_by_key(|problem| place_of(problem).unwrap_or(usize::MAX));
}

/// A node that returns one of two inputs uses no third one, except the one that its condition reads.
fn used(planned: &NodePlan, inputs: &[usize]) -> Vec<usize> {
    let Some(choice) = &planned.choice else { return inputs.to_vec() };
    let is_used = |at: usize| at == choice.then || Some(at) == choice.or || Some(at) == choice.on();
    (0..inputs.len()).map(|at| inputs[if is_used(at) { at } else { choice.then }]).collect()
}

/// Warns of the nodes that no output needs, and names them.
fn warn_of_dead(
    document: &Document,
    same: &[usize],
    live: &[bool],
    problems: &mut Problems,
) -> Vec<(String, String)> {
    let mut dead = Vec::new();
    for (place, node) in document.nodes.iter().enumerate() {
        if !live[same[place]] {
            let problem = Problem::new(
                format!("node `{}` ({})", node.id, node.op),
                "no output needs it: it is not run",
            );
            problems.warn(problem);
            dead.push((node.id.clone(), node.op.clone()));
        }
    }
    dead
}

/// Warns about reads that the source of a node refuses for every request.
fn warn_of_refusals<'a>(
    node: &DocumentNode,
    readers: impl Iterator<Item = &'a Reader>,
    problems: &mut Problems,
) {
    for refusal in readers.filter_map(Reader::refusal) {
        problems.warn(Problem::new(format!("node `{}` ({})", node.id, node.op), refusal.to_string()));
    }
}

/// Makes the nodes that run.
struct Builder<'a> {
    /// The ids of the document's nodes.
    ids: &'a [String],
    with: &'a Surroundings<'a>,
    sources: Sources<'a>,
    nodes: Vec<PlanNode>,
}

impl Builder<'_> {
    /// Names the nodes that were merged into others, for messages.
    fn name_merged(&mut self, same: &[usize], live: &[bool], number: &[usize]) {
        for (place, id) in self.ids.iter().enumerate() {
            if same[place] != place && live[same[place]] {
                self.nodes[number[same[place]]].about.also.push(id.clone());
            }
        }
    }

    fn add(
        &mut self,
        node: &DocumentNode,
        settings: Vec<(String, String)>,
        draft: Draft,
        number: &[usize],
        demand: &Demand,
    ) {
        let inputs: Vec<usize> = draft.inputs.iter().map(|input| number[*input]).collect();
        let made = guards::made(&draft, inputs.first().map(|input| &self.nodes[*input].about.schema));
        // With two inputs, it is unknown which one the rows would have come from.
        let chooses = matches!(&draft.planned.choice, Some(Choice { when: When::Holds(_), .. }));
        let passes = draft.planned.takes.first().is_some_and(|takes| takes.passes) && !chooses;
        let mut carries = carries(&draft.planned);
        match draft.part {
            Part::Whole => {}
            // The rows pass through the node itself.
            Part::Early => carries[0] = false,
            Part::Attached => carries[1] = false,
        }
        let early = draft.part == Part::Early;
        let Draft { op, planned, .. } = draft;
        let remembering = node.guard.fallbacks.iter().any(|it| matches!(it, Fallback::Stale(_)));
        self.sources.begin(self.nodes.len(), remembering);
        let form = (planned.build)(demand, &mut self.sources);
        let reads: Vec<_> = self.sources.of_node().cloned().collect();
        self.nodes.push(PlanNode {
            id: node.id.clone(),
            op,
            inputs,
            demand: demand.clone(),
            choice: planned.choice,
            endpoint: planned.endpoint.filter(|_| !reads.is_empty()),
            form,
            timeout: node.guard.timeout,
            ranges: node.guard.ranges.clone(),
            bare: planned.bare,
            passes,
            made,
            alone: false,
            early,
            about: About {
                also: Vec::new(),
                trace: node.trace.clone(),
                settings,
                schema: planned.schema,
                rule: planned.rule,
                carries,
                reads,
                guard: guards::shown(node, self.ids, &self.with.registries.keys),
            },
        });
    }

    /// The fallbacks of a node. The members of all regions must be known.
    fn stand_ins(
        &self,
        node: &DocumentNode,
        number: usize,
        sides: &ChoiceBranches,
        problems: &mut Problems,
    ) -> Vec<StandIn> {
        let PlanNode { passes, made, bare, demand, about: About { schema, .. }, .. } = &self.nodes[number];
        let given = match sides.regions.binary_search(&number) {
            Ok(region) => regions::given(&self.nodes, sides, region).map(|(_, made)| made),
            Err(_) => (*passes || bare.is_some()).then(|| made.clone()),
        };
        let registries = self.with.registries;
        let mut maker = guards::StandIns { node, demand, schema, ids: self.ids, registries, problems };
        maker.all(given.as_deref())
    }
}

/// By input: whether its rows come out, if they are not dropped.
fn carries(planned: &NodePlan) -> Vec<bool> {
    let carries = |(at, takes): (usize, &Takes)| match (&planned.choice, &planned.rule) {
        (Some(choice), _) => at == choice.then || Some(at) == choice.or,
        (None, Some(rule)) => rule.carries(at, takes.passes),
        (None, None) => takes.passes,
    };
    planned.takes.iter().enumerate().map(carries).collect()
}
