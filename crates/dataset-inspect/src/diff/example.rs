//! A changed cell, cut to where it changed.

use anabranch_value::Value;
use serde::Serialize;

/// A cell that is different in the two datasets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CellChange {
    /// The row's stable number; `None` of a row that a processor added.
    pub id: Option<u64>,
    /// The number, or the path of a row that was made from another one: `17.3`.
    pub row: Option<String>,
    /// Text, or JSON; long ones are cut to the part that begins to differ.
    pub before: String,
    pub after: String,
}

/// Characters that are shown, and those of them before the first difference.
const SHOWN: usize = 160;
const BEFORE: usize = 30;

impl CellChange {
    pub(super) fn new(id: Option<u64>, before: &Value, after: &Value) -> CellChange {
        let [before, after] = [before, after].map(|value| match value {
            Value::Text(text) => text.to_string(),
            other => other.to_json(),
        });
        let same = before.chars().zip(after.chars()).take_while(|(old, new)| old == new).count();
        let from = if same > BEFORE * 2 { same - BEFORE } else { 0 };
        let row = id.map(|id| id.to_string());
        CellChange { id, row, before: cut(&before, from), after: cut(&after, from) }
    }
}

fn cut(text: &str, from: usize) -> String {
    let start = if from > 0 { "…" } else { "" };
    let mut rest = text.chars().skip(from);
    let shown: String = rest.by_ref().take(SHOWN).collect();
    let end = if rest.next().is_some() { "…" } else { "" };
    format!("{start}{shown}{end}")
}

#[cfg(test)]
mod tests {
    use super::CellChange;

    #[test]
    fn a_long_text_is_cut_to_its_change() {
        let same = "ä".repeat(100);
        let found =
            CellChange::new(Some(7), &format!("{same}old").into(), &format!("{same}new{same}{same}").into());
        assert_eq!(found.before, format!("…{}old", "ä".repeat(30)));
        assert_eq!(found.after, format!("…{}new{}…", "ä".repeat(30), "ä".repeat(127)));
        let found = CellChange::new(None, &1.into(), &true.into());
        assert_eq!((found.before.as_str(), found.after.as_str()), ("1", "true"));
    }
}
