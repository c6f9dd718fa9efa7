//! The statistics of a column.

use anabranch_dataset::ColumnType;
use anabranch_dataset::output::type_name;
use anabranch_value::Value;
use serde::Serialize;

use crate::sketch::{Distinct, Frequent, Numbers, WeightedNumbers, digest};

/// The statistics of a column, or of a field of one.
#[derive(Clone, Debug, Serialize)]
pub struct ColumnStats {
    /// The name of the column; of a field, its name within the column, such as `accuracy.score`.
    pub name: String,
    #[serde(rename = "type")]
    pub column_type: String,
    pub cells: u64,
    pub nulls: u64,
    /// Different values, nulls not counted. Not given of lists and structs.
    pub distinct: Option<Estimate>,
    /// Cells that are true.
    pub trues: Option<u64>,
    /// Numbers, the lengths of texts in characters, or the lengths of lists.
    pub distribution: Option<Distribution>,
    /// The subject of the distribution.
    pub measure: Measure,
    /// Values that occur more than once, most frequent first.
    pub top: Vec<TopValue>,
    /// Counts of frequent values may be too low by this number.
    pub top_error: u64,
    /// True of the scores and reasons that a judge gave.
    pub is_judgement: bool,
    pub fields: Vec<ColumnStats>,
}

/// A count that may be an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Estimate {
    pub count: u64,
    pub exact: bool,
}

/// The subject of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    None,
    Value,
    Characters,
    Items,
}

/// The distribution of numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Distribution {
    pub min: f64,
    pub mean: f64,
    pub max: f64,
    pub p5: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p95: f64,
    /// False if the quantiles and the histogram are estimates.
    pub exact: bool,
    /// True if all numbers are whole.
    pub whole: bool,
    pub histogram: Histogram,
}

/// The numbers of values in several intervals of the same width.
#[derive(Clone, Debug, Serialize)]
pub struct Histogram {
    pub from: f64,
    pub width: f64,
    pub counts: Vec<u64>,
}

/// A frequent value.
#[derive(Clone, Debug, Serialize)]
pub struct TopValue {
    /// Long texts are cut.
    pub value: Value,
    pub count: u64,
}

/// Frequent values that are shown.
const TOP: usize = 12;
/// Intervals of a histogram.
const BINS: usize = 24;
/// Characters of a text that a frequent value keeps.
const KEPT_CHARACTERS: usize = 200;
/// The levels of structs that are analysed, so that the score of a judge is included.
const MAX_DEPTH: usize = 2;
/// The fields of a struct that are analysed.
const MAX_FIELDS: usize = 32;

/// Texts with at most this many different values are categories.
const CATEGORIES: u64 = 24;

impl ColumnStats {
    /// Cells that are not null.
    pub fn filled(&self) -> u64 {
        self.cells - self.nulls
    }

    /// True of texts with few different values.
    pub fn is_categorical(&self) -> bool {
        let Some(distinct) = self.distinct.filter(|distinct| distinct.exact) else { return false };
        let are_repeated = distinct.count * 2 <= self.filled() || distinct.count <= 3;
        self.measure == Measure::Characters && distinct.count <= CATEGORIES && are_repeated
    }
}

/// Collects the statistics of a column, value by value.
pub(crate) struct Collector {
    name: String,
    column_type: ColumnType,
    cells: u64,
    nulls: u64,
    trues: u64,
    is_whole: bool,
    distinct: Distinct,
    frequent: Frequent,
    numbers: Numbers,
    fields: Vec<Collector>,
}

impl Collector {
    pub(crate) fn new(name: &str, column_type: &ColumnType) -> Collector {
        Collector::below(name.to_owned(), column_type, 0)
    }

    fn below(name: String, column_type: &ColumnType, depth: usize) -> Collector {
        let fields = match column_type {
            ColumnType::Struct(fields) if depth < MAX_DEPTH => {
                let field =
                    |(name, field): &(String, ColumnType)| Collector::below(name.clone(), field, depth + 1);
                fields.iter().take(MAX_FIELDS).map(field).collect()
            }
            _ => Vec::new(),
        };
        Collector {
            name,
            column_type: column_type.clone(),
            cells: 0,
            nulls: 0,
            trues: 0,
            is_whole: true,
            distinct: Distinct::default(),
            frequent: Frequent::default(),
            numbers: Numbers::default(),
            fields,
        }
    }

