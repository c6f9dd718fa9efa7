//! Compiled expressions and predicates: the interface for the rest of the crate.

use std::time::Duration;

use anabranch_engine::Check;
use anabranch_rows::{Column, Key, Kind, Rows, Text};
use anabranch_text::Problems;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{BooleanArray, PrimitiveArray};
use arrow_buffer::ScalarBuffer;

use super::ast::{Expr, Pred};
use super::check::Checker;
use super::code::Code;
use super::frame::Frame;
use super::graph::{At, Literal, Node};
use super::output::{self, Nulls};
use super::select::Selection;
use super::{Error, Scope, scalar};
use crate::value::{Scalar, Values};

/// A compiled expression: immutable, shared by all requests.
#[derive(Debug)]
pub struct Program {
    code: Code,
}

impl Program {
    /// Checks and compiles. Everything wrong is noted with its place, `place` and the path below it.
    pub fn compile(expr: &Expr, scope: Scope<'_>, place: &str, problems: &mut Problems) -> Option<Program> {
        let (graph, root) = Checker::new(scope, place, problems).compile_expr(expr)?;
        let mut code = Code::new(graph, root);
        // The result is looked at, and copied to its column.
        code.cost += 0.3;
        Some(Program { code })
    }

    /// The kind of its values; `None` if they are all null.
    pub fn kind(&self) -> Option<Kind> {
        self.code.kinds[self.code.root()]
    }

    /// True if it has constants that a float column would not hold exactly.
    pub(crate) fn may_round(&self) -> bool {
        self.kind() == Some(Kind::Int)
            && self.code.nodes.iter().any(|node| match node {
                Node::Const(Literal(Scalar::Int(int))) => scalar::exact_float(*int).is_none(),
                _ => false,
            })
    }

    /// The columns it reads, ascending; [`Key::ID`] among them when it reads ids.
    pub fn keys(&self) -> &[Key] {
        &self.code.keys
    }

    /// About how long it takes per row, in nanoseconds.
    pub fn cost(&self) -> f64 {
        self.code.cost
    }

    /// True if a request may bring a value, such as a regex, that takes time before the first row.
    pub(crate) fn has_setup(&self) -> bool {
        self.code.has_setup
    }

    /// About how long it takes before the first row: patterns to compile and lists to index that this request brings.
    pub fn setup(&self, params: &Values) -> Duration {
        self.code.setup(params)
    }

    /// A column with the values of the active rows, and null in the others, of kind `kind`
    /// (its own, or float for integers).
    pub fn column(
        &self,
        rows: &Rows,
        params: &Values,
        kind: Kind,
        check: &Check<'_>,
    ) -> Result<Column, Error> {
        let fits = match self.kind() {
            None => true,
            Some(Kind::Int) => matches!(kind, Kind::Int | Kind::Float),
            Some(own) => own == kind,
        };
        assert!(fits, "a {kind} column is asked of an expression of another kind");
        if rows.is_empty() {
            return Ok(output::same(rows, None, kind));
        }
        let mut frame = Frame::new(&self.code, rows, params);
        frame.prepare(check)?;
        if let Some(value) = frame.known() {
            return constant(rows, value.as_ref(), kind);
        }
        match (kind, self.kind()) {
            (Kind::Float, Some(Kind::Int)) => {
                let views = |frame: &Frame<'_>, values: &mut output::Values<'_, f64>, root| {
                    values.add(frame.views().ints(root), |int| int as f64);
                    Ok(())
                };
                Ok(Column::Float(values(&mut frame, check, views)?))
            }
            (Kind::Float, _) => {
                let views = |frame: &Frame<'_>, values: &mut output::Values<'_, f64>, root| {
                    values.add(frame.views().floats(root), |float| float);
                    output::finite(frame, root)
                };
                Ok(Column::Float(values(&mut frame, check, views)?))
            }
            (Kind::Int, _) => {
                let views = |frame: &Frame<'_>, values: &mut output::Values<'_, i64>, root| {
                    values.add(frame.views().ints(root), |int| int);
                    Ok(())
                };
                Ok(Column::Int(values(&mut frame, check, views)?))
            }
            (Kind::Text, _) => {
                let views = |frame: &Frame<'_>, values: &mut output::Values<'_, i32>, root| {
                    values.add(frame.views().codes(root), |code| code);
                    Ok(())
                };
                let codes = values(&mut frame, check, views)?;
                let dictionary = frame.views().dictionary(self.code.root()).clone();
                Ok(Column::Text(Text::new(codes, dictionary)))
            }
            (Kind::Bool, _) => Ok(Column::Bool(truth(&mut frame, check)?)),
        }
    }
}

