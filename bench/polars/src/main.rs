//! Computes with polars what lines on stdin ask for: `pipeline|expr ROWS lazy|eager MICROSECONDS`.
//!
//! Each is answered with a line: the nanoseconds of one computation, wall and CPU time of all threads, when it is
//! repeated for so long; and a digest of its rows. Expressions, predicates and the digest are those of the bench, which
//! compares the digests.

#![allow(clippy::print_stdout, reason = "answers on stdout")]
#![allow(clippy::disallowed_methods, reason = "measures the real clock")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use polars::prelude::{
    BooleanChunked, ChunkCompareEq as _, ChunkCompareIneq as _, DataFrame, DataType, IntoColumn as _,
    IntoLazy as _, LazyFrame, NamedFrom as _, PolarsResult, Series, SortMultipleOptions, col, lit,
};
use rustix::time::{ClockId, clock_gettime};

type Fault = Box<dyn std::error::Error>;

fn main() -> Result<(), Fault> {
    for line in std::io::stdin().lines() {
        println!("{}", answer(&line?)?);
    }
    Ok(())
}

fn answer(line: &str) -> Result<String, Fault> {
    let [work, rows, style, micros] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(format!("not four words: {line}").into());
    };
    let frame = frame(rows.parse()?)?;
    let window = Duration::from_micros(micros.parse()?);
    match (work, style) {
        ("pipeline", "eager") => measure(window, || eager_pipeline(&frame)),
        ("expr", "eager") => measure(window, || eager_expr(&frame)),
        ("pipeline", "lazy") => {
            let query = lazy_pipeline(&frame);
            measure(window, || query.clone().collect())
        }
        ("expr", "lazy") => {
            let query = lazy_expr(&frame);
            measure(window, || query.clone().collect())
        }
        _ => Err(format!("no such work: {line}").into()),
    }
}

fn measure(window: Duration, compute: impl Fn() -> PolarsResult<DataFrame>) -> Result<String, Fault> {
    let digest = digest(&compute()?)?;
    let began = Instant::now();
    black_box(read_out(&compute()?)?);
    let runs = (window.as_nanos() / began.elapsed().as_nanos().max(1)).clamp(1, 1_000_000) as u32;
    let (began, cpu) = (Instant::now(), cpu_time());
    for _ in 0..runs {
        black_box(read_out(&compute()?)?);
    }
    let (wall, cpu) = (began.elapsed(), cpu_time() - cpu);
    let share = |time: Duration| time.as_nanos() as f64 / f64::from(runs);
    Ok(format!("{} {} {digest}", share(wall), share(cpu)))
}

fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("a process's CPU time is not negative")
}

/// Looks at every id and score once: an answer is there to be read.
fn read_out(frame: &DataFrame) -> PolarsResult<u64> {
    let (ids, scores) = (frame.column("id")?.i64()?, frame.column("score")?.f64()?);
    let rows = ids.into_no_null_iter().zip(scores.into_no_null_iter());
    Ok(rows.fold(0, |sum: u64, (id, score)| sum.wrapping_add(id as u64).wrapping_add(score.to_bits())))
}

fn digest(frame: &DataFrame) -> PolarsResult<u64> {
    let (ids, scores) = (frame.column("id")?.i64()?, frame.column("score")?.f64()?);
    let rows = ids.into_no_null_iter().zip(scores.into_no_null_iter());
    let add = |sum: u64, part: u64| (sum ^ part).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    Ok(rows.fold(0xcbf2_9ce4_8422_2325, |sum, (id, score)| add(add(sum, id as u64), score.to_bits())))
}

/// Rows that a pipeline keeps.
const KEPT: usize = 50;
const WEIGHT: f64 = 0.2;
const LISTED: [i64; 7] = [1, 2, 3, 5, 8, 13, 21];

fn frame(rows: usize) -> PolarsResult<DataFrame> {
    let ids: Vec<i64> = (1..=rows as i64).collect();
    DataFrame::new(rows, vec![Series::new("id".into(), ids).into_column()])
}

fn falling() -> SortMultipleOptions {
    SortMultipleOptions::new().with_order_descending(true).with_nulls_last(true)
}

fn lazy_pipeline(frame: &DataFrame) -> LazyFrame {
    let score = (col("id").cast(DataType::Float64) * lit(WEIGHT)).alias("score");
    let good = frame.clone().lazy().with_column(score).filter(col("score").gt_eq(lit(0.6)));
    good.sort(["score"], falling()).limit(KEPT as u32)
}

fn eager_pipeline(frame: &DataFrame) -> PolarsResult<DataFrame> {
    let score = frame.column("id")?.cast(&DataType::Float64)?.f64()? * WEIGHT;
    let good = score.gt_eq(0.6);
    let mut scored = frame.clone();
    scored.with_column(score.into_column().with_name("score".into()))?;
    let scored = scored.filter(&good)?;
    let by = vec![scored.column("score")?.clone()];
    scored.sort_impl(by, falling(), Some((0, KEPT)))
}

fn lazy_expr(frame: &DataFrame) -> LazyFrame {
    let x = || col("id").cast(DataType::Float64);
    let score = x() * lit(0.5) + (x() * lit(WEIGHT) - (lit(0.0) - (x() + lit(3.0))));
    let scored = frame.clone().lazy().with_column(score.alias("score"));
    let listed = col("id").is_in(lit(Series::new("listed".into(), LISTED)).implode(false), false);
    scored.filter(col("score").gt(lit(100.0)).or(listed).and(col("score").neq(lit(7.0))))
}

fn eager_expr(frame: &DataFrame) -> PolarsResult<DataFrame> {
    let ids = frame.column("id")?.i64()?;
    let x = frame.column("id")?.cast(&DataType::Float64)?;
    let x = x.f64()?;
    let score = &(x * 0.5) + &(&(x * WEIGHT) - &((x + 3.0) * -1.0));
    let listed: Option<BooleanChunked> =
        LISTED.iter().map(|id| ids.equal(*id)).reduce(|one, other| one | other);
    let good = (score.gt(100.0) | listed.expect("some are listed")) & score.not_equal(7.0);
    let mut scored = frame.clone();
    scored.with_column(score.into_column().with_name("score".into()))?;
    scored.filter(&good)
}
