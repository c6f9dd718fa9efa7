//! Equal sub-plans: nodes of the same op with the same parameters and equal inputs.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::Draft;
use crate::document::Document;
use crate::op::Arg;
use crate::ops::REGION;

/// For each node, the first one that is equal to it, usually itself. Inputs are replaced by the nodes that represent
/// them.
///
/// A node that a region may drop is equal only to a node that is dropped by the same regions, because others need its
/// rows.
pub(super) fn merge(document: &Document, order: &[usize], drafts: &mut [Draft]) -> Vec<usize> {
    let mut same: Vec<usize> = (0..drafts.len()).collect();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut regions: Vec<Vec<usize>> = vec![Vec::new(); drafts.len()];
    for (place, node) in document.nodes.iter().enumerate().filter(|(_, node)| node.op == REGION) {
        regions[node.inputs[0]].push(place);
    }
    for &place in order {
        let draft = &mut drafts[place];
        draft.inputs.iter_mut().for_each(|input| *input = same[*input]);
        if !draft.op.spec().distinct && !document.nodes[place].extended {
            let identity = identity(document, place, &draft.inputs, &regions[place]);
            same[place] = *seen.entry(identity).or_insert(place);
        }
    }
    same
}

/// Everything that distinguishes a node, except for its id and label.
fn identity(document: &Document, place: usize, inputs: &[usize], given_up_for: &[usize]) -> String {
    let node = &document.nodes[place];
    let mut text = format!("{} {inputs:?} {:?}", node.op, node.guard);
    for region in given_up_for {
        let region = &document.nodes[*region];
        write!(text, " {:?} {:?}", region.guard, &region.inputs[1..])
            .expect("a string takes all that is written");
    }
    for arg in &node.args {
        let written = match arg {
            Some(Arg::Table(id)) => {
                write!(text, " {:?} {:?}", document.exprs.get(id), document.preds.get(id))
            }
            arg => write!(text, " {arg:?}"),
        };
        written.expect("a string takes all that is written");
    }
    text
}
