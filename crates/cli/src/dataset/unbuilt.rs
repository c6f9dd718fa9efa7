//! The failures of builds, with advice.

use std::error::Error as StdError;
use std::io;
use std::path::Path;
use std::sync::Arc;

use anabranch_content::Error as StoreError;
use anabranch_dataset::{ColumnEdits, Error, JournalCause};
use anabranch_text::quote;

use crate::failure::Failure;
use anabranch_dataset_inspect::grouped;

/// The failure of a build into a folder, with advice.
pub(super) fn failure(error: Error, out: &Path) -> Failure {
    let out = out.display();
    if let Some(what) = full_disk(&error) {
        return Failure::of(format!(
            "{what}: the disk is full; free some space, then run the same command again to go on: \
             rows and replies that were saved are not paid for again"
        ));
    }
    match &error {
        Error::Inputs { differ, .. } if differ.iter().any(|name| name == "metadata.json") => {
            Failure::of(format!(
                "{out} holds files of a dataset without metadata.json, so nobody can tell what they were made from; \
             choose another folder, or let --replace remove them"
            ))
        }
        Error::Inputs { differ, columns, .. } => Failure::of(format!(
            "{out} holds a dataset that was made with {}; --replace builds it again: replies in the journal that still \
             fit are used again, and cost nothing (`anabranch dataset plan` tells the cost before); or choose another \
             folder",
            others(differ, columns)
        )),
        Error::FewerRows { rows, .. } => Failure::of(format!(
            "{out} holds a build of {rows} rows, which is more than --rows asks for; ask for at least {}, choose \
             another folder, or --replace: replies in the journal are used again, and cost nothing",
            grouped(*rows),
            rows = grouped(*rows),
        )),
        Error::File(file) if file.cause.kind() == io::ErrorKind::ResourceBusy => Failure::of(format!(
            "cannot build into {out}: {}; `anabranch dataset status {out}` shows how far it is",
            file.cause
        )),
        Error::Journal(journal) => match owner(&journal.cause) {
            Some(owner) => Failure::of(format!(
                "the journal {} is in use by {owner}; wait for that build, or give this one a journal of its own \
                 (--journal DIR)",
                journal.path.display()
            )),
            None => Failure::Failed(Box::new(Arc::clone(journal))),
        },
        _ => error.into(),
    }
}

/// The process that holds the store of a journal.
fn owner(cause: &JournalCause) -> Option<&str> {
    match cause {
        JournalCause::Store(store) => match &**store {
            StoreError::Owned { owner, .. } => Some(owner),
            _ => None,
        },
        JournalCause::File(_) => None,
    }
}

/// Formats differences: "another configuration (edited since: `a`; added: `b`) and another seed".
pub(super) fn others(differ: &[String], columns: &ColumnEdits) -> String {
    if differ.is_empty() && columns.unknown {
        return "an earlier version of anabranch".to_owned();
    }
    let is_plural =
        |name: &String| ["models", "columns", "run options"].contains(&&**name) || name.starts_with("files");
    let edits = edits(columns);
    // The names and types of columns differ because the configuration differs.
    let is_told = |name: &&String| *name != "columns" || edits.is_empty();
    let other = |name: &String| match name.as_str() {
        "configuration" if !edits.is_empty() => format!("another configuration (since then {edits})"),
        _ if is_plural(name) => format!("other {name}"),
        _ => format!("another {name}"),
    };
    differ.iter().filter(is_told).map(other).collect::<Vec<_>>().join(" and ")
}

/// Formats edits: "edited: `a`, `b`; renamed: `c` to `d`".
fn edits(columns: &ColumnEdits) -> String {
    let ColumnEdits { added, removed, renamed, edited, .. } = columns;
    let quoted = |names: &[String]| names.iter().map(|name| quote(name)).collect::<Vec<_>>();
    let renamed: Vec<String> =
        renamed.iter().map(|(old, new)| format!("{} to {}", quote(old), quote(new))).collect();
    let kinds = [
        ("edited", quoted(edited)),
        ("added", quoted(added)),
        ("removed", quoted(removed)),
        ("renamed", renamed),
    ];
    let told = kinds.iter().filter(|(_, names)| !names.is_empty());
    told.map(|(what, names)| format!("{what}: {}", listed(names))).collect::<Vec<_>>().join("; ")
}

