//! Shows the progress of a build on a server, from the events of its run.

use std::io::{self, IsTerminal as _, Write as _};

use anabranch_text::{Plain, duration, money};
use serde_json::Value;

use crate::out;

/// The seconds between two lines of a log.
const LOG_EVERY: f64 = 5.0;

/// One line about a build: in place on a terminal, else every few seconds. It is cleared on drop.
pub(super) struct RemoteDisplay {
    is_terminal: bool,
    /// The time of the last line, in seconds since the start of the build.
    last: f64,
}

impl RemoteDisplay {
    pub(super) fn new() -> RemoteDisplay {
        RemoteDisplay { is_terminal: io::stderr().is_terminal(), last: 0.0 }
    }

    /// Shows a progress event.
    pub(super) fn update(&mut self, progress: &Value) {
        let line = line(progress);
        if self.is_terminal {
            write(&format!("\r\x1b[K{}", Plain(&line)));
            return;
        }
        let elapsed = progress["elapsed_seconds"].as_f64().unwrap_or_default();
        // The time of a continued build starts again.
        if elapsed < self.last || elapsed - self.last >= LOG_EVERY {
            self.last = elapsed;
            out::note(&line);
        }
    }
}

impl Drop for RemoteDisplay {
    fn drop(&mut self) {
        if self.is_terminal {
            write("\r\x1b[K");
        }
    }
}

/// Errors are ignored, because progress is not data.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// `2005 of 10000 rows, 711 cells/s, 5 failed, $0.42, 40 s left`
fn line(progress: &Value) -> String {
    let number = |name: &str| progress[name].as_u64().unwrap_or_default();
    let columns = || progress["columns"].as_array().into_iter().flatten();
    let rate: f64 =
        columns().filter_map(|column| column["cells_per_second"].as_f64()).fold(0.0, |all, one| all + one);
    let failed: u64 = columns().filter_map(|column| column["failed"].as_u64()).sum();
    let mut parts = vec![format!("{} of {} rows", number("rows_done"), number("rows"))];
    parts.push(format!("{rate:.0} cells/s"));
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    if let Some(cost) = progress["cost"].as_f64().filter(|cost| *cost > 0.0) {
        parts.push(money::format(cost));
    }
    if let Some(left) = progress["left_seconds"].as_f64() {
        let left = std::time::Duration::try_from_secs_f64(left.ceil()).unwrap_or_default();
        parts.push(format!("{} left", duration::format(left)));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::line;

    #[test]
    fn a_line_has_what_there_is() {
        let progress = json!({
            "rows_done": 2005, "rows": 10000, "cost": 0.42, "left_seconds": 39.4,
            "columns": [{"cells_per_second": 700.4, "failed": 5}, {"cells_per_second": 10.2, "failed": 0}],
        });
        assert_eq!(line(&progress), "2005 of 10000 rows, 711 cells/s, 5 failed, $0.42, 40 s left");
        assert_eq!(line(&json!({"rows_done": 1, "rows": 2})), "1 of 2 rows, 0 cells/s");
    }
}
