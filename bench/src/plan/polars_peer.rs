//! The plans that compute, by polars; in a process of its own, since its threads are set once for a process.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use polars::prelude::{
    ChunkCompareIneq, Column, DataFrame, IntoColumn as _, IntoLazy as _, LazyFrame, NamedFrom as _,
    PolarsResult, Series, SortMultipleOptions, col, lit,
};

use super::cpu::{Work, digest};
use super::plans::{KEPT, LISTED, WEIGHT};
use super::turns::repeat;
use crate::watch::Share;

/// The argument that makes this program a peer.
pub(crate) const ARGUMENT: &str = "polars-peer";

/// How polars is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// A query, planned and carried out each time; written down once.
    Lazy,
    /// Operations on columns, one after the other.
    Eager,
}

impl Style {
    fn name(self) -> &'static str {
        match self {
            Style::Lazy => "lazy",
            Style::Eager => "eager",
        }
    }
}

/// A process that has polars compute.
pub(super) struct Peer {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What polars computed, and how fast.
pub(super) struct Computed {
    pub(super) share: Share,
    pub(super) digest: u64,
}

impl Peer {
    /// A peer with so many threads, or as many as polars likes.
    pub(super) fn start(threads: Option<usize>) -> io::Result<Peer> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(threads) = threads {
            command.env("POLARS_MAX_THREADS", threads.to_string());
        }
        let mut child = command.spawn()?;
        let (ask, answers) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Ok(Peer { child, ask, answers: BufReader::new(answers) })
    }

    /// Computes again and again for so long.
    pub(super) fn turn(&mut self, work: Work, style: Style, window: Duration) -> io::Result<Computed> {
        writeln!(self.ask, "{} {} {}", work.name(), style.name(), window.as_micros())?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let strange = || io::Error::other(format!("the peer answers `{}`", line.trim()));
        let [wall, cpu, digest] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(strange());
        };
        let number = |text: &str| text.parse::<f64>().map_err(|_| strange());
        let share = Share { wall: number(wall)?, cpu: number(cpu)? };
        Ok(Computed { share, digest: digest.parse().map_err(|_| strange())? })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It computes on request only; there is nothing to lose.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Is a peer: computes as the lines of stdin say, until they end.
pub(crate) fn be_a_peer() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    for line in io::stdin().lines() {
        let line = line?;
        let strange = || io::Error::other(format!("nobody asks `{line}`"));
        let [work, style, micros] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(strange());
        };
        let work = Work::named(work).ok_or_else(strange)?;
        let window = Duration::from_micros(micros.parse().map_err(|_| strange())?);
        let frame = frame(work.rows()).map_err(io::Error::other)?;
        let query = match work {
            Work::Pipeline(_) => lazy_pipeline(&frame),
            Work::Expr(_) => lazy_expr(&frame),
        };
        let compute = || match (style, work) {
            ("lazy", _) => query.clone().collect(),
            (_, Work::Pipeline(_)) => eager_pipeline(&frame),
            (_, Work::Expr(_)) => eager_expr(&frame),
        };
        let digest = digest(rows(&compute().map_err(io::Error::other)?).map_err(io::Error::other)?);
        let share = runtime.block_on(repeat(window, async || {
            drop(std::hint::black_box(compute().expect("it did so before")));
        }));
        println!("{} {} {digest}", share.wall, share.cpu);
    }
    Ok(())
}

fn frame(rows: usize) -> PolarsResult<DataFrame> {
    let ids: Vec<i64> = (1..=rows as i64).collect();
    DataFrame::new(rows, vec![Series::new("id".into(), ids).into_column()])
}

fn rows(frame: &DataFrame) -> PolarsResult<Vec<(i64, f64)>> {
    let (ids, scores) = (frame.column("id")?.i64()?, frame.column("score")?.f64()?);
    Ok(ids.into_no_null_iter().zip(scores.into_no_null_iter()).collect())
}

fn falling() -> SortMultipleOptions {
    SortMultipleOptions::new().with_order_descending(true).with_nulls_last(true)
}

fn lazy_pipeline(frame: &DataFrame) -> LazyFrame {
    let score = (col("id").cast(polars::prelude::DataType::Float64) * lit(WEIGHT)).alias("score");
    let good = frame.clone().lazy().with_column(score).filter(col("score").gt_eq(lit(0.6)));
    good.sort(["score"], falling()).limit(KEPT as u32)
}

fn eager_pipeline(frame: &DataFrame) -> PolarsResult<DataFrame> {
    let ids = frame.column("id")?.cast(&polars::prelude::DataType::Float64)?;
    let score = ids.f64()? * WEIGHT;
    let good = score.gt_eq(0.6);
    let mut scored = frame.clone();
    scored.with_column(score.into_column().with_name("score".into()))?;
    let scored = scored.filter(&good)?;
    let by: Vec<Column> = vec![scored.column("score")?.clone()];
    scored.sort_impl(by, falling(), Some((0, KEPT)))
}

fn lazy_expr(frame: &DataFrame) -> LazyFrame {
    let x = || col("id").cast(polars::prelude::DataType::Float64);
    let score = x() * lit(0.5) + (x() * lit(WEIGHT) - (lit(0.0) - (x() + lit(3.0))));
    let scored = frame.clone().lazy().with_column(score.alias("score"));
    let listed = col("id").is_in(lit(Series::new("listed".into(), LISTED)).implode(false), false);
    scored.filter(col("score").gt(lit(100.0)).or(listed).and(col("score").neq(lit(7.0))))
}

fn eager_expr(frame: &DataFrame) -> PolarsResult<DataFrame> {
    let ids = frame.column("id")?;
    let x = ids.cast(&polars::prelude::DataType::Float64)?;
    let x = x.f64()?;
    let score = &(x * 0.5) + &(&(x * WEIGHT) - &((x + 3.0) * -1.0));
    let listed = ids.i64()?.clone();
    let listed = LISTED.iter().map(|id| {
        use polars::prelude::ChunkCompareEq as _;
        listed.equal(*id)
    });
    let listed = listed.reduce(|one, other| one | other).expect("some are listed");
    let good = (score.gt(100.0) | listed) & {
        use polars::prelude::ChunkCompareEq as _;
        score.not_equal(7.0)
    };
    let mut scored = frame.clone();
    scored.with_column(score.into_column().with_name("score".into()))?;
    scored.filter(&good)
}