/// The most column names in a message.
const LISTED: usize = 8;

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(LISTED);
    let shown = names[..names.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// The action that failed because the disk is full; `None` for other errors.
fn full_disk(error: &Error) -> Option<String> {
    let first: &(dyn StdError + 'static) = match error {
        Error::Journal(journal) => &**journal,
        error => error,
    };
    let mut next = Some(first);
    while let Some(found) = next {
        let cause = found
            .downcast_ref::<io::Error>()
            .or(found.downcast_ref::<Arc<io::Error>>().map(|cause| &**cause));
        if cause.is_some_and(|cause| {
            matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        }) {
            return Some(first.to_string());
        }
        next = found.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    use anabranch_dataset::JournalError;
    use anabranch_dataset::output::FileError;
    use expect_test::{Expect, expect};

    fn check(error: impl Into<Error>, expected: &Expect) {
        let Failure::Failed(failure) = failure(error.into(), Path::new("out")) else {
            panic!("it is one in words")
        };
        expected.assert_eq(&failure.to_string());
    }

    fn full() -> io::Error {
        io::Error::from(io::ErrorKind::StorageFull)
    }

    fn journal(cause: StoreError) -> Error {
        Error::from(JournalError { action: "write", path: "out/journal".into(), cause: cause.into() })
    }

    #[test]
    fn a_full_disk_is_named_wherever_it_is_met() {
        let file = FileError { action: "write", path: "out/metadata.json".into(), cause: full() };
        check(
            file,
            &expect![
                "cannot write out/metadata.json: the disk is full; free some space, then run the same command again to go on: rows and replies that were saved are not paid for again"
            ],
        );
        let disk = StoreError::Disk { doing: "write", path: "log/1".into(), cause: Arc::new(full()) };
        check(
            journal(StoreError::Broken(Box::new(disk))),
            &expect![
                "cannot write the journal out/journal: the log can no longer be written; close the store and open it again: the disk is full; free some space, then run the same command again to go on: rows and replies that were saved are not paid for again"
            ],
        );
    }

    #[test]
    fn the_owner_of_a_journal_is_named() {
        check(
            journal(StoreError::Owned { owner: "process 7".to_owned(), listens_on: None }),
            &expect![
                "the journal out/journal is in use by process 7; wait for that build, or give this one a journal of its own (--journal DIR)"
            ],
        );
    }

    #[test]
    fn other_inputs_are_listed() {
        let differ = ["configuration", "models", "seed"].map(str::to_owned).to_vec();
        let refused =
            |differ, columns| Error::Inputs { path: "out".into(), differ, columns: Box::new(columns) };
        check(
            refused(differ, ColumnEdits::default()),
            &expect![
                "out holds a dataset that was made with another configuration and other models and another seed; --replace builds it again: replies in the journal that still fit are used again, and cost nothing (`anabranch dataset plan` tells the cost before); or choose another folder"
            ],
        );
        let differ = ["columns", "configuration"].map(str::to_owned).to_vec();
        let columns = ColumnEdits {
            added: (0..10).map(|number| format!("c{number}")).collect(),
            renamed: vec![("old".to_owned(), "new".to_owned())],
            edited: vec!["poem".to_owned(), "riddle".to_owned()],
            ..ColumnEdits::default()
        };
        check(
            refused(differ, columns),
            &expect![
                "out holds a dataset that was made with another configuration (since then edited: `poem`, `riddle`; added: `c0`, `c1`, `c2`, `c3`, `c4`, `c5`, `c6`, `c7` and 2 more; renamed: `old` to `new`); --replace builds it again: replies in the journal that still fit are used again, and cost nothing (`anabranch dataset plan` tells the cost before); or choose another folder"
            ],
        );
        let unknown = ColumnEdits { unknown: true, ..ColumnEdits::default() };
        check(
            refused(Vec::new(), unknown),
            &expect![
                "out holds a dataset that was made with an earlier version of anabranch; --replace builds it again: replies in the journal that still fit are used again, and cost nothing (`anabranch dataset plan` tells the cost before); or choose another folder"
            ],
        );
        check(
            Error::FewerRows { path: "out".into(), rows: 3_000 },
            &expect![
                "out holds a build of 3,000 rows, which is more than --rows asks for; ask for at least 3,000, choose another folder, or --replace: replies in the journal are used again, and cost nothing"
            ],
        );
    }
}
