//! Expressions as terms.

use anabranch_value::Value;
use minijinja::machinery::ast::{BinOpKind, Compare, CompareOpKind, Expr, GetAttr, Slice, UnaryOpKind};
use minijinja::value::ValueKind;

use crate::code::{Kind, Operator, Place, Round, Term};
use crate::compile::Compiler;
use crate::error::Halt;
use crate::syntax::{place, refused};

/// The place of an expression; the parser lets some begin too early, and others too late.
pub(crate) fn whole(expression: &Expr<'_>) -> Place {
    let Place { start, end } = place(expression.span());
    let first = match expression {
        Expr::BinOp(of) => Some(&of.left),
        Expr::Compare(of) => Some(&of.expr),
        Expr::IfExpr(of) => Some(&of.true_expr),
        Expr::GetAttr(of) => Some(&of.expr),
        Expr::GetItem(of) => Some(&of.expr),
        Expr::Slice(of) => Some(&of.expr),
        Expr::Call(of) => Some(&of.expr),
        _ => None,
    };
    first.map_or(start, |first| whole(first).start)..end
}

impl Compiler {
    pub(crate) fn boxed(&mut self, expression: &Expr<'_>) -> Result<Box<Term>, Halt> {
        self.term(expression).map(Box::new)
    }

    pub(crate) fn terms(&mut self, expressions: &[Expr<'_>]) -> Result<Vec<Term>, Halt> {
        expressions.iter().map(|expression| self.term(expression)).collect()
    }

    pub(crate) fn term(&mut self, expression: &Expr<'_>) -> Result<Term, Halt> {
        let place = whole(expression);
        let kind = match expression {
            Expr::Const(constant) => Kind::Constant(constant_value(&constant.value, &place)?),
            Expr::Var(name) if name.id == "loop" => return refused(place, self.loop_fields()),
            Expr::Var(name) if name.id == "namespace" && !self.is_plain() => {
                return refused(
                    place,
                    "a namespace gets a name first, as in `{% set ns = namespace(n=0) %}`",
                );
            }
            Expr::Var(name) => self.names.read(name.id, &place)?,
            Expr::GetAttr(of) => self.attribute(of, &place)?,
            Expr::GetItem(of) => Kind::Item(self.boxed(&of.expr)?, self.boxed(&of.subscript_expr)?),
            Expr::Slice(of) => self.slice(of, &place)?,
            Expr::UnaryOp(of) => match of.op {
                UnaryOpKind::Not => Kind::Not(self.boxed(&of.expr)?),
                UnaryOpKind::Neg => Kind::Negative(self.boxed(&of.expr)?),
            },
            Expr::BinOp(of) => binary(of.op, self.boxed(&of.left)?, self.boxed(&of.right)?),
            Expr::Compare(of) => self.chain(of, &place)?,
            Expr::IfExpr(of) => {
                let (yes, test) = (self.term(&of.true_expr)?, self.term(&of.test_expr)?);
                let no = match &of.false_expr {
                    Some(no) => self.term(no)?,
                    None => Term { place: place.clone(), kind: Kind::Constant("".into()) },
                };
                Kind::Choice(Box::new([test, yes, no]))
            }
            Expr::Filter(of) => self.filter(of, &place)?,
            Expr::Test(of) => self.test(of, &place)?,
            Expr::Call(of) => self.call(of, &place)?,
            Expr::List(list) => Kind::List(self.terms(&list.items)?),
            Expr::Tuple(list) => Kind::List(self.terms(&list.items)?),
            Expr::Map(map) => {
                let keys = self.terms(&map.keys)?;
                Kind::Map(keys.into_iter().zip(self.terms(&map.values)?).collect())
            }
        };
        Ok(Term { place, kind })
    }

    fn loop_fields(&self) -> String {
        let fields = if self.is_plain() { &Round::ALL[..7] } else { &Round::ALL[..] };
        let mut fields: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        let last = if self.is_plain() { fields.pop().unwrap_or_default() } else { "cycle" };
        format!("of `loop` there are {} and {last}", fields.join(", "))
    }

    fn attribute(&mut self, of: &GetAttr<'_>, place: &Place) -> Result<Kind, Halt> {
        if let Expr::Var(name) = &of.expr {
            if name.id == "loop" {
                return self.round(of.name, place);
            }
            if let Some(slot) = self.names.field(name.id, of.name, place.clone())? {
                return Ok(Kind::Local(slot));
            }
        }
        let key = Term { place: place.clone(), kind: Kind::Constant(of.name.into()) };
        Ok(Kind::Item(self.boxed(&of.expr)?, Box::new(key)))
    }

    fn round(&mut self, name: &str, place: &Place) -> Result<Kind, Halt> {
        let allowed = if self.is_plain() { 7 } else { Round::ALL.len() };
        match Round::ALL[..allowed].iter().find(|(round, _)| *round == name) {
            Some(_) if self.loops.is_empty() && !self.is_plain() => {
                refused(place.clone(), "there is no loop around it")
            }
            Some((_, round)) => Ok(Kind::Round(*round)),
            None => refused(place.clone(), self.loop_fields()),
        }
    }

    fn slice(&mut self, of: &Slice<'_>, place: &Place) -> Result<Kind, Halt> {
        if of.step.is_some() && self.is_plain() {
            return refused(place.clone(), "a slice has no step; `reverse` turns a list around");
        }
        let value = self.boxed(&of.expr)?;
        let mut end = |end: &Option<Expr<'_>>| end.as_ref().map(|end| self.term(end)).transpose();
        Ok(Kind::Slice(value, Box::new([end(&of.start)?, end(&of.stop)?, end(&of.step)?])))
    }

    fn chain(&mut self, of: &Compare<'_>, place: &Place) -> Result<Kind, Halt> {
        if self.is_plain() {
            return refused(place.clone(), "comparisons have `and` between them, as in `a < b and b < c`");
        }
        let first = self.boxed(&of.expr)?;
        let mut rest = Vec::new();
        for comparison in &of.ops {
            let operator = match comparison.op {
                CompareOpKind::Eq => Operator::Equal,
                CompareOpKind::Ne => Operator::Unequal,
                CompareOpKind::Lt => Operator::Less,
                CompareOpKind::Lte => Operator::LessOrEqual,
                CompareOpKind::Gt => Operator::More,
                CompareOpKind::Gte => Operator::MoreOrEqual,
                CompareOpKind::In => Operator::In,
                CompareOpKind::NotIn => Operator::NotIn,
            };
            rest.push((operator, self.term(&comparison.expr)?));
        }
        Ok(Kind::Chain(first, rest))
    }
}

fn constant_value(constant: &minijinja::Value, place: &Place) -> Result<Value, Halt> {
    match constant.kind() {
        ValueKind::None => Ok(Value::Null),
        ValueKind::Bool => Ok(Value::Bool(constant.is_true())),
        ValueKind::Number if constant.is_integer() => match constant.as_i64() {
            Some(integer) => Ok(Value::Int(integer)),
            None => refused(place.clone(), "the integer is beyond 64 bits"),
        },
        ValueKind::Number => match f64::try_from(constant.clone()) {
            Ok(float) => Ok(Value::Float(float)),
            Err(_) => refused(place.clone(), "not a number"),
        },
        _ => Ok(constant.as_str().unwrap_or_default().into()),
    }
}

fn binary(operator: BinOpKind, one: Box<Term>, other: Box<Term>) -> Kind {
    let operator = match operator {
        BinOpKind::ScAnd => return Kind::And(one, other),
        BinOpKind::ScOr => return Kind::Or(one, other),
        BinOpKind::Eq => Operator::Equal,
        BinOpKind::Ne => Operator::Unequal,
        BinOpKind::Lt => Operator::Less,
        BinOpKind::Lte => Operator::LessOrEqual,
        BinOpKind::Gt => Operator::More,
        BinOpKind::Gte => Operator::MoreOrEqual,
        BinOpKind::Add => Operator::Add,
        BinOpKind::Sub => Operator::Subtract,
        BinOpKind::Mul => Operator::Multiply,
        BinOpKind::Div => Operator::Divide,
        BinOpKind::FloorDiv => Operator::DivideDown,
        BinOpKind::Rem => Operator::Remainder,
        BinOpKind::Pow => Operator::Power,
        BinOpKind::Concat => Operator::Join,
        BinOpKind::In => Operator::In,
    };
    Kind::Binary(operator, one, other)
}
