//! Rows of several replies as one.

use std::sync::Arc;

use anabranch_rows::Column;
use smallvec::SmallVec;

use super::share::Pick;
use super::{Data, Lists};

/// The picked rows, in order; empty rows for missing picks. There is at least one reply, and all are of one kind.
pub(super) fn merge(replies: &[Arc<Data>], picks: &[Option<Pick>]) -> Data {
    if let Some(whole) = whole(replies, picks) {
        return whole.clone();
    }
    match &*replies[0] {
        Data::Lists(_) => Data::Lists(lists(replies, picks)),
        Data::Columns(first) => {
            Data::Columns((0..first.len()).map(|at| column(replies, at, picks)).collect())
        }
    }
}

/// The reply that is picked just as it is.
fn whole<'a>(replies: &'a [Arc<Data>], picks: &[Option<Pick>]) -> Option<&'a Data> {
    let reply = picks.first().copied().flatten()?.reply;
    let data = &*replies[reply as usize];
    let rows = match data {
        Data::Lists(lists) => lists.lens.len(),
        // Without a column it has no rows to pick from.
        Data::Columns(columns) => columns.first().map_or(picks.len(), Column::len),
    };
    let next = |(row, pick): (usize, &Option<Pick>)| {
        pick.is_some_and(|pick| pick.reply == reply && pick.row as usize == row)
    };
    (rows == picks.len() && picks.iter().enumerate().all(next)).then_some(data)
}

fn lists(replies: &[Arc<Data>], picks: &[Option<Pick>]) -> Lists {
    let parts: Vec<(&Lists, Vec<usize>)> = replies
        .iter()
        .map(|reply| {
            let Data::Lists(lists) = &**reply else { unreachable!("replies of one kind") };
            let ends = lists.lens.iter().scan(0, |end, len| {
                *end += *len as usize;
                Some(*end)
            });
            (lists, ends.collect())
        })
        .collect();
    let scored = parts.iter().any(|(lists, _)| lists.scores.is_some());
    let mut merged = Lists { scores: scored.then(Vec::new), ..Lists::default() };
    for pick in picks {
        let Some(pick) = pick else {
            merged.lens.push(0);
            continue;
        };
        let (lists, ends) = &parts[pick.reply as usize];
        let (len, end) = (lists.lens[pick.row as usize], ends[pick.row as usize]);
        let range = end - len as usize..end;
        merged.lens.push(len);
        merged.ids.extend_from_slice(&lists.ids[range.clone()]);
        if let (Some(to), Some(from)) = (&mut merged.scores, &lists.scores) {
            to.extend_from_slice(&from[range]);
        }
    }
    merged
}

/// The picked rows of the column at one place of each reply.
fn column(replies: &[Arc<Data>], at: usize, picks: &[Option<Pick>]) -> Column {
    let columns = replies.iter().map(|reply| match &**reply {
        Data::Columns(columns) => &columns[at],
        Data::Lists(_) => unreachable!("replies of one kind"),
    });
    let picked = picks.iter().map(|pick| pick.map(|pick| (pick.reply as usize, pick.row as usize)));
    Column::gather_from(&columns.collect::<SmallVec<[&Column; 8]>>(), picked)
}
