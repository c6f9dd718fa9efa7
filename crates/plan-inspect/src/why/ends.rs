//! The starts and the ends of a row's paths.

use std::collections::HashSet;

use super::origins::{self, Place};
use super::table::Table;

/// A row of a node: the node, and the row's place there, both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    pub(super) node: usize,
    pub(super) position: usize,
}

/// The end of a way, and the last spot on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowEnd {
    pub(super) last: Spot,
    pub(super) end: Ending,
}

/// The end of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ending {
    /// As a row of an output.
    Answered,
    /// A node does not pass it on.
    Dropped {
        /// The node.
        node: usize,
        /// The input that has the row.
        at: usize,
    },
    /// No node passes it on, or could.
    Used {
        /// The nodes that read it.
        by: Vec<usize>,
    },
}

/// The positions of the rows with one id.
pub(super) struct Trail<'t> {
    table: &'t Table<'t>,
    /// By node: the origin of each of its rows, for nodes that the row reaches.
    origins: Vec<Vec<Option<Place>>>,
    /// By node: the positions of the row.
    spots: Vec<Vec<usize>>,
    /// By node: the origins of the row's positions.
    kept: Vec<HashSet<Place>>,
    /// By node: the nodes that ran and take its rows, with the index of the input.
    takers: Vec<Vec<(usize, usize)>>,
}

impl<'t> Trail<'t> {
    pub(super) fn new(table: &'t Table<'t>, id: i64) -> Trail<'t> {
        let count = table.plan.nodes.len();
        let mut trail = Trail {
            table,
            origins: vec![Vec::new(); count],
            spots: vec![Vec::new(); count],
            kept: vec![HashSet::new(); count],
            takers: vec![Vec::new(); count],
        };
        // Rows come through the node that an early one reads for.
        for node in (0..count).filter(|node| !table.node(*node).early) {
            let Some(rows) = table.rows(node) else { continue };
            for (at, input) in table.node(node).inputs.iter().enumerate() {
                trail.takers[*input].push((node, at));
            }
            let own = rows.ids().enumerate().filter(|(_, own)| *own == id);
            trail.spots[node] = own.map(|(position, _)| position).collect();
            if !trail.spots[node].is_empty() {
                let origins = origins::of(table, node);
                let kept = trail.spots[node].iter().filter_map(|spot| origins.get(*spot).copied().flatten());
                trail.kept[node] = kept.collect();
                trail.origins[node] = origins;
            }
        }
        trail
    }

    /// True if a node has the row.
    pub(super) fn is_empty(&self) -> bool {
        self.spots.iter().all(Vec::is_empty)
    }

    /// The previous position of a row; `None` if its node brought it.
    pub(super) fn before(&self, Spot { node, position }: Spot) -> Option<Spot> {
        let computed;
        let origins = match &self.origins[node][..] {
            [] => {
                computed = origins::of(self.table, node);
                &computed[..]
            }
            origins => origins,
        };
        let place = origins.get(position).copied().flatten()?;
        Some(Spot { node: self.table.node(node).inputs[place.at], position: place.position })
    }

    /// All ends of the row's ways; the furthest first, the answer before all.
    pub(super) fn ends(&self) -> Vec<RowEnd> {
        let mut ends: Vec<RowEnd> = Vec::new();
        let outputs: Vec<usize> = self.table.outputs().collect();
        for (node, spots) in self.spots.iter().enumerate() {
            for &position in spots {
                let last = Spot { node, position };
                let before = ends.len();
                let answered = outputs.iter().filter(|output| **output == node);
                ends.extend(answered.map(|_| RowEnd { last, end: Ending::Answered }));
                ends.extend(self.drops(last));
                if ends.len() == before && !self.passed(last) {
                    let by = self.takers[last.node].iter().map(|(taker, _)| *taker).collect();
                    ends.push(RowEnd { last, end: Ending::Used { by } });
                }
            }
        }
        ends.sort_by_key(|ended| match &ended.end {
            Ending::Answered => (0, 0),
            Ending::Dropped { node, .. } => (1, usize::MAX - node),
            Ending::Used { .. } => (2, usize::MAX - ended.last.node),
        });
        ends
    }

    /// The nodes that would pass a spot's row on.
    fn carriers(&self, node: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let carries = |(taker, at): &(usize, usize)| self.table.node(*taker).about.carries[*at];
        let takers = self.takers[node].iter().copied();
        takers.filter(move |taker| carries(taker) && self.counts(taker.0, taker.1))
    }

    /// An `if` of which both sides are one node has one input.
    fn counts(&self, taker: usize, at: usize) -> bool {
        let node = self.table.node(taker);
        let Some(choice) = &node.choice else { return true };
        let or = choice.or.map(|or| node.inputs[or]);
        Some(node.inputs[choice.then]) != or || Some(at) == self.table.taken_side(taker)
    }

    fn kept(&self, taker: usize, at: usize, position: usize) -> bool {
        self.kept[taker].contains(&Place { at, position })
    }

    fn passed(&self, Spot { node, position }: Spot) -> bool {
        self.carriers(node).any(|(taker, at)| self.kept(taker, at, position))
    }

    fn drops(&self, last: Spot) -> impl Iterator<Item = RowEnd> + '_ {
        let dropped = move |(taker, at): &(usize, usize)| !self.kept(*taker, *at, last.position);
        let ended = move |(node, at)| RowEnd { last, end: Ending::Dropped { node, at } };
        self.carriers(last.node).filter(dropped).map(ended)
    }
}