    /// Adds a cell.
    pub(crate) fn add(&mut self, value: &Value) {
        self.cells += 1;
        match value {
            Value::Null => self.nulls += 1,
            Value::Bool(truth) => self.trues += u64::from(*truth),
            Value::Int(int) => self.add_number(*int as f64, value),
            Value::Float(float) => self.add_number(*float, value),
            Value::Text(text) => {
                self.numbers.add(text.chars().count() as f64);
                self.add_value(value);
            }
            Value::List(items) => self.numbers.add(items.len() as f64),
            Value::Map(_) => {}
        }
        for field in &mut self.fields {
            let value = value.get(&field.name);
            field.add(value.unwrap_or(&Value::Null));
        }
    }

    fn add_number(&mut self, number: f64, value: &Value) {
        self.add_value(value);
        if number.is_finite() {
            self.is_whole &= number.fract() == 0.0;
            self.numbers.add(number);
        }
    }

    fn add_value(&mut self, value: &Value) {
        let digest = digest(value);
        self.distinct.add(digest);
        self.frequent.add(digest, || cut(value));
    }

    /// The statistics of all cells so far.
    pub(crate) fn finish(&self) -> ColumnStats {
        let measure = match &self.column_type {
            ColumnType::Int | ColumnType::Float => Measure::Value,
            ColumnType::Text | ColumnType::Json => Measure::Characters,
            ColumnType::List(_) => Measure::Items,
            ColumnType::Bool | ColumnType::Struct(_) => Measure::None,
        };
        let has_values = matches!(measure, Measure::Value | Measure::Characters);
        let distinct = Estimate { count: self.distinct.count(), exact: self.distinct.is_exact() };
        let mut top = self.frequent.top(TOP);
        top.retain(|(_, count)| *count > 1 || distinct.count <= TOP as u64);
        ColumnStats {
            name: self.name.clone(),
            column_type: type_name(&self.column_type),
            cells: self.cells,
            nulls: self.nulls,
            distinct: has_values.then_some(distinct),
            trues: (self.column_type == ColumnType::Bool).then_some(self.trues),
            distribution: (measure != Measure::None).then(|| self.distribution()).flatten(),
            measure,
            top: top.into_iter().map(|(value, count)| TopValue { value, count }).collect(),
            top_error: self.frequent.error(),
            is_judgement: self.is_judgement(),
            fields: self.fields.iter().map(Collector::finish).collect(),
        }
    }

    /// Whether the struct is a judge's: a score and its reasons under fixed names.
    fn is_judgement(&self) -> bool {
        let ColumnType::Struct(fields) = &self.column_type else { return false };
        fields.len() == 2
            && ["score", "reasoning"].iter().all(|name| fields.iter().any(|(field, _)| field == name))
    }

    /// The numbers of the column with their exact counts, if there are few different ones, such as scores.
    fn counted_numbers(&self) -> Option<WeightedNumbers> {
        let numbers = self
            .frequent
            .all()
            .filter(|_| matches!(self.column_type, ColumnType::Int | ColumnType::Float))?;
        let finite = numbers.filter_map(|(value, count)| Some((value.as_number()?, *count)));
        Some(WeightedNumbers::new(finite.filter(|(number, _)| number.is_finite()).collect()))
    }

    fn distribution(&self) -> Option<Distribution> {
        let numbers = &self.numbers;
        if numbers.count() == 0 {
            return None;
        }
        let counted = self.counted_numbers();
        let exact = counted.is_some() || numbers.is_exact();
        let weighted = counted.unwrap_or_else(|| numbers.weighted());
        let [p5, p25, p50, p75, p95] = weighted.quantiles([0.05, 0.25, 0.5, 0.75, 0.95]);
        let (from, width, bins) = intervals(numbers.least(), numbers.largest(), self.is_whole);
        let counts = weighted.histogram(from, width, bins);
        Some(Distribution {
            min: numbers.least(),
            mean: numbers.mean(),
            max: numbers.largest(),
            p5,
            p25,
            p50,
            p75,
            p95,
            exact,
            whole: self.is_whole,
            histogram: Histogram { from, width, counts },
        })
    }
}

