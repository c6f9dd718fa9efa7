//! Orders over a document's nodes, made without recursion.

use super::Draft;
use crate::document::Document;

/// Every node after its inputs, otherwise in the order of the file. Nodes in a circle, and those behind it, are left
/// out.
pub(super) fn inputs_first(document: &Document) -> Vec<usize> {
    let count = document.nodes.len();
    let mut waiting: Vec<usize> = document.nodes.iter().map(|node| node.inputs.len()).collect();
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (place, node) in document.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|input| dependents[*input].push(place));
    }
    let mut ready: std::collections::BTreeSet<usize> =
        (0..count).filter(|place| waiting[*place] == 0).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(place) = ready.pop_first() {
        order.push(place);
        for &dependent in &dependents[place] {
            waiting[dependent] -= 1;
            if waiting[dependent] == 0 {
                ready.insert(dependent);
            }
        }
    }
    order
}

/// Which nodes some output needs.
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
