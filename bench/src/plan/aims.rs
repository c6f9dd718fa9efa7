//! What plans promise, each promise with its measurement.

use crate::report::{Report, row};

/// Promises measured so far.
#[derive(Default)]
pub(crate) struct Aims(Vec<Vec<String>>);

impl Aims {
    pub(crate) fn add(&mut self, aim: &str, measured: impl Into<String>, met: bool) {
        self.0.push(vec![aim.to_owned(), measured.into(), if met { "yes" } else { "NO" }.to_owned()]);
    }

    pub(crate) fn report(self, report: &mut Report) {
        report.heading("Aims");
        let rows: Vec<_> = [row(["aim", "measured", "met?"])].into_iter().chain(self.0).collect();
        report.table(&rows);
    }
}
