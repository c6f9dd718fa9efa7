//! The aims of builds, each with its measurement.

use super::case::{Case, Contender, Turn, Turns};
use crate::report::{Report, row};

/// CPU per call, times that of the plain client.
const CPU_TIMES_BARE: f64 = 2.5;
/// CPU per call, times less than DataDesigner's.
const CPU_TIMES_LESS: f64 = 30.0;
const PEAK_MB: f64 = 150.0;

/// Promises measured so far.
#[derive(Default)]
pub(super) struct Aims {
    rows: Vec<Vec<String>>,
    /// The peak with fewer rows, in MB.
    peak: Option<(u64, f64)>,
}

impl Aims {
    fn add(&mut self, aim: &str, case: &Case, measured: String, met: bool) {
        let met = if met { "yes" } else { "NO" };
        self.rows.push(vec![aim.to_owned(), case.title(), measured, met.to_owned()]);
    }

    /// Notes the promises of a case.
    pub(super) fn note(&mut self, case: &Case, all: &[Turns]) {
        let find = |contender| all.iter().find(|turns| turns.contender == contender);
        let (Some(bare), Some(ours)) = (find(Contender::Bare), find(Contender::Ours)) else { return };
        if let Some(designer) = find(Contender::DataDesigner) {
            let less = 1.0 / ours.ratio(designer, Turn::cpu_per_call);
            let aim = format!("CPU per call at least {CPU_TIMES_LESS} times less than data-designer's");
            self.add(&aim, case, format!("{less:.0} times less"), less >= CPU_TIMES_LESS);
        }
        match case.limit {
            Some(_) => self.note_limited(case, ours),
            None => self.note_plain(case, bare, ours),
        }
        if let Some(without) = find(Contender::NoJournal) {
            self.note_journal(case, ours, without);
        }
    }

    fn note_plain(&mut self, case: &Case, bare: &Turns, ours: &Turns) {
        let times = ours.ratio(bare, Turn::cpu_per_call);
        let aim = format!("CPU per call at most {CPU_TIMES_BARE} times the plain client's");
        self.add(&aim, case, format!("{times:.2} times"), times <= CPU_TIMES_BARE);
        let wall = ours.ratio(bare, |turn| turn.work.wall);
        if (case.latency_ms, case.parallel) == (20, 256) {
            self.add("wall within 20% of the plain client's", case, percent(wall), wall <= 1.2);
        }
        if (case.latency_ms, case.parallel) == (0, 256) {
            let peak = ours.median(|turn| turn.work.peak);
            self.peak = Some((case.rows, peak));
            self.add("peak memory under 150 MB", case, format!("{peak:.0} MB"), peak < PEAK_MB);
        }
    }

    fn note_limited(&mut self, case: &Case, ours: &Turns) {
        let rows = ours.turns.iter().map(|turn| turn.work.rows).min().unwrap_or(0);
        self.add("429s lose no row", case, format!("{} lost", case.rows - rows), rows == case.rows);
        let extra = ours.median(Turn::extra);
        self.add("429s cost at most 3% extra calls", case, format!("{extra:.1}%"), extra <= 3.0);
        let wall = ours.median(|turn| turn.work.wall) / case.ideal_wall();
        self.add("wall within 25% of the ideal", case, percent(wall), wall <= 1.25);
    }

    fn note_journal(&mut self, case: &Case, ours: &Turns, without: &Turns) {
        let cpu = ours.ratio(without, Turn::cpu_per_call);
        self.add("the journal costs at most 5% CPU", case, percent(cpu), cpu <= 1.05);
        let wall = ours.ratio(without, |turn| turn.work.wall);
        self.add("the journal costs at most 3% wall", case, percent(wall), wall <= 1.03);
    }

    /// Notes the turns of `ours` with many more rows.
    pub(super) fn note_many(&mut self, case: &Case, ours: &Turns) {
        let peak = ours.median(|turn| turn.work.peak);
        self.add("peak memory under 150 MB", case, format!("{peak:.0} MB"), peak < PEAK_MB);
        if let Some((rows, fewer)) = self.peak {
            let aim = format!("peak memory within 10% of that with {rows} rows");
            self.add(&aim, case, percent(peak / fewer), peak <= fewer * 1.1);
        }
    }

    pub(super) fn report(self, report: &mut Report) {
        report.say(format_args!("\n### Aims\n"));
        let rows: Vec<_> = [row(["aim", "case", "measured", "met?"])].into_iter().chain(self.rows).collect();
        report.table(&rows);
    }
}

/// A ratio as what is more or less than one.
fn percent(ratio: f64) -> String {
    format!("{:+.1}%", (ratio - 1.0) * 100.0)
}
