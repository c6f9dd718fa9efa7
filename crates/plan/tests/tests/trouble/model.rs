//! The expected result of a case, node by node: when each begins and ends, and which fallback is used.

use std::collections::BTreeSet;
use std::time::Duration;

use anabranch_plan::Reason;

use super::world::{Case, Trouble};

/// Node, region, reason, fallback, waited.
pub(super) type ExpectedEntry = (String, Option<String>, Reason, String, Duration);

#[derive(Debug)]
pub(super) enum CaseOutcome {
    Answer {
        at: Duration,
        ledger: Vec<ExpectedEntry>,
    },
    /// A node that nothing stands in for failed.
    Failed {
        at: Duration,
        node: String,
    },
    /// The deadline passed with these under way.
    Late {
        nodes: Vec<String>,
    },
}

/// When a node begins, and when it would end if left alone.
#[derive(Clone, Copy, Debug)]
struct Span {
    begin: Duration,
    /// `None` if it never ends.
    end: Option<Duration>,
    fails: bool,
}

/// How a node ended.
#[derive(Clone, Debug)]
enum End {
    /// With rows, its own or others.
    Rows(Duration),
    /// Without any, in a region that is lost.
    Lost,
    /// Never: the request is over before.
    Never,
}

struct Model<'a> {
    case: &'a Case,
    trouble: &'a [(usize, Trouble)],
    spans: Vec<Option<Span>>,
    ends: Vec<End>,
    ledger: Vec<(Duration, Vec<usize>, ExpectedEntry)>,
    /// Failures and misses that nothing stands in for: when, and which node; with the regions around it.
    fatal: Vec<(Duration, String, usize)>,
    /// When something else happens at the very time that decides: nobody can say which comes first.
    unsure: bool,
}

/// The expected result; `None` if it depends on the order of two events at the same time.
pub(super) fn expect(case: &Case, trouble: &[(usize, Trouble)]) -> Option<CaseOutcome> {
    let count = case.nodes.len();
    let mut model = Model {
        case,
        trouble,
        spans: vec![None; count],
        ends: vec![End::Never; count],
        ledger: Vec::new(),
        fatal: Vec::new(),
        unsure: false,
    };
    let order: Vec<usize> = (0..count).collect();
    for node in order {
        // What stands in for a region is looked at with it.
        if model.spare_of(node).is_none() {
            model.settle(node, Duration::ZERO);
        }
    }
    model.fatal.sort();
    if model.unsure || matches!(&model.fatal[..], [(first, ..), (second, ..), ..] if first == second) {
        return None;
    }
    Some(model.verdict())
}

