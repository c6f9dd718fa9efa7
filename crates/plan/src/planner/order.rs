//! Orders over a document's nodes, made without recursion.

use anabranch_engine::Dag;

use super::Draft;
use crate::document::Document;

/// Every node after its inputs, otherwise in the order of the file. Nodes in a circle, and those behind it, are left
/// out.
pub(super) fn inputs_first(document: &Document) -> Vec<usize> {
    let inputs: Vec<Vec<usize>> = document.nodes.iter().map(|node| node.inputs.clone()).collect();
    Dag::sort(&inputs, |_| {})
}

/// The nodes that some output needs.
pub(super) fn live(order: &[usize], drafts: &[Draft], outputs: &[usize]) -> Vec<bool> {
    let mut live = vec![false; drafts.len()];
    outputs.iter().for_each(|place| live[*place] = true);
    for &place in order.iter().rev() {
        if live[place] {
            drafts[place].inputs.iter().for_each(|input| live[*input] = true);
        }
    }
    live
}