/// Evaluates all chunks to numbers or codes; `add` takes each chunk.
fn values<P: ArrowPrimitiveType>(
    frame: &mut Frame<'_>,
    check: &Check<'_>,
    add: impl Fn(&Frame<'_>, &mut output::Values<'_, P::Native>, At) -> Result<(), Error>,
) -> Result<PrimitiveArray<P>, Error> {
    let (rows, root) = (frame.rows, frame.code.root());
    let (mut values, mut nulls) = (output::Values::new(rows), Nulls::new(rows));
    frame.run(check, |frame| {
        nulls.add(frame, root);
        add(frame, &mut values, root)
    })?;
    Ok(values.finish(nulls))
}

/// Evaluates all chunks to truth values.
fn truth(frame: &mut Frame<'_>, check: &Check<'_>) -> Result<BooleanArray, Error> {
    let (rows, root) = (frame.rows, frame.code.root());
    let (mut truth, mut nulls) = (output::Bits::new(rows), Nulls::new(rows));
    frame.run(check, |frame| {
        truth.add(frame.list, frame.window, frame.views().truth(root));
        nulls.add(frame, root);
        Ok(())
    })?;
    Ok(truth.finish(nulls))
}

fn constant(rows: &Rows, value: Option<&Scalar>, kind: Kind) -> Result<Column, Error> {
    if let Some(Scalar::Float(float)) = value
        && !float.is_finite()
    {
        let row = rows.row(0);
        return Err(Error::NotFinite { row, id: rows.batch().ids()[row] });
    }
    Ok(output::same(rows, value, kind))
}

/// A compiled predicate: immutable, shared by all requests.
#[derive(Debug)]
pub struct Filter {
    code: Code,
}

impl Filter {
    /// Checks and compiles. Everything wrong is noted with its place, `place` and the path below it.
    pub fn compile(pred: &Pred, scope: Scope<'_>, place: &str, problems: &mut Problems) -> Option<Filter> {
        let (graph, root) = Checker::new(scope, place, problems).compile_pred(pred)?;
        let mut code = Code::new(graph, root);
        // The rows that pass are listed.
        code.cost += 0.3;
        Some(Filter { code })
    }

    /// The columns it reads, ascending; [`Key::ID`] among them when it reads ids.
    pub fn keys(&self) -> &[Key] {
        &self.code.keys
    }

    /// About how long it takes per row, in nanoseconds.
    pub fn cost(&self) -> f64 {
        self.code.cost
    }

    /// True if a request may bring a value, such as a regex, that takes time before the first row.
    pub(crate) fn has_setup(&self) -> bool {
        self.code.has_setup
    }

    /// About how long it takes before the first row: patterns to compile and lists to index that this request brings.
    pub fn setup(&self, params: &Values) -> Duration {
        self.code.setup(params)
    }

    /// Compiles the patterns and indexes the lists that this request brings; they are kept for the evaluation. A bad
    /// pattern is reported by the evaluation.
    pub(crate) fn set_up(&self, params: &Values) {
        self.code.set_up(params);
    }

