//! The layout of a diagram: its boxes, and the curves between them.

use super::{Diagram, Node};

pub(super) const GAP: usize = 56;
pub(super) const ROW: usize = 16;
pub(super) const LEFT: usize = 24;
const SPACE: usize = 26;
const TOP: usize = 92;
/// The width of a character, in tenths of a pixel: a little more than in any of the fonts.
pub(super) const CHARACTER: usize = 73;

/// The place of a box.
pub(super) struct Place {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// The places of all boxes, and the size of the picture.
pub(super) struct Layout {
    pub(super) places: Vec<Place>,
    pub(super) width: usize,
    pub(super) height: usize,
    /// The nodes by level.
    levels: Vec<Vec<usize>>,
}

impl Layout {
    /// Boxes stacked by level, each level centred and as wide as its longest line. `texts` are the lines of each node.
    pub(super) fn of(diagram: &Diagram, texts: &[Vec<String>], head_width: usize) -> Layout {
        let levels = levels(&diagram.nodes);
        let height = |node: usize| texts[node].len() * ROW + 12;
        let tall = |level: &Vec<usize>| level.iter().map(|node| height(*node) + SPACE).sum::<usize>();
        let tallest = levels.iter().map(tall).max().unwrap_or(0);
        let mut places: Vec<Place> =
            texts.iter().map(|_| Place { x: 0, y: 0, width: 0, height: 0 }).collect();
        let mut x = LEFT;
        for level in &levels {
            let lines = level.iter().flat_map(|node| &texts[*node]);
            let longest = lines.map(|text| text.chars().count()).max().unwrap_or(0);
            let width = longest * CHARACTER / 10 + 20;
            let mut y = TOP + (tallest - tall(level)) / 2;
            for &node in level {
                places[node] = Place { x, y, width, height: height(node) };
                y += height(node) + SPACE;
            }
            x += width + GAP;
        }
        let width = (x - GAP.min(x - LEFT)).max(head_width) + LEFT;
        Layout { places, width, height: TOP + tallest + LEFT, levels }
    }

    /// The curve from box to box; above or below those between them, whichever is nearer.
    pub(super) fn curve(&self, nodes: &[Node], from: usize, to: usize) -> String {
        let levels = self.levels.get(nodes[from].level + 1..nodes[to].level);
        let between = levels.into_iter().flatten().flatten().map(|node| &self.places[*node]);
        let between: Vec<&Place> = between.collect();
        line(&self.places[from], &self.places[to], &between)
    }
}

fn levels(nodes: &[Node]) -> Vec<Vec<usize>> {
    let mut levels = vec![Vec::new(); nodes.iter().map(|node| node.level + 1).max().unwrap_or(0)];
    nodes.iter().enumerate().for_each(|(place, node)| levels[node.level].push(place));
    levels
}

fn line(from: &Place, to: &Place, between: &[&Place]) -> String {
    let (x1, y1) = (from.x + from.width, from.y + from.height / 2);
    let (x2, y2) = (to.x, to.y + to.height / 2);
    let curve = |x1: usize, y1: usize, x2: usize, y2: usize| {
        format!("C{} {y1} {} {y2} {x2} {y2}", x1 + GAP / 2, x2 - GAP / 2)
    };
    let above = between.iter().map(|place| place.y).min();
    let below = between.iter().map(|place| place.y + place.height).max();
    let (Some(above), Some(below)) = (above, below) else {
        return format!("M{x1} {y1}{}", curve(x1, y1, x2, y2));
    };
    let (above, below) = (above - SPACE / 2, below + SPACE / 2);
    let lane = if (y1 + y2).abs_diff(2 * above) <= (y1 + y2).abs_diff(2 * below) { above } else { below };
    let (left, right) = (x1 + GAP, x2 - GAP);
    format!("M{x1} {y1}{}H{right}{}", curve(x1, y1, left, lane), curve(right, lane, x2, y2))
}