/// The start, width and number of the intervals of a histogram. Intervals of whole numbers have as many of them each:
/// others would make bars differ that are equal.
fn intervals(least: f64, largest: f64, is_whole: bool) -> (f64, f64, usize) {
    let bins = BINS as f64;
    if least == largest {
        return (least, 1.0, 1);
    }
    let range = largest - least + 1.0;
    if is_whole && range < 1e15 {
        let width = (range / bins).ceil();
        return (least, width, (range / width).ceil() as usize);
    }
    (least, largest / bins - least / bins, BINS)
}

/// A value without the end of a long text.
fn cut(value: &Value) -> Value {
    match value {
        Value::Text(text) => match text.char_indices().nth(KEPT_CHARACTERS) {
            Some((end, _)) => format!("{}…", &text[..end]).into(),
            None => value.clone(),
        },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use anabranch_dataset::ColumnType;
    use anabranch_value::Value;

    use super::{Collector, ColumnStats, Measure};

    fn stats(column_type: &ColumnType, values: &[&str]) -> ColumnStats {
        let mut collector = Collector::new("c", column_type);
        values.iter().for_each(|value| collector.add(&Value::from_json(value).unwrap()));
        collector.finish()
    }

    #[test]
    fn whole_numbers_have_intervals_of_whole_numbers() {
        let found = stats(&ColumnType::Int, &["1", "2", "2", "5", "null"]);
        assert_eq!((found.cells, found.nulls, found.distinct.unwrap().count), (5, 1, 3));
        let distribution = found.distribution.unwrap();
        assert_eq!(distribution.histogram.counts, [1, 2, 0, 0, 1]);
        assert_eq!((distribution.min, distribution.mean, distribution.max), (1.0, 2.5, 5.0));
        let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let histogram = stats(&ColumnType::Int, &many).distribution.unwrap().histogram;
        assert_eq!(histogram.counts, [5; 20], "no bar stands out");
    }

    #[test]
    fn few_different_numbers_are_counted_exactly_however_many_there_are() {
        let mut collector = Collector::new("c", &ColumnType::Int);
        (0..100_000).for_each(|at| collector.add(&Value::Int(if at % 1000 == 0 { 5 } else { at % 3 })));
        let found = collector.finish().distribution.unwrap();
        assert!(found.exact);
        assert_eq!(found.histogram.counts, [33_300, 33_300, 33_300, 0, 0, 100]);
        assert_eq!((found.p50, found.max), (1.0, 5.0));
    }

    #[test]
    fn texts_have_lengths_and_frequent_values() {
        let found = stats(&ColumnType::Text, &["\"a\"", "\"äöü\"", "\"a\""]);
        assert_eq!(found.measure, Measure::Characters);
        assert_eq!(found.distribution.unwrap().max, 3.0, "characters, not bytes");
        assert_eq!((found.top[0].value.as_text(), found.top[0].count), (Some("a"), 2));
    }

    #[test]
    fn judges_are_found_below_their_column() {
        let score = ColumnType::Struct(vec![
            ("score".to_owned(), ColumnType::Int),
            ("reasoning".to_owned(), ColumnType::Text),
        ]);
        let column = ColumnType::Struct(vec![("accuracy".to_owned(), score)]);
        let found = stats(&column, &[r#"{"accuracy": {"score": 4, "reasoning": "fine"}}"#, "null"]);
        let accuracy = &found.fields[0];
        assert!(accuracy.is_judgement && !found.is_judgement);
        assert_eq!((accuracy.fields[0].distribution.as_ref().unwrap().mean, accuracy.nulls), (4.0, 1));
    }

    #[test]
    fn numbers_that_are_not_finite_are_no_part_of_a_distribution() {
        let mut collector = Collector::new("c", &ColumnType::Float);
        [f64::NAN, f64::INFINITY, 0.5].iter().for_each(|number| collector.add(&Value::Float(*number)));
        let found = collector.finish();
        assert_eq!((found.cells, found.distribution.unwrap().max), (3, 0.5));
    }
}
