//! Reads a template, and refuses what could make much of little.

use anabranch_text::offset;
use bytes::Bytes;
use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, ForLoop, IfCond, Stmt, UnaryOpKind};
use minijinja::machinery::{Span, Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Error, Value};

use super::code::{Kind, Loop, Names, Operator, Place, Round, Step, Term};
use super::evaluate::Halt;
use super::filters::FILTERS;
use super::kinds::TESTS;
use super::work::Stop;

/// The most bytes of a template.
pub(super) const TEMPLATE_MOST: usize = 1 << 20;

/// The most words and signs between two delimiters: what is inside of what is bounded by it, and with it the stack.
const TOKENS_MOST: usize = 512;

/// The most brackets inside of each other.
const BRACKETS_MOST: usize = 32;

/// The most blocks inside of each other; a branch counts as inside of the one before.
const BLOCKS_MOST: usize = 64;

/// The steps of a template.
pub(super) fn compile(source: &Bytes) -> Result<Vec<Step>, Halt> {
    let text = std::str::from_utf8(source).expect("a parameter that is text");
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    let syntax = syntax.expect("the delimiters are the usual ones");
    guard(text, syntax.clone())?;
    let template = parse(text, "template", syntax).map_err(|error| unread(text, &error))?;
    let mut compiler = Compiler { source, steps: Vec::new(), loops: Vec::new() };
    compiler.statement(&template)?;
    Ok(compiler.steps)
}

fn unread(source: &str, error: &Error) -> Halt {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let start = offset(source, error.line().unwrap_or(1), 1);
    Halt { place: error.range().unwrap_or(start..start), stop: Stop::Wrong(detail.into()) }
}

fn place(span: Span) -> Place {
    span.start_offset as usize..span.end_offset as usize
}

fn refused<T>(place: Place, problem: impl Into<String>) -> Result<T, Halt> {
    Err(Halt { place, stop: Stop::Wrong(problem.into().into()) })
}

/// What a statement that is refused would do, and the way out.
fn hint(statement: &str) -> &'static str {
    match statement {
        "set" | "with" => {
            "values have names only in `values` and in loops; write the expression where it is used"
        }
        "macro" | "call" | "do" => "nothing can be called but `range`",
        "include" | "import" | "from" | "extends" | "block" => "there are no other templates",
        "filter" | "autoescape" => "filters stand behind the values they change, as in `{{ value|escape }}`",
        _ => "there are `for`, `if`, `elif`, `else`, `break`, `continue` and `raw`",
    }
}

/// Refuses what the parser has no bounds for, before it sees it.
fn guard(source: &str, syntax: SyntaxConfig) -> Result<(), Halt> {
    if source.len() > TEMPLATE_MOST {
        return refused(0..0, format!("has {} bytes; a template has at most {TEMPLATE_MOST}", source.len()));
    }
    let (mut tokens, mut brackets, mut begins) = (0_usize, 0_usize, false);
    // Blocks that are open, with their branches.
    let mut blocks: Vec<usize> = Vec::new();
    for token in tokenize(source, false, syntax) {
        let (token, span) = token.map_err(|error| unread(source, &error))?;
        tokens += 1;
        match token {
            Token::VariableStart | Token::BlockStart => (tokens, brackets) = (0, 0),
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen => brackets += 1,
            Token::BracketClose | Token::ParenClose | Token::BraceClose => {
                brackets = brackets.saturating_sub(1);
            }
            Token::Ident(word) if begins => match word {
                "for" | "if" => blocks.push(1),
                "elif" => blocks.iter_mut().next_back().into_iter().for_each(|branches| *branches += 1),
                "endfor" | "endif" => drop(blocks.pop()),
                "else" | "break" | "continue" => {}
                other => return refused(place(span), format!("`{other}` is refused: {}", hint(other))),
            },
            _ => {}
        }
        begins = matches!(token, Token::BlockStart);
        if tokens > TOKENS_MOST {
            return refused(place(span), format!("an expression has at most {TOKENS_MOST} words and signs"));
        }
        if brackets > BRACKETS_MOST {
            return refused(
                place(span),
                format!("at most {BRACKETS_MOST} brackets are inside of each other"),
            );
        }
        if blocks.iter().sum::<usize>() > BLOCKS_MOST {
            return refused(place(span), format!("at most {BLOCKS_MOST} blocks are inside of each other"));
        }
    }
    Ok(())
}

struct Compiler<'a> {
    source: &'a Bytes,
    steps: Vec<Step>,
    /// Of each loop around: where its next round begins, and the steps that leave it.
    loops: Vec<(usize, Vec<usize>)>,
}

