//! Random expressions over random rows, against an interpreter that takes one row at a time.

use std::sync::Arc;

use anabranch_engine::Check;
use anabranch_plan::expr::{Binary, Compare, Error, Expr, Filter, Name, Pattern, Pred, Program, Unary};
use anabranch_plan::{List, Problems, Scalar, Values};
use anabranch_rows::{Batch, Column, Dictionary, Key, Kind, Rows, Text};
use arrow_array::{BooleanArray, Float64Array, Int32Array, Int64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use proptest::prelude::*;

use crate::expr_naive::{Row, kind};
use crate::expr_world::{PARAM_COUNT, cell, text, with_scope};

/// Random choices, as numbers that shrink: the first alternative of everything is the simplest.
struct Choices<'a> {
    numbers: std::slice::Iter<'a, u32>,
}

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        self.numbers.next().map_or(0, |number| *number as usize % count)
    }

    fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    fn int(&mut self) -> i64 {
        let wide = 1i64 << 53;
        self.of(&[0, 1, 2, 3, -1, -7, wide - 1, wide, wide + 1, -wide - 1, i64::MAX, i64::MAX - 1, i64::MIN])
    }

    fn float(&mut self) -> f64 {
        let wide = 9_007_199_254_740_992.0;
        self.of(&[
            0.0,
            1.0,
            0.5,
            2.0,
            -0.0,
            -1.5,
            3.0,
            wide,
            wide + 2.0,
            -wide,
            9_223_372_036_854_775_808.0,
            -9_223_372_036_854_775_808.0,
            1e300,
            -1e-300,
        ])
    }

    fn word(&mut self) -> Arc<str> {
        Arc::from(self.of(&["", "US", "us", "FR", "Straße", "STRASSE", "ǅ", "a b", "zz"]))
    }

    fn value(&mut self, kind: Kind) -> Scalar {
        match kind {
            Kind::Int => Scalar::Int(self.int()),
            Kind::Float => Scalar::Float(self.float()),
            Kind::Bool => Scalar::Bool(self.below(2) == 1),
            Kind::Text => Scalar::Text(self.word()),
        }
    }

    fn number_kind(&mut self) -> Kind {
        self.of(&[Kind::Float, Kind::Int])
    }

    fn leaf(&mut self, kind: Kind) -> Expr {
        let (keys, params): (&[u32], &[u32]) = match kind {
            Kind::Int => (&[1, 10], &[2]),
            Kind::Float if self.below(12) == 11 => return Expr::Now,
            Kind::Float => (&[11, 16, 15], &[1]),
            Kind::Bool => (&[12], &[4]),
            Kind::Text => (&[13, 14], &[3]),
        };
        match self.below(8) {
            0..=3 => Expr::Key(Name::Id(self.of(keys))),
            4 | 5 => Expr::Const(self.value(kind)),
            6 => Expr::Param(Name::Id(self.of(params))),
            _ => Expr::Null,
        }
    }

    fn boxed(&mut self, kind: Kind, depth: usize) -> Box<Expr> {
        Box::new(self.expr(kind, depth))
    }

    fn expr(&mut self, kind: Kind, depth: usize) -> Expr {
        if depth == 0 {
            return self.leaf(kind);
        }
        let below = depth - 1;
        match (self.below(8), kind) {
            (0, _) => self.leaf(kind),
            (1, _) => Expr::Binary(Binary::Coalesce, self.boxed(kind, below), self.boxed(kind, below)),
            (2, Kind::Float) => {
                let kind = self.number_kind();
                Expr::Binary(Binary::Coalesce, self.boxed(Kind::Float, below), self.boxed(kind, below))
            }
            (4, Kind::Int) => {
                let kind = self.of(&[Kind::Int, Kind::Float, Kind::Text]);
                Expr::Hash(self.of(&[0, 7, -1]), self.boxed(kind, below))
            }
            (5, Kind::Int) => Expr::Unary(Unary::Length, self.boxed(Kind::Text, below)),
            (3, _) | (_, Kind::Int | Kind::Bool) => {
                Expr::If(Box::new(self.pred(below)), self.boxed(kind, below), self.boxed(kind, below))
            }
            (_, Kind::Text) => {
                let op = self.of(&[Unary::Lower, Unary::Upper]);
                Expr::Unary(op, self.boxed(kind, below))
            }
            (4, Kind::Float) => {
                use Unary::{Abs, Ceil, Exp, Floor, Log, Neg, Round};
                let op = self.of(&[Neg, Abs, Log, Exp, Floor, Ceil, Round]);
                let kind = self.number_kind();
                Expr::Unary(op, self.boxed(kind, below))
            }
            (5, Kind::Float) => {
                let (x, low) = (self.number_kind(), self.number_kind());
                let high = self.of(&[Expr::Key(Name::Id(16)), Expr::Const(Scalar::Float(1e301))]);
                Expr::Clamp(Box::new([self.expr(x, below), self.leaf(low), high]))
            }
            (_, Kind::Float) => {
                use Binary::{Add, Div, Max, Min, Mod, Mul, Pow, Sub};
                let op = self.of(&[Add, Mul, Sub, Div, Min, Max, Pow, Mod]);
                let (a, b) = (self.number_kind(), self.number_kind());
                Expr::Binary(op, self.boxed(a, below), self.boxed(b, below))
            }
        }
    }

    fn pred(&mut self, depth: usize) -> Pred {
        let below = depth.saturating_sub(1);
        match self.below(if depth == 0 { 6 } else { 9 }) {
            0 | 1 => self.compare(below),
            2 => self.one_of(below),
            3 => {
                let kind = self.of(&[Kind::Float, Kind::Int, Kind::Bool, Kind::Text]);
                let x = self.boxed(kind, below);
                if self.below(2) == 0 { Pred::IsNull(x) } else { Pred::NotNull(x) }
            }
            4 => Pred::Regex {
                text: self.boxed(Kind::Text, below),
                pattern: match self.below(3) {
                    0 => Pattern::Param(Name::Id(5)),
                    _ => Pattern::Literal(self.of(&["^u", "S", "ss|ß", "$"]).to_owned()),
                },
                ignore_case: self.below(2) == 1,
            },
            5 => Pred::Const(self.below(2) == 1),
            6 => Pred::And(Box::new(self.pred(below)), Box::new(self.pred(below))),
            7 => Pred::Or(Box::new(self.pred(below)), Box::new(self.pred(below))),
            _ => Pred::Not(Box::new(self.pred(below))),
        }
    }

    fn compare(&mut self, depth: usize) -> Pred {
        use Compare::{Eq, Ge, Gt, Le, Lt, Ne};
        let (a, b) = match self.below(4) {
            0 | 1 => (self.number_kind(), self.number_kind()),
            2 => (Kind::Text, Kind::Text),
            _ => (Kind::Bool, Kind::Bool),
        };
        let op = if a == Kind::Bool { self.of(&[Eq, Ne]) } else { self.of(&[Eq, Ne, Lt, Le, Gt, Ge]) };
        Pred::Compare(op, self.boxed(a, depth), self.boxed(b, depth))
    }

    fn one_of(&mut self, depth: usize) -> Pred {
        match self.below(6) {
            4 => return Pred::InParam(self.boxed(Kind::Text, depth), Name::Id(7)),
            5 => {
                let kind = self.number_kind();
                return Pred::InParam(self.boxed(kind, depth), Name::Id(6));
            }
            _ => {}
        }
        let count = self.of(&[1, 2, 5, 0, 12, 40]);
        if self.below(3) == 0 {
            let list = (0..count).map(|_| self.value(Kind::Text)).collect();
            return Pred::In(self.boxed(Kind::Text, depth), list);
        }
        let list = (0..count).map(|_| {
            let kind = self.number_kind();
            self.value(kind)
        });
        let list = list.collect();
        let kind = self.number_kind();
        Pred::In(self.boxed(kind, depth), list)
    }

    fn params(&mut self) -> Values {
        let mut params: Values = vec![None; PARAM_COUNT].into();
        for (place, kind) in [Kind::Float, Kind::Int, Kind::Text, Kind::Bool].into_iter().enumerate() {
            params[place] = (self.below(3) > 0).then(|| self.value(kind));
        }
        params[4] = Some(text(self.of(&["U", "^$", "[rR]"])));
        params.set_now(self.of(&[0.0, 1_700_000_000.25]));
        if self.below(4) > 0 {
            let count = self.of(&[1, 0, 5, 20]);
            let (ints, words) = ((0..count).map(|_| self.int()).collect::<Vec<_>>(), self.of(&[0, 3, 12]));
            params.set_list(5, Some(Arc::new(List::ints(ints))));
            let words = (0..words).map(|_| self.word()).collect::<Vec<_>>();
            params.set_list(6, Some(Arc::new(List::texts(words))));
        }
        params
    }

    fn nulls(&mut self, count: usize) -> Option<NullBuffer> {
        match self.below(4) {
            0 => None,
            1 => Some(NullBuffer::new(BooleanBuffer::collect_bool(count, |_| true))),
            2 => Some(NullBuffer::new(BooleanBuffer::collect_bool(count, |row| row % 5 != 2))),
            _ => {
                let seed = self.below(1 << 30) as u64 | 1;
                let random =
                    |row: usize| (row as u64 + 1).wrapping_mul(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                Some(NullBuffer::new(BooleanBuffer::collect_bool(count, |row| random(row) >> 62 != 0)))
            }
        }
    }

    /// Values repeat after a while, so that large batches need few choices.
    fn repeated<T: Clone>(&mut self, count: usize, mut value: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let some: Vec<T> = (0..count.min(37)).map(|_| value(self)).collect();
        (0..count).map(|row| some[row % 37].clone()).collect()
    }

    fn strings(&mut self, count: usize, skip: usize) -> Column {
        let entries: Vec<Arc<str>> = (0..1 + self.below(12)).map(|_| self.word()).collect();
        let nulls = self.nulls(count);
        let mut codes = self.repeated(count, |choices| choices.below(entries.len()) as i32);
        if let Some(nulls) = &nulls {
            let garbage = self.of(&[-1, 0, 1000, i32::MAX, i32::MIN]);
            (0..count).filter(|row| nulls.is_null(*row)).for_each(|row| codes[row] = garbage);
        }
        let codes = Int32Array::new(codes.into(), nulls).slice(skip, count - skip);
        Column::Text(Text::new(codes, Dictionary::new(entries)))
    }

    fn rows(&mut self) -> Rows {
        let len = self.of(&[1, 3, 0, 63, 64, 65, 130, 512, 700, 1100]);
        // Arrow memory need not start at its first row.
        let skip = self.of(&[0, 3, 64]);
        let count = len + skip;
        let ids = self.repeated(len, Choices::int);
        let ints = Int64Array::new(self.repeated(count, Choices::int).into(), self.nulls(count));
        let floats = Float64Array::new(self.repeated(count, Choices::float).into(), self.nulls(count));
        let bools = self.repeated(count, |choices| choices.below(2) == 1);
        let bools = BooleanArray::new(bools.into(), self.nulls(count));
        let dense = Float64Array::from(self.repeated(len, Choices::float));
        let columns = vec![
            (Key(10), Column::Int(ints.slice(skip, len))),
            (Key(11), Column::Float(floats.slice(skip, len))),
            (Key(12), Column::Bool(bools.slice(skip, len))),
            (Key(13), self.strings(count, skip)),
            (Key(14), self.strings(count, skip)),
            (Key(16), Column::Float(dense)),
            (Key(20), Column::floats(vec![None; len])),
        ];
        let rows = Rows::new(Batch::with_columns(ids, columns));
        match self.below(4) {
            0 => rows,
            1 => rows.first(self.below(len + 1)),
            2 => rows.with_active((0..len as u32).rev().collect::<Vec<u32>>()),
            _ => {
                let step = 1 + self.below(5) as u32;
                let odd_last = |row: &u32| (row % 2, row.wrapping_mul(0x9e37_79b9));
                let mut list: Vec<u32> = (0..len as u32).step_by(step as usize).collect();
                list.sort_by_key(odd_last);
                rows.with_active(list)
            }
        }
    }
}

