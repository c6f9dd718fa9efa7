//! Nodes that need each other in a circle.

use super::DocumentNode;
use crate::json::quote;
use crate::problem::{Problem, Problems};

/// The most circles that are told.
const MOST_CIRCLES: usize = 10;
/// The most nodes of a circle that are named.
const MOST_NAMED: usize = 8;

/// Notes circles among the nodes, one for each knot, up to a few.
pub(super) fn find(nodes: &[Option<DocumentNode>], problems: &mut Problems) {
    let inputs: Vec<Vec<usize>> =
        nodes.iter().map(|node| node.as_ref().map_or_else(Vec::new, |node| node.inputs.clone())).collect();
    let mut left = vec![true; nodes.len()];
    for _ in 0..MOST_CIRCLES {
        strip(&inputs, &mut left);
        let Some(circle) = walk(&inputs, &left) else { return };
        tell(nodes, &circle, problems);
        circle.into_iter().for_each(|place| left[place] = false);
    }
}

/// Takes out all nodes whose inputs, and theirs, end somewhere.
fn strip(inputs: &[Vec<usize>], left: &mut [bool]) {
    let mut waiting = vec![0usize; inputs.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); inputs.len()];
    for (place, inputs) in inputs.iter().enumerate().filter(|(place, _)| left[*place]) {
        for input in inputs.iter().filter(|input| left[**input]) {
            waiting[place] += 1;
            users[*input].push(place);
        }
    }
    let mut ready: Vec<usize> =
        (0..inputs.len()).filter(|place| left[*place] && waiting[*place] == 0).collect();
    while let Some(place) = ready.pop() {
        left[place] = false;
        for user in &users[place] {
            waiting[*user] -= 1;
            if waiting[*user] == 0 {
                ready.push(*user);
            }
        }
    }
}

/// Follows inputs from any node that is left until one comes again.
fn walk(inputs: &[Vec<usize>], left: &[bool]) -> Option<Vec<usize>> {
    let mut at = left.iter().position(|left| *left)?;
    let mut path = Vec::new();
    let mut step = vec![usize::MAX; left.len()];
    while step[at] == usize::MAX {
        step[at] = path.len();
        path.push(at);
        at = *inputs[at].iter().find(|input| left[**input]).expect("what is left waits for what is left");
    }
    path.drain(..step[at]);
    Some(path)
}

fn tell(nodes: &[Option<DocumentNode>], circle: &[usize], problems: &mut Problems) {
    let id = |place: &usize| nodes[*place].as_ref().map_or_else(String::new, |node| quote(&node.id));
    let mut named: Vec<String> = circle.iter().take(MOST_NAMED).map(id).collect();
    if circle.len() > MOST_NAMED {
        named.push(format!("{} more", circle.len() - MOST_NAMED));
    }
    let first = circle.first().expect("a circle has nodes");
    named.push(id(first));
    let op = nodes[*first].as_ref().map_or("", |node| node.op.as_str());
    let what = format!("the nodes form a circle: {}", named.join(" needs "));
    problems.error(Problem::new(format!("node {} ({op}), inputs", id(first)), what));
}