impl Compiler<'_> {
    fn add(&mut self, step: Step) -> usize {
        self.steps.push(step);
        self.steps.len() - 1
    }

    /// Lets a step that jumps go on at the next one.
    fn land(&mut self, step: usize) {
        let next = self.steps.len();
        match &mut self.steps[step] {
            Step::Unless(_, to) | Step::Jump(to) | Step::Begin(_, to) | Step::Next(to) | Step::Break(to) => {
                *to = next;
            }
            Step::Text(_) | Step::Show(_) => unreachable!("only jumps are landed"),
        }
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) -> Result<(), Halt> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Stmt<'_>) -> Result<(), Halt> {
        match statement {
            Stmt::Template(template) => self.statements(&template.children)?,
            Stmt::EmitRaw(text) => drop(self.add(Step::Text(self.source.slice_ref(text.raw.as_bytes())))),
            Stmt::EmitExpr(shown) => drop(self.add(Step::Show(term(&shown.expr)?))),
            Stmt::IfCond(branch) => self.branch(branch)?,
            Stmt::ForLoop(rounds) => self.rounds(rounds, place(rounds.span()))?,
            Stmt::Break(leave) => {
                let step = self.steps.len();
                let Some((_, leaving)) = self.loops.last_mut() else { return outside(place(leave.span())) };
                leaving.push(step);
                self.add(Step::Break(0));
            }
            Stmt::Continue(go_on) => {
                let Some((next, _)) = self.loops.last() else { return outside(place(go_on.span())) };
                self.add(Step::Jump(*next));
            }
            _ => return refused(0..0, "has a statement that is refused"),
        }
        Ok(())
    }

    fn branch(&mut self, branch: &IfCond<'_>) -> Result<(), Halt> {
        let test = self.add(Step::Unless(term(&branch.expr)?, 0));
        self.statements(&branch.true_body)?;
        let behind = (!branch.false_body.is_empty()).then(|| self.add(Step::Jump(0)));
        self.land(test);
        self.statements(&branch.false_body)?;
        behind.into_iter().for_each(|jump| self.land(jump));
        Ok(())
    }

    fn rounds(&mut self, rounds: &ForLoop<'_>, place: Place) -> Result<(), Halt> {
        if rounds.recursive {
            return refused(place, "`recursive` is refused: write a loop for each level");
        }
        let over = term(&rounds.iter)?;
        let parts = match &over.kind {
            Kind::List(terms) => terms.iter().all(Term::is_part),
            _ => over.is_part(),
        };
        if !parts {
            let problem = "a loop goes over what is there: a variable, a part of one, what `split`, `sort` and the like \
                           make of it, `range`, or a list of such; not over what an expression makes";
            return refused(over.place, problem);
        }
        let only = rounds.filter_expr.as_ref().map(term).transpose()?;
        let begin = self.add(Step::Begin(Loop { names: names(&rounds.target)?, over, only }, 0));
        let next = self.add(Step::Next(0));
        self.loops.push((next, Vec::new()));
        self.statements(&rounds.body)?;
        let leaving = self.loops.pop().map(|(_, leaving)| leaving).unwrap_or_default();
        self.add(Step::Jump(next));
        self.land(begin);
        self.statements(&rounds.else_body)?;
        self.land(next);
        leaving.into_iter().for_each(|step| self.land(step));
        Ok(())
    }
}

fn outside(place: Place) -> Result<(), Halt> {
    refused(place, "there is no loop around it")
}

fn names(target: &Expr<'_>) -> Result<Names, Halt> {
    let name = |target: &Expr<'_>| match target {
        Expr::Var(name) => Ok(name.id.into()),
        other => refused(place(other.span()), "a loop names its elements, or each part of them"),
    };
    match target {
        Expr::List(list) => Ok(Names::Each(list.items.iter().map(name).collect::<Result<_, Halt>>()?)),
        one => name(one).map(Names::One),
    }
}

fn boxed(expression: &Expr<'_>) -> Result<Box<Term>, Halt> {
    term(expression).map(Box::new)
}