fn same(a: &Option<Scalar>, b: &Option<Scalar>) -> bool {
    match (a, b) {
        (Some(Scalar::Float(a)), Some(Scalar::Float(b))) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

fn check_expr(expr: &Expr, rows: &Rows, params: &Values, as_float: bool) {
    let mut problems = Problems::default();
    let program = with_scope(|scope| Program::compile(expr, scope, "e1", &mut problems));
    let program = program.unwrap_or_else(|| panic!("{expr}: {problems}"));
    let wanted = match program.kind().or(kind(expr)).unwrap_or(Kind::Float) {
        Kind::Int if as_float => Kind::Float,
        kind => kind,
    };
    let found = program.column(rows, params, wanted, &Check::never());
    let value = |row: usize| match (Row { rows, row, params }).expr(expr) {
        Some(Scalar::Int(int)) if wanted == Kind::Float => Some(Scalar::Float(int as f64)),
        value => value,
    };
    let infinite = |row: &usize| matches!(value(*row), Some(Scalar::Float(float)) if !float.is_finite());
    if let Some(row) = rows.iter().find(infinite) {
        let error = Error::NotFinite { row, id: rows.batch().ids()[row] };
        assert_eq!(found.unwrap_err(), error, "{expr}");
        return;
    }
    let column = found.unwrap();
    assert_eq!((column.kind(), column.len()), (wanted, rows.batch().len()));
    let mut expected = vec![None; column.len()];
    rows.iter().for_each(|row| expected[row] = value(row));
    for (row, expected) in expected.iter().enumerate() {
        let found = cell(&column, row);
        assert!(same(&found, expected), "{expr}, row {row}: {found:?}, not {expected:?}");
    }
    let any_null = expected.iter().any(Option::is_none);
    assert_eq!(column.nulls().is_some(), any_null, "{expr}: a null buffer only where there are nulls");
}

fn check_pred(pred: &Pred, rows: &Rows, params: &Values) {
    let mut problems = Problems::default();
    let filter = with_scope(|scope| Filter::compile(pred, scope, "p1", &mut problems));
    let filter = filter.unwrap_or_else(|| panic!("{pred}: {problems}"));
    let found = filter.select(rows, params, &Check::never()).unwrap();
    let passing = rows.iter().filter(|row| Row { rows, row: *row, params }.pred(pred));
    assert_eq!(&found[..], passing.map(|row| row as u32).collect::<Vec<_>>(), "{pred}");
    if filter.keys().is_empty() && !rows.is_empty() {
        assert_eq!(filter.holds(params).unwrap(), !found.is_empty(), "{pred}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn expressions_are_what_they_say(numbers in prop::collection::vec(any::<u32>(), 0..700)) {
        let mut choices = Choices { numbers: numbers.iter() };
        let kind = choices.of(&[Kind::Float, Kind::Float, Kind::Int, Kind::Text, Kind::Bool]);
        let depth = choices.below(6);
        let (as_float, expr) = (choices.below(2) == 1, choices.expr(kind, depth));
        let (params, rows) = (choices.params(), choices.rows());
        check_expr(&expr, &rows, &params, as_float);
    }

    #[test]
    fn predicates_are_what_they_say(numbers in prop::collection::vec(any::<u32>(), 0..700)) {
        let mut choices = Choices { numbers: numbers.iter() };
        let depth = choices.below(6);
        let pred = choices.pred(depth);
        let (params, rows) = (choices.params(), choices.rows());
        check_pred(&pred, &rows, &params);
    }
}
