//! Rows of several replies as one.

use std::sync::Arc;

use anabranch_rows::{Column, Interner, Text};
use arrow_array::{BooleanArray, Float64Array, Int32Array, Int64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use super::share::Pick;
use super::{Data, Lists};

/// The rows picked, in order; nothing where there is no pick. At least one reply is there, and all are of one kind.
pub(super) fn merge(replies: &[Arc<Data>], picks: &[Option<Pick>]) -> Data {
    if let Some(whole) = whole(replies, picks) {
        return whole.clone();
    }
    match &*replies[0] {
        Data::Lists(_) => Data::Lists(lists(replies, picks)),
        Data::Columns(first) => {
            Data::Columns((0..first.len()).map(|at| column(&Columns { replies, at }, picks)).collect())
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

/// The column at one place of each reply.
struct Columns<'a> {
    replies: &'a [Arc<Data>],
    at: usize,
}

impl Columns<'_> {
    fn of(&self, pick: Pick) -> (&Column, usize) {
        let Data::Columns(columns) = &*self.replies[pick.reply as usize] else {
            unreachable!("replies of one kind")
        };
        (&columns[self.at], pick.row as usize)
    }
}

fn column(columns: &Columns<'_>, picks: &[Option<Pick>]) -> Column {
    let (first, _) = columns.of(Pick { reply: 0, row: 0 });
    let valid = |pick: &Option<Pick>| {
        pick.is_some_and(|pick| {
            let (column, row) = columns.of(pick);
            !column.is_null(row)
        })
    };
    let nulls: NullBuffer = picks.iter().map(valid).collect();
    let nulls = (nulls.null_count() > 0).then_some(nulls);
    let picked = picks.iter().map(|pick| pick.map(|pick| columns.of(pick)));
    macro_rules! values {
        ($kind:ident) => {
            picked
                .map(|pick| match pick {
                    Some((Column::$kind(values), row)) => values.value(row),
                    _ => Default::default(),
                })
                .collect::<Vec<_>>()
        };
    }
    match first {
        Column::Int(_) => Column::Int(Int64Array::new(values!(Int).into(), nulls)),
        Column::Float(_) => Column::Float(Float64Array::new(values!(Float).into(), nulls)),
        Column::Bool(_) => Column::Bool(BooleanArray::new(BooleanBuffer::from(values!(Bool)), nulls)),
        Column::Text(text) => {
            let one = picked.clone().flatten().all(
                |(column, _)| matches!(column, Column::Text(other) if other.dictionary().ptr_eq(text.dictionary())),
            );
            let mut interner = Interner::default();
            let codes = picked.map(|pick| match pick {
                Some((Column::Text(text), row)) if one => text.codes().value(row),
                Some((Column::Text(text), row)) => text.get(row).map_or(0, |text| interner.intern(text)),
                _ => 0,
            });
            let codes = Int32Array::new(codes.collect::<Vec<_>>().into(), nulls);
            let dictionary = if one { text.dictionary().clone() } else { interner.finish() };
            Column::Text(Text::new(codes, dictionary))
        }
    }
}
