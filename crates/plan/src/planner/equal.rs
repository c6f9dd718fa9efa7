//! Equal sub-plans: nodes of the same op with the same parameters and equal inputs.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::Draft;
use crate::document::Document;
use crate::op::Arg;

/// For each node, the first one equal to it (itself, mostly). Inputs are changed to those that stand for them.
pub(super) fn merge(document: &Document, order: &[usize], drafts: &mut [Draft]) -> Vec<usize> {
    let mut same: Vec<usize> = (0..drafts.len()).collect();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for &place in order {
        let draft = &mut drafts[place];
        draft.inputs.iter_mut().for_each(|input| *input = same[*input]);
        if !draft.op.spec().distinct && !document.nodes[place].extended {
            same[place] = *seen.entry(identity(document, place, &draft.inputs)).or_insert(place);
        }
    }
    same
}

/// All that makes a node what it is, but for its id and label.
fn identity(document: &Document, place: usize, inputs: &[usize]) -> String {
    let node = &document.nodes[place];
    let mut text = format!("{} {inputs:?} {:?}", node.op, node.guard);
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