fn terms(expressions: &[Expr<'_>]) -> Result<Vec<Term>, Halt> {
    expressions.iter().map(term).collect()
}

/// Where an expression stands; the parser lets some begin too early.
fn whole(expression: &Expr<'_>) -> Place {
    let Place { start, end } = place(expression.span());
    let first = match expression {
        Expr::BinOp(of) => Some(&of.left),
        Expr::Compare(of) => Some(&of.expr),
        Expr::IfExpr(of) => Some(&of.true_expr),
        _ => None,
    };
    first.map_or(start, |first| place(first.span()).start)..end
}

fn term(expression: &Expr<'_>) -> Result<Term, Halt> {
    let place = whole(expression);
    let kind = match expression {
        Expr::Const(constant) => Kind::Constant(constant.value.clone()),
        Expr::Var(name) if name.id == "loop" => return refused(place, LOOP),
        Expr::Var(name) => Kind::Variable(name.id.to_owned()),
        Expr::GetAttr(of) => match &of.expr {
            Expr::Var(name) if name.id == "loop" => {
                match Round::ALL.iter().find(|(name, _)| *name == of.name) {
                    Some((_, round)) => Kind::Round(*round),
                    None => return refused(place, LOOP),
                }
            }
            part => {
                let key = Term { place: place.clone(), kind: Kind::Constant(of.name.into()) };
                Kind::Item(boxed(part)?, Box::new(key))
            }
        },
        Expr::GetItem(of) => Kind::Item(boxed(&of.expr)?, boxed(&of.subscript_expr)?),
        Expr::Slice(of) if of.step.is_some() => {
            return refused(place, "a slice has no step; `reverse` turns a list around");
        }
        Expr::Slice(of) => {
            let end = |end: &Option<Expr<'_>>| end.as_ref().map(boxed).transpose();
            Kind::Slice(boxed(&of.expr)?, [end(&of.start)?, end(&of.stop)?])
        }
        Expr::UnaryOp(of) => match of.op {
            UnaryOpKind::Not => Kind::Not(boxed(&of.expr)?),
            UnaryOpKind::Neg => Kind::Negative(boxed(&of.expr)?),
        },
        Expr::BinOp(of) => binary(of.op, boxed(&of.left)?, boxed(&of.right)?),
        Expr::Compare(_) => {
            return refused(place, "comparisons have `and` between them, as in `a < b and b < c`");
        }
        Expr::IfExpr(of) => {
            let nothing = || Term { place: place.clone(), kind: Kind::Constant(Value::from("")) };
            let no = of.false_expr.as_ref().map(term).transpose()?.unwrap_or_else(nothing);
            Kind::Choice(Box::new([term(&of.test_expr)?, term(&of.true_expr)?, no]))
        }
        Expr::Filter(_) | Expr::Test(_) | Expr::Call(_) => applied(expression, &place)?,
        Expr::List(list) => Kind::List(terms(&list.items)?),
        Expr::Tuple(list) => Kind::List(terms(&list.items)?),
        Expr::Map(map) => Kind::Map(terms(&map.keys)?.into_iter().zip(terms(&map.values)?).collect()),
    };
    Ok(Term { place, kind })
}

const LOOP: &str = "of `loop` there are index, index0, revindex, revindex0, first, last and length";

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
    Kind::Two(operator, one, other)
}

/// A filter, a test or a call.
fn applied(expression: &Expr<'_>, place: &Place) -> Result<Kind, Halt> {
    let counted = |what: &str, takes: std::ops::RangeInclusive<usize>, got: usize| match takes.contains(&got)
    {
        true => Ok(()),
        false if takes.start() == takes.end() => {
            refused(place.clone(), format!("`{what}` takes {} arguments, not {got}", takes.start()))
        }
        false => {
            let (least, most) = (takes.start(), takes.end());
            refused(place.clone(), format!("`{what}` takes {least} to {most} arguments, not {got}"))
        }
    };
    match expression {
        Expr::Filter(of) => {
            let Some(filter) = FILTERS.iter().find(|filter| filter.name == of.name) else {
                let names: Vec<&str> = FILTERS.iter().map(|filter| filter.name).collect();
                return refused(
                    place.clone(),
                    format!("no filter `{}`; there are {}", of.name, names.join(", ")),
                );
            };
            let Some(value) = &of.expr else { return refused(place.clone(), "a filter of nothing") };
            let (values, attribute) = arguments(&of.args, filter.attribute)?;
            counted(of.name, filter.takes.clone(), values.len())?;
            Ok(Kind::Filter(filter, boxed(value)?, values, attribute))
        }
        Expr::Test(of) => {
            let Some(test) = TESTS.iter().find(|test| test.name == of.name) else {
                let names: Vec<&str> = TESTS.iter().map(|test| test.name).collect();
                return refused(
                    place.clone(),
                    format!("no test `{}`; there are {}", of.name, names.join(", ")),
                );
            };
            let (values, _) = arguments(&of.args, false)?;
            counted(of.name, test.takes..=test.takes, values.len())?;
            Ok(Kind::Test(test, boxed(&of.expr)?, values))
        }
        Expr::Call(of) if matches!(&of.expr, Expr::Var(name) if name.id == "range") => {
            let (values, _) = arguments(&of.args, false)?;
            counted("range", 1..=3, values.len())?;
            Ok(Kind::Range(values))
        }
        _ => refused(
            place.clone(),
            "nothing can be called but `range`; what changes a value stands behind `|`",
        ),
    }
}

fn arguments(given: &[CallArg<'_>], attribute: bool) -> Result<(Vec<Term>, Option<String>), Halt> {
    let (mut values, mut named) = (Vec::new(), None);
    for argument in given {
        match argument {
            CallArg::Pos(value) => values.push(term(value)?),
            CallArg::Kwarg("attribute", Expr::Const(name)) if attribute && name.value.as_str().is_some() => {
                named = name.value.as_str().map(str::to_owned);
            }
            CallArg::Kwarg(name, value) => {
                let takes = if attribute { "`attribute` alone, as a text in quotes" } else { "none" };
                return refused(
                    place(value.span()),
                    format!("argument `{name}`: by its name it takes {takes}"),
                );
            }
            CallArg::PosSplat(value) | CallArg::KwargSplat(value) => {
                return refused(place(value.span()), "arguments are written out one by one");
            }
        }
    }
    Ok((values, named))
}
