//! A look at datasets: the pace of a build, reports, differences, and the story of one row.

mod sketch;
mod column;
mod number;
mod row_names;
pub mod live;
mod report;
mod why;
mod html;
mod diff;

pub use column::{ColumnStats, Distribution, Estimate, Histogram, Measure, TopValue};
pub use diff::{
    CellChange, ColumnDifference, CountChange, Difference, RowName, RowsDifference, SectionDifference,
    Setting, SpendChange,
};
pub use number::{grouped, money, percent, short};
pub use report::{
    BuildSpend, ColumnSpent, ErrorExample, ErrorGroup, ErrorSummary, GroupWritten, LimitPoint,
    PlanComparison, ProgressPoint, Report, Sample, Section, Timeline,
};
pub use why::{BuiltFrom, NotARow, RowPath, RowPlace, RowStory, StageStory, StepStory};