impl Model<'_> {
    /// When nodes that can be stood in for must give way.
    fn cutoff(&self, node: usize) -> Duration {
        let deadline = self.case.deadline;
        let last = node + 1 == self.case.nodes.len();
        let reserve = (deadline / 10).clamp(Duration::from_millis(2), Duration::from_millis(10));
        if last { deadline } else { deadline - reserve }
    }

    /// The region whose own nodes these are: the first behind it that all ways go through, if it is one.
    fn members(&self, region: usize) -> BTreeSet<usize> {
        if self.case.nodes[region].is_alone {
            return BTreeSet::from([self.case.nodes[region].inputs[0]]);
        }
        self.only_for(region, self.case.nodes[region].inputs[0])
    }

    fn spares(&self, region: usize) -> BTreeSet<usize> {
        self.case.nodes[region].spare.map_or_else(BTreeSet::new, |spare| self.only_for(region, spare))
    }

    /// The nodes that run only for one input of a node.
    fn only_for(&self, node: usize, input: usize) -> BTreeSet<usize> {
        let nodes = &self.case.nodes;
        let mut reached = vec![false; nodes.len()];
        *reached.last_mut().unwrap() = true;
        for at in (0..nodes.len()).rev().filter(|at| *at < nodes.len()) {
            if reached[at] {
                for other in &nodes[at].inputs {
                    if (at, *other) != (node, input) {
                        reached[*other] = true;
                    }
                }
            }
        }
        (0..nodes.len()).filter(|at| !reached[*at]).collect()
    }

    fn spare_of(&self, node: usize) -> Option<usize> {
        let regions = (0..self.case.nodes.len()).filter(|at| self.case.nodes[*at].is_region);
        regions.into_iter().find(|region| self.spares(*region).contains(&node))
    }

    /// The regions around a node, the closest first, and whether something stands in for one of them.
    fn around(&self, node: usize) -> Vec<usize> {
        let nodes = 0..self.case.nodes.len();
        nodes.filter(|at| self.case.nodes[*at].is_region && self.members(*at).contains(&node)).collect()
    }

    fn is_saved(&self, node: usize) -> bool {
        let stands_in =
            |region: usize| self.case.nodes[region].sure.is_some() || self.case.nodes[region].spare.is_some();
        let mut around = self.around(node);
        if let Some(region) = self.spare_of(node) {
            around.push(region);
            around.extend(self.around(region));
        }
        around.into_iter().any(stands_in)
    }

    /// Works out a node that may begin at `from`.
    fn settle(&mut self, node: usize, from: Duration) {
        if self.case.nodes[node].is_region {
            return self.settle_region(node);
        }
        let mut begin = from;
        for input in &self.case.nodes[node].inputs {
            match self.ends[*input] {
                End::Rows(at) => begin = begin.max(at),
                End::Lost => return self.ends[node] = End::Lost,
                End::Never => return self.ends[node] = End::Never,
            }
        }
        let order = self.trouble.iter().find(|(other, _)| *other == node).map(|(_, trouble)| *trouble);
        let takes = self.case.nodes[node].takes;
        let end = match order {
            Some(Trouble::Stall) => None,
            Some(Trouble::Slow(more)) => Some(begin + takes + more),
            Some(Trouble::Fail) | None => Some(begin + takes),
        };
        let span = Span { begin, end, fails: matches!(order, Some(Trouble::Fail)) };
        self.spans[node] = Some(span);
        self.ends[node] = self.end_of(node, span);
    }

    fn end_of(&mut self, node: usize, span: Span) -> End {
        let Span { begin, end, fails } = span;
        let (sure, saved) = (self.case.nodes[node].sure, self.is_saved(node));
        let degrades = sure.is_some() || saved;
        let cutoff = if degrades { self.cutoff(node) } else { self.case.deadline };
        let timeout = self.case.timeout(node).map(|timeout| begin + timeout);
        let due = timeout.map_or(cutoff, |timeout| timeout.min(cutoff));
        if end.is_some_and(|end| end == due) || (end.is_none() && timeout == Some(cutoff)) {
            self.unsure = true;
        }
        let shed = begin >= cutoff;
        if !shed
            && !fails
            && let Some(end) = end.filter(|end| *end < due)
        {
            return End::Rows(end);
        }
        let (at, reason) = match end {
            _ if shed => (begin, Reason::Shed),
            Some(end) if fails && end < due => (end, Reason::Error),
            _ => (due, Reason::Timeout),
        };
        let waited = if reason == Reason::Shed { Duration::ZERO } else { at - begin };
        if let Some(sure) = sure {
            // Whether it is told at all hangs on whether its region is lost by then.
            let around = self.around(node);
            let told = (self.case.nodes[node].id.clone(), None, reason, sure.to_owned(), waited);
            self.ledger.push((at, around, told));
            return End::Rows(at);
        }
        if saved {
            return End::Lost;
        }
        if at < self.case.deadline {
            self.fatal.push((at, self.case.nodes[node].id.clone(), node));
        }
        End::Never
    }

    /// When a node that was lost was, and why; `None` if it was not begun.
    fn lost_at(&self, node: usize) -> Option<(Duration, Reason)> {
        let Span { begin, end, fails } = self.spans[node]?;
        let cutoff = self.cutoff(node);
        if begin >= cutoff {
            return Some((begin, Reason::Shed));
        }
        let timeout = self.case.timeout(node).map(|timeout| begin + timeout);
        let due = timeout.map_or(cutoff, |timeout| timeout.min(cutoff));
        match end.filter(|end| fails && *end < due) {
            Some(end) => Some((end, Reason::Error)),
            None => Some((due, Reason::Timeout)),
        }
    }

    fn settle_region(&mut self, region: usize) {
        let members = self.members(region);
        let outside = members.iter().flat_map(|member| &self.case.nodes[*member].inputs);
        let outside: Vec<usize> = outside.copied().filter(|input| !members.contains(input)).collect();
        let mut start = Duration::ZERO;
        for input in outside {
            match self.ends[input] {
                End::Rows(at) => start = start.max(at),
                End::Lost => return self.ends[region] = End::Lost,
                End::Never => return self.ends[region] = End::Never,
            }
        }
        let node = &self.case.nodes[region];
        let saved = node.sure.is_some() || node.spare.is_some() || self.is_saved(region);
        let cutoff = if saved { self.cutoff(region) } else { self.case.deadline };
        let due = self.case.timeout(region).map_or(cutoff, |timeout| cutoff.min(start + timeout));
        let due = due.max(start);
        let inner = self.case.nodes[region].inputs[0];
        let early = |model: &Self, node: &usize| {
            let lost = matches!(model.ends[*node], End::Lost);
            let (at, reason) = model.lost_at(*node).filter(|_| lost)?;
            (at < due && reason != Reason::Shed).then_some((at, reason, *node))
        };
        // Nodes of a region within lose that one first; only what it cannot make up for is lost here.
        let own = |model: &Self, node: &usize| model.around(*node).first() == Some(&region);
        let inner_region_lost = |model: &Self, node: &usize| {
            model.case.nodes[*node].is_region && own(model, node) && matches!(model.ends[*node], End::Lost)
        };
        if members.iter().any(|node| inner_region_lost(self, node)) {
            // Told in another test; here it would need the ledger of the one within.
            self.unsure = true;
        }
        let losses = members.iter().filter(|node| own(self, node)).filter_map(|node| early(self, node));
        let first = losses.min_by_key(|(at, ..)| *at);
        let done = match self.ends[inner] {
            End::Rows(at) => Some(at),
            End::Lost | End::Never => None,
        };
        if done == Some(due) || first.is_some_and(|(at, ..)| Some(at) == done) {
            self.unsure = true;
        }
        if let Some(at) = done.filter(|at| *at < due && first.is_none_or(|(first, ..)| *at < first)) {
            return self.ends[region] = End::Rows(at);
        }
        if !saved && due >= self.case.deadline {
            return self.ends[region] = End::Never;
        }
        let (lost, late) = match first {
            Some((at, reason, node)) if at < due && at < self.cutoff(node) => {
                let waited = at - self.spans[node].expect("it was lost").begin;
                (at, vec![(self.case.nodes[node].id.clone(), reason, waited)])
            }
            _ => (due, self.overdue(region, &members, due)),
        };
        self.give_up(region, lost, late);
    }

    /// The nodes of a region that are under way at `due`, or could be.
    fn overdue(
        &mut self,
        region: usize,
        members: &BTreeSet<usize>,
        due: Duration,
    ) -> Vec<(String, Reason, Duration)> {
        let mut late = Vec::new();
        for &node in members.iter().filter(|node| !self.case.nodes[**node].is_region) {
            let Some(span) = self.spans[node] else { continue };
            if span.begin == due || span.end == Some(due) {
                self.unsure = true;
            }
            let ended = match self.ends[node] {
                End::Rows(at) => at <= due,
                End::Lost => self.lost_at(node).is_some_and(|(at, _)| at < due),
                End::Never => false,
            };
            if span.begin < due && !ended {
                late.push((self.case.nodes[node].id.clone(), Reason::Timeout, due - span.begin));
            }
        }
        if late.is_empty() {
            self.unsure = true;
            late.push((self.case.nodes[region].id.clone(), Reason::Shed, Duration::ZERO));
        }
        late
    }

    /// Something stands in for a region that was lost, or nothing does.
    fn give_up(&mut self, region: usize, lost: Duration, mut late: Vec<(String, Reason, Duration)>) {
        // What its nodes had been stood in for after that did not happen.
        let members = self.members(region);
        let unsure = self.ledger.iter().any(|(at, around, _)| around.contains(&region) && *at == lost);
        self.unsure |= unsure;
        self.unsure |= self.fatal.iter().any(|(at, _, node)| members.contains(node) && *at == lost);
        self.ledger.retain(|(at, around, _)| !around.contains(&region) || *at < lost);
        self.fatal.retain(|(at, _, node)| !members.contains(node) || *at < lost);
        for member in members {
            let over = |end: &End| !matches!(end, End::Rows(at) if *at < lost);
            if self.spans[member].is_some_and(|span| span.begin >= lost) {
                self.spans[member] = None;
            } else if over(&self.ends[member]) {
                self.ends[member] = End::Rows(lost);
            }
        }
        let around = self.around(region);
        let told_region = &self.case.nodes[region];
        let id = (!told_region.is_alone).then(|| told_region.id.clone());
        let tell = |model: &mut Self, at: Duration, late: Vec<_>, fallback: String| {
            for (node, reason, waited) in late {
                let told = (node, id.clone(), reason, fallback.clone(), waited);
                model.ledger.push((at, around.clone(), told));
            }
            model.ends[region] = End::Rows(at);
        };
        let mut at = lost;
        if let Some(spare) = self.case.nodes[region].spare {
            let spares: Vec<usize> = self.spares(region).into_iter().collect();
            for node in &spares {
                self.settle(*node, lost);
            }
            if let End::Rows(at) = self.ends[spare] {
                return tell(self, at, late, format!("node {}", self.case.nodes[spare].id));
            }
            let lost_spare = spares
                .iter()
                .find(|node| matches!(self.ends[**node], End::Lost) && self.spans[**node].is_some());
            let Some(&node) = lost_spare else { return self.ends[region] = End::Never };
            let (when, reason) = self.lost_at(node).expect("it was begun");
            at = when;
            let waited =
                if reason == Reason::Shed { Duration::ZERO } else { when - self.spans[node].unwrap().begin };
            late.push((self.case.nodes[node].id.clone(), reason, waited));
        }
        if let Some(sure) = self.case.nodes[region].sure {
            return tell(self, at, late, sure.to_owned());
        }
        if self.is_saved(region) {
            self.ends[region] = End::Lost;
        } else {
            self.fatal.push((at, self.case.nodes[region].id.clone(), region));
            self.ends[region] = End::Never;
        }
    }

    fn verdict(self) -> CaseOutcome {
        let deadline = self.case.deadline;
        if let Some((at, node, _)) = self.fatal.first() {
            return CaseOutcome::Failed { at: *at, node: node.clone() };
        }
        match self.ends.last().unwrap() {
            End::Rows(at) if *at <= deadline => {
                let at = *at;
                let mut ledger: Vec<ExpectedEntry> = self.ledger.into_iter().map(|(.., told)| told).collect();
                ledger.sort();
                CaseOutcome::Answer { at, ledger }
            }
            _ => {
                let running = |node: &usize| {
                    let Some(Span { begin, end, .. }) = self.spans[*node] else { return false };
                    let over = match self.ends[*node] {
                        End::Rows(at) => at < deadline,
                        End::Lost => true,
                        End::Never => end.is_some_and(|end| end < deadline),
                    };
                    begin < deadline && !over
                };
                let nodes = (0..self.case.nodes.len()).filter(running);
                let mut nodes: Vec<String> = nodes.map(|node| self.case.nodes[node].id.clone()).collect();
                nodes.sort();
                CaseOutcome::Late { nodes }
            }
        }
    }
}
