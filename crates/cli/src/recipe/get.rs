//! `anabranch recipe get`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_text::{count, duration, size};
use clap::Args;
use futures_util::future::{Either, select};

use super::at::{At, Missing};
use super::backend::Backend;
use super::got::Got;
use super::pour::Sink;
use super::progress::{Computing, Meter, TICK};
use super::show;
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
stdout: the bytes of the value, unchanged. With --output they go to a file, which appears once it is
complete, and stderr says whether the value was computed.

  anabranch recipe get page
  anabranch recipe get page --range 0..1024 -o beginning.bin

Exit codes: 0 written; 1 not found, failed, or not in time; 2 wrong usage; 3 written, but data that
had been acknowledged was lost (the log says what).";

/// Writes a value.
#[derive(Args)]
pub(crate) struct Get {
    /// An address, the first 6 or more digits of one, or a name.
    #[arg(value_name = "TARGET")]
    target: String,
    /// The file to write; stdout if not given.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only these bytes: FIRST..END, either may be left out.
    #[arg(long, value_name = "A..B", value_parser = range, default_value = "..", hide_default_value = true)]
    range: Range<u64>,
    /// The most time that it may take: 500ms, 2s.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
    #[command(flatten)]
    at: At,
    /// The value's source, address and size, as JSON on stdout; for use with --output.
    #[arg(long, requires = "output")]
    json: bool,
}

impl Get {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.json && self.output.as_deref() == Some(Path::new("-")) {
            return Err(Failure::Wrong("--json and the value cannot both go to stdout".to_owned()));
        }
        self.at.run_until("stopped; values that were computed are kept", Missing::Refuse, async |backend| {
            let began = SystemClock.now();
            let address = backend.find(&self.target).await?;
            // Before anything is computed: if it cannot be written, that is soon enough to say so.
            let sink = Sink::to(self.output.as_deref())?;
            let get = backend.get(address, self.range.clone(), self.timeout);
            let mut got = match Computing::new() {
                None => get.await?,
                Some(progress) => watched(backend, get, progress).await?,
            };
            let written = write(&mut got, sink, &self.range).await?;
            let took = SystemClock.now() - began;
            if self.json {
                let mut json = show::source_json(got.source);
                json["output"] = got.output.to_string().into();
                json["size"] = got.size.into();
                json["written"] = written.into();
                if got.cut_off > 0 {
                    json["cut_off"] = got.cut_off.into();
                }
                json["micros"] = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).into();
                return show::json(&json);
            }
            if self.output.is_some() {
                let (size, source) = (size::format(written), show::source(got.source));
                let cut_off = match got.cut_off {
                    0 => String::new(),
                    recipes => format!(" ({} had equal inputs before)", count(recipes, "more recipe")),
                };
                out::note(&format!("{size}, {source}{cut_off}, in {}", duration::format(took)));
            }
            Ok(())
        })
    }
}

/// Waits for a value and shows meanwhile what is computed.
async fn watched<'a>(
    backend: &Backend,
    get: impl Future<Output = Result<Got<'a>, Failure>>,
    mut progress: Computing,
) -> Result<Got<'a>, Failure> {
    let Ok(mut ear) = backend.listen().await else { return get.await };
    let mut get = Box::pin(get);
    loop {
        let tick = SystemClock.sleep_until(SystemClock.now() + TICK);
        match select(get, select(Box::pin(ear.next()), tick)).await {
            Either::Left((got, _)) => return got,
            Either::Right((Either::Left((Some(heard), _)), unfinished)) => {
                progress.heard(&heard);
                get = unfinished;
            }
            Either::Right((Either::Left((None, _)), unfinished)) => return unfinished.await,
            Either::Right((Either::Right(_), unfinished)) => {
                progress.draw();
                get = unfinished;
            }
        }
    }
}

async fn write(got: &mut Got<'_>, mut sink: Sink, range: &Range<u64>) -> Result<u64, Failure> {
    let wanted = range.end.min(got.size).saturating_sub(range.start);
    let mut meter = Meter::new("writing", Some(wanted));
    let mut written = 0;
    while let Some(piece) = got.next().await? {
        sink.write(&piece)?;
        written += piece.len() as u64;
        meter.add(piece.len());
    }
    drop(meter);
    sink.finish()?;
    Ok(written)
}

/// `A..B`, `A..`, `..B` or `..`.
fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || "a range looks like 0..1024, 100.. or ..100".to_owned();
    let (first, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str, otherwise| match text {
        "" => Ok(otherwise),
        text => text.parse().map_err(|_| wrong()),
    };
    let range = number(first, 0)?..number(end, u64::MAX)?;
    if range.start <= range.end { Ok(range) } else { Err(format!("{} is behind {}", range.start, range.end)) }
}