    /// The active rows for which it holds, in order.
    pub fn select(
        &self,
        rows: &Rows,
        params: &Values,
        check: &Check<'_>,
    ) -> Result<ScalarBuffer<u32>, Error> {
        if rows.is_empty() {
            return Ok(ScalarBuffer::from(Vec::new()));
        }
        let mut frame = Frame::new(&self.code, rows, params);
        frame.prepare(check)?;
        if let Some(value) = frame.known() {
            let all = rows.iter().map(|row| row as u32);
            return Ok(ScalarBuffer::from(if is_true(value) { all.collect() } else { Vec::new() }));
        }
        let root = self.code.root();
        let mut selection = Selection::new(rows.len());
        frame.run(check, |frame| {
            selection.add(frame.views().truth(root), frame.window.len);
            Ok(())
        })?;
        Ok(selection.rows(frame.list).into())
    }

    /// True if it holds, for a predicate that reads no column.
    pub fn holds(&self, params: &Values) -> Result<bool, Error> {
        assert!(self.code.keys.is_empty(), "a predicate that reads columns holds for rows");
        let rows = Rows::empty();
        let mut frame = Frame::new(&self.code, &rows, params);
        frame.prepare(&Check::never())?;
        Ok(frame.known().is_some_and(is_true))
    }
}

fn is_true(value: &Option<Scalar>) -> bool {
    matches!(value, Some(Scalar::Bool(true)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_rows::{Batch, Dictionary};
    use arrow_array::Int32Array;

    use super::*;
    use crate::expr::ast::{Compare, Unary};
    use crate::expr::graph::Graph;
    use crate::expr::pattern::{Matcher, Source};
    use crate::expr::set::Set;

    const COUNTRY: Key = Key(3001);

    fn rows() -> Rows {
        let codes: Int32Array = (0..2000).map(|row| Some(row % 3)).collect();
        let dictionary = Dictionary::new(["US", "CA", "FR", "never used"]);
        let column = Column::Text(Text::new(codes, dictionary));
        Rows::new(Batch::new((0..2000).collect::<Vec<i64>>()).with_column(COUNTRY, column))
    }

    fn tested(build: impl FnOnce(&mut Graph, usize) -> usize) -> usize {
        let mut graph = Graph::default();
        let column = graph.add(Node::Column(COUNTRY, Kind::Text));
        let root = build(&mut graph, column);
        let code = Code::new(graph, root);
        let (rows, params, check) = (rows(), Values::default(), Check::never());
        let mut frame = Frame::new(&code, &rows, &params);
        frame.prepare(&check).unwrap();
        frame.run(&check, |_| Ok(())).unwrap();
        frame.texts.tested
    }

    #[test]
    fn strings_are_tested_once_a_dictionary_entry() {
        let text = |text: &str| Scalar::Text(Arc::from(text));
        let regex = |graph: &mut Graph, column| {
            let pattern = Matcher::new(Source::Literal("^U".to_owned()), false).unwrap();
            graph.add_regex(column, pattern)
        };
        assert_eq!(tested(regex), 4);
        let lower_in = |graph: &mut Graph, column| {
            let lower = graph.add(Node::Unary(Unary::Lower, column));
            graph.add_in(lower, Set::new(&[text("us"), text("fr")], Kind::Text))
        };
        assert_eq!(tested(lower_in), 4);
        let equal = |graph: &mut Graph, column| {
            let us = graph.value(text("US"));
            graph.add(Node::Compare(Compare::Eq, us, column))
        };
        assert_eq!(tested(equal), 4);
    }

    #[test]
    fn equal_parts_are_computed_once() {
        let mut graph = Graph::default();
        let mut build = || {
            let id = graph.add(Node::Column(Key::ID, Kind::Int));
            let float = graph.add(Node::ToFloat(id));
            graph.add(Node::Unary(Unary::Exp, float))
        };
        assert_eq!(build(), build());
    }
}
