//! `anabranch dataset preview`.

use anabranch_text::count;
use clap::Args;

use super::record::Records;
use super::report;
use super::sources::{GenerateOptions, aliases, engine, runtime};
use crate::failure::Failure;
use crate::{out, serve, wait};

/// The end of the help text.
pub(super) const HELP: &str = "\
A preview generates its rows as a build does, in one row group, and writes no file. The same seed
gives the rows that a build starts with.

stdout: the records, or with --json one JSON object per row. stderr: failed cells and everything
else.

  anabranch dataset preview tickets.yaml --demo
  anabranch dataset preview tickets.yaml --models models.yaml --rows 2 --json

Exit codes: 0 fine, also if some rows were dropped; 1 refused or failed (stderr says why); 2 wrong
usage.";

/// Shows a few rows.
#[derive(Args)]
pub(crate) struct Preview {
    #[command(flatten)]
    generated: GenerateOptions,
    /// The number of rows, at most 10000.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rows: u64,
    /// One JSON object per row.
    #[arg(long)]
    json: bool,
}

impl Preview {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let loaded = self.generated.load()?;
        wait::on(&runtime()?, Box::pin(self.show(loaded)))
    }

    async fn show(&self, loaded: anabranch_dataset::LoadedConfig) -> Result<(), Failure> {
        let engine = engine()?;
        let stopped = serve::stopped()?;
        let build = self.generated.dataset(&loaded, &engine)?.preview(self.rows)?;
        let preview = tokio::select! {
            preview = build.preview() => preview?,
            () = stopped => return Err(Failure::of("the preview was stopped")),
        };
        if self.json {
            let lines = (0..preview.rows.ids.len()).map(|row| preview.rows.row(row).to_json() + "\n");
            out::data(&lines.collect::<String>())?;
        } else {
            let mut records = Records::for_stdout();
            (0..preview.rows.ids.len())
                .for_each(|row| records.row(&preview.rows, preview.dropped.as_ref(), row));
            out::data(&records.finish())?;
        }
        for (name, table) in &preview.processed {
            if let Some(first) = (!table.ids.is_empty()).then(|| table.row(0).to_json()) {
                out::note(&format!("processor `{name}` writes beside the rows: {first}"));
            }
        }
        for error in &preview.errors {
            out::note(&report::error_line(error));
        }
        if self.generated.demo && !aliases(&loaded).is_empty() {
            out::note("the demo model wrote the texts: they are made up");
        }
        if preview.rejected > 0 {
            out::note(&format!("{} of {} were not accepted", preview.rejected, count(self.rows, "row")));
        }
        match preview.rows.ids.len() as u64 {
            _ if loaded.config.stages.len() > 1 || preview.rejected > 0 => Ok(()),
            0 => Err(Failure::of("no row was left: in each one a cell failed")),
            rows if rows < self.rows => {
                out::note(&format!("{} of {} were dropped", self.rows - rows, count(self.rows, "row")));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
