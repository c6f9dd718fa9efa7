//! Names and kinds: an expression checked against the registries and the columns there are.

use anabranch_rows::{Key, Kind};
use anabranch_text::{Problem, Problems, quote};

use super::Scope;
use super::ast::{Binary, Compare, Expr, Name, Pattern, Pred, Unary};
use super::graph::{At, Graph, Node};
use super::pattern::{Matcher, Source};
use super::set::Set;
use crate::registry::{KeyKind, ParamEntry, Shape, Status};
use crate::value::Scalar;

/// Turns checked expressions into nodes of a graph.
pub(super) struct Checker<'a> {
    scope: Scope<'a>,
    path: String,
    problems: &'a mut Problems,
    graph: Graph,
}

/// A node, and the kind of its values. An untyped null has any kind.
#[derive(Clone, Copy)]
struct TypedNode {
    at: At,
    kind: Option<Kind>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(scope: Scope<'a>, place: &str, problems: &'a mut Problems) -> Checker<'a> {
        Checker { scope, path: place.to_owned(), problems, graph: Graph::default() }
    }

    /// The nodes of an expression.
    pub(super) fn compile_expr(mut self, expr: &Expr) -> Option<(Graph, At)> {
        let typed = self.expr(expr)?;
        Some((self.graph, typed.at))
    }

    /// The nodes of a predicate.
    pub(super) fn compile_pred(mut self, pred: &Pred) -> Option<(Graph, At)> {
        let at = self.pred(pred)?;
        Some((self.graph, at))
    }

    fn expr(&mut self, expr: &Expr) -> Option<TypedNode> {
        match expr {
            Expr::Null => Some(TypedNode { at: self.graph.add(Node::Null), kind: None }),
            Expr::Const(value) => {
                Some(TypedNode { at: self.graph.value(value.clone()), kind: Some(value.kind()) })
            }
            Expr::Key(name) => self.key(name),
            Expr::Param(name) => {
                let entry = self.param(name)?;
                if entry.shape == Shape::List {
                    let what = format!("parameter {} (`{}`) is a list", entry.id, entry.name);
                    return self.error(what, Some(format!("ask for its items: `x in ${}`", entry.name)));
                }
                let at = self.graph.add(Node::Param(entry.index, entry.kind));
                Some(TypedNode { at, kind: Some(entry.kind) })
            }
            Expr::Unary(op @ (Unary::Lower | Unary::Upper), x) => {
                let x = self.text(x, "x", op.name())?;
                Some(TypedNode { at: self.graph.add(Node::Unary(*op, x)), kind: Some(Kind::Text) })
            }
            Expr::Unary(Unary::Length, x) => {
                let x = self.text(x, "x", "length")?;
                Some(TypedNode { at: self.graph.add(Node::Unary(Unary::Length, x)), kind: Some(Kind::Int) })
            }
            Expr::Now => Some(float(self.graph.add(Node::Now))),
            Expr::Hash(seed, x) => {
                let x = self.below("x", |c| c.expr(x))?;
                if x.kind == Some(Kind::Bool) {
                    let what = "`hash` takes numbers and strings, not a bool".to_owned();
                    return self.below("x", |c| c.error(what, None));
                }
                Some(TypedNode { at: self.graph.add(Node::Hash(*seed, x.at)), kind: Some(Kind::Int) })
            }
            Expr::Unary(op, x) => {
                let x = self.number(x, "x", op.name())?;
                Some(float(self.graph.add(Node::Unary(*op, x))))
            }
            Expr::Binary(Binary::Coalesce, a, b) => {
                let (a, b) = (self.below("a", |c| c.expr(a)), self.below("b", |c| c.expr(b)));
                let (a, b, kind) = self.alike(a?, b?, "coalesce")?;
                Some(TypedNode { at: self.graph.add(Node::Coalesce(a, b)), kind })
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.number(a, "a", op.name()), self.number(b, "b", op.name()));
                Some(float(self.graph.add(Node::Binary(*op, a?, b?))))
            }
            Expr::Clamp(parts) => self.clamp(parts),
            Expr::If(cond, then, other) => {
                let cond = self.below("cond", |c| c.pred(cond));
                let then = self.below("then", |c| c.expr(then));
                let other = self.below("else", |c| c.expr(other));
                let (then, other, kind) = self.alike(then?, other?, "if")?;
                Some(TypedNode { at: self.graph.add(Node::If(cond?, then, other)), kind })
            }
        }
    }

    fn pred(&mut self, pred: &Pred) -> Option<At> {
        match pred {
            Pred::Const(value) => Some(self.graph.value(Scalar::Bool(*value))),
            Pred::And(a, b) => {
                let (a, b) = (self.below("a", |c| c.pred(a)), self.below("b", |c| c.pred(b)));
                Some(self.graph.add(Node::And(a?, b?)))
            }
            Pred::Or(a, b) => {
                let (a, b) = (self.below("a", |c| c.pred(a)), self.below("b", |c| c.pred(b)));
                Some(self.graph.add(Node::Or(a?, b?)))
            }
            Pred::Not(x) => {
                let x = self.below("x", |c| c.pred(x))?;
                Some(self.graph.add(Node::Not(x)))
            }
            Pred::Compare(op, a, b) => self.compare(*op, a, b),
            Pred::In(value, list) => self.one_of(value, list),
            Pred::InParam(value, list) => self.one_of_param(value, list),
            Pred::IsNull(x) => {
                let x = self.below("x", |c| c.expr(x))?;
                Some(self.graph.add(Node::IsNull(x.at)))
            }
            Pred::NotNull(x) => {
                let x = self.below("x", |c| c.expr(x))?;
                let null = self.graph.add(Node::IsNull(x.at));
                Some(self.graph.add(Node::Not(null)))
            }
            Pred::Regex { text, pattern, ignore_case } => {
                let text = self.regex_text(text);
                let pattern = self.below("pattern", |c| c.pattern(pattern, *ignore_case));
                Some(self.graph.add_regex(text?, pattern?))
            }
        }
    }

    fn key(&mut self, name: &Name) -> Option<TypedNode> {
        let keys = self.scope.keys;
        let entry = match name {
            Name::Id(id) => keys.get(Key(*id)),
            Name::Name(name) => keys.named(name),
        };
        let Some(entry) = entry else {
            let near = self.near(name, keys.iter().map(|entry| (entry.key.0, entry.name.as_str())));
            let help = near.unwrap_or_else(|| "keys are registered in keys.toml".to_owned());
            return self.error(format!("there is no key {}", shown(name)), Some(help));
        };
        let what = format!("key {} (`{}`)", entry.key, entry.name);
        self.status(&what, entry.status, entry.allow_read)?;
        if entry.status == Status::Deprecated {
            let help = entry.replaced_by.map(|key| format!("use key {key}"));
            self.warn(format!("{what} is deprecated"), help);
        }
        let KeyKind::Column(registered) = entry.kind else {
            return self.error(format!("{what} is a feature bundle, which cannot be computed with"), None);
        };
        let Some(kind) = self.scope.schema.kind(entry.key) else {
            let help = "no node before this one makes it".to_owned();
            self.warn(format!("{what} is null in all rows here"), Some(help));
            return Some(TypedNode { at: self.graph.add(Node::Null), kind: Some(registered) });
        };
        Some(TypedNode { at: self.graph.add(Node::Column(entry.key, kind)), kind: Some(kind) })
    }

    fn param(&mut self, name: &Name) -> Option<&'a ParamEntry> {
        let params = self.scope.params;
        let entry = match name {
            Name::Id(id) => params.get(*id),
            Name::Name(name) => params.named(name),
        };
        let Some(entry) = entry else {
            let near = self.near(name, params.iter().map(|entry| (entry.id, entry.name.as_str())));
            let help = near.unwrap_or_else(|| "parameters are registered in params.toml".to_owned());
            return self.error(format!("there is no parameter {}", shown(name)), Some(help));
        };
        let what = format!("parameter {} (`{}`)", entry.id, entry.name);
        self.status(&what, entry.status, entry.allow_read)?;
        if entry.status == Status::Deprecated {
            self.warn(format!("{what} is deprecated"), None);
        }
        Some(entry)
    }

    fn status(&mut self, what: &str, status: Status, allow_read: bool) -> Option<()> {
        if status == Status::Blocked {
            return self.error(format!("{what} is blocked"), None);
        }
        if !allow_read {
            let help = "its registry entry says allow_read = false".to_owned();
            return self.error(format!("{what} may not be read"), Some(help));
        }
        Some(())
    }

    /// An operand that must be a number, as a float.
    fn number(&mut self, expr: &Expr, field: &str, op: &str) -> Option<At> {
        self.below(field, |checker| {
            let typed = checker.expr(expr)?;
            match typed.kind {
                None | Some(Kind::Float) => Some(typed.at),
                Some(Kind::Int) => Some(checker.graph.add(Node::ToFloat(typed.at))),
                Some(kind) => checker.error(format!("`{op}` takes numbers, not {}", one(kind)), None),
            }
        })
    }

    /// An operand that must be a string.
    fn text(&mut self, expr: &Expr, field: &str, op: &str) -> Option<At> {
        self.below(field, |checker| {
            let typed = checker.expr(expr)?;
            match typed.kind {
                None | Some(Kind::Text) => Some(typed.at),
                Some(kind) => checker.error(format!("`{op}` takes strings, not {}", one(kind)), None),
            }
        })
    }

    /// The text of a regex, which a plan may write as a bare key.
    fn regex_text(&mut self, text: &Expr) -> Option<At> {
        if let Expr::Key(name) = text {
            let typed = self.key(name)?;
            return match typed.kind {
                None | Some(Kind::Text) => Some(typed.at),
                Some(kind) => self.error(format!("`regex` takes strings, not {}", one(kind)), None),
            };
        }
        self.text(text, "x", "regex")
    }

    /// Converts two operands to one kind: integers become floats beside floats, an untyped null takes the other's kind.
    fn alike(&mut self, a: TypedNode, b: TypedNode, op: &str) -> Option<(At, At, Option<Kind>)> {
        match (a.kind, b.kind) {
            (None, kind) | (kind, None) => Some((a.at, b.at, kind)),
            (Some(Kind::Int), Some(Kind::Float)) => {
                Some((self.graph.add(Node::ToFloat(a.at)), b.at, Some(Kind::Float)))
            }
            (Some(Kind::Float), Some(Kind::Int)) => {
                Some((a.at, self.graph.add(Node::ToFloat(b.at)), Some(Kind::Float)))
            }
            (Some(left), Some(right)) if left == right => Some((a.at, b.at, Some(left))),
            (Some(left), Some(right)) => self
                .error(format!("`{op}` of {} and {}: both must be of one kind", one(left), one(right)), None),
        }
    }

    fn clamp(&mut self, parts: &[Expr; 3]) -> Option<TypedNode> {
        let [x, low, high] = parts;
        let x = self.number(x, "x", "clamp");
        let low = self.number(low, "lo", "clamp");
        let high = self.number(high, "hi", "clamp");
        let (x, low, high) = (x?, low?, high?);
        if let (Some(Scalar::Float(low)), Some(Scalar::Float(high))) =
            (self.graph.constant(low), self.graph.constant(high))
            && low > high
        {
            return self.error(format!("`clamp` from {low} to {high} is empty"), None);
        }
        let above = self.graph.add(Node::Binary(Binary::Max, x, low));
        Some(float(self.graph.add(Node::Binary(Binary::Min, above, high))))
    }

    fn compare(&mut self, op: Compare, a: &Expr, b: &Expr) -> Option<At> {
        let left = self.below("a", |c| c.expr(a));
        let right = self.below("b", |c| c.expr(b));
        let (left, right) = (left?, right?);
        let number = |kind| matches!(kind, Kind::Int | Kind::Float);
        if let (Some(left), Some(right)) = (left.kind, right.kind)
            && left != right
            && !(number(left) && number(right))
        {
            return self.error(format!("{} is compared with {}", one(left), one(right)), None);
        }
        let ordered = !matches!(op, Compare::Eq | Compare::Ne);
        if left.kind.or(right.kind) == Some(Kind::Bool) && ordered {
            let what = format!("bools cannot be compared with {}", op.symbol());
            return self.error(what, Some("use == or !=".to_owned()));
        }
        // Only a literal null tests whether the other side is null.
        let asked = match (a, b) {
            (Expr::Null, _) => Some(right.at),
            (_, Expr::Null) => Some(left.at),
            _ => None,
        };
        let Some(asked) = asked else { return Some(self.graph.add(Node::Compare(op, left.at, right.at))) };
        if ordered {
            return Some(self.graph.value(Scalar::Bool(false)));
        }
        let null = self.graph.add(Node::IsNull(asked));
        Some(if op == Compare::Eq { null } else { self.graph.add(Node::Not(null)) })
    }

    fn one_of(&mut self, value: &Expr, list: &[Scalar]) -> Option<At> {
        let value = self.below("lhs", |c| c.expr(value))?;
        let Some(first) = list.first() else { return Some(self.graph.value(Scalar::Bool(false))) };
        let number = |kind| matches!(kind, Kind::Int | Kind::Float);
        let items = if first.kind() == Kind::Text { "strings" } else { "numbers" };
        let kind = value.kind.unwrap_or(first.kind());
        if kind != first.kind() && !(number(kind) && number(first.kind())) {
            return self.error(format!("{} is looked up in a list of {items}", one(kind)), None);
        }
        Some(self.graph.add_in(value.at, Set::new(list, kind)))
    }

    fn one_of_param(&mut self, value: &Expr, list: &Name) -> Option<At> {
        let value = self.below("lhs", |c| c.expr(value));
        let entry = self.below("list", |c| {
            let entry = c.param(list)?;
            if entry.shape == Shape::List {
                return Some(entry);
            }
            let what =
                format!("parameter {} (`{}`) is {}, not a list", entry.id, entry.name, one(entry.kind));
            c.error(what, Some("lists have the type int_list or string_list in params.toml".to_owned()))
        });
        let (value, entry) = (value?, entry?);
        let kind = value.kind.unwrap_or(entry.kind);
        if kind != entry.kind && (kind, entry.kind) != (Kind::Float, Kind::Int) {
            let items = if entry.kind == Kind::Text { "strings" } else { "integers" };
            return self.error(format!("{} is looked up in a list of {items}", one(kind)), None);
        }
        Some(self.graph.add(Node::InParam(value.at, entry.index, kind)))
    }

    fn pattern(&mut self, pattern: &Pattern, ignore_case: bool) -> Option<Matcher> {
        let source = match pattern {
            Pattern::Literal(pattern) => Source::Literal(pattern.clone()),
            Pattern::Param(name) => {
                let entry = self.param(name)?;
                if entry.kind != Kind::Text || entry.shape == Shape::List {
                    let is = if entry.shape == Shape::List { "a list" } else { one(entry.kind) };
                    let what = format!("parameter {} (`{}`) is {is}", entry.id, entry.name);
                    return self.error(what, Some("a pattern is a string".to_owned()));
                }
                Source::Param(entry.index, entry.name.clone())
            }
        };
        match Matcher::new(source, ignore_case) {
            Ok(matcher) => Some(matcher),
            Err(cause) => self.error(format!("not a regex: {cause}"), None),
        }
    }

    fn below<T>(&mut self, field: &str, check: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.path.len();
        self.path.push('.');
        self.path.push_str(field);
        let value = check(self);
        self.path.truncate(before);
        value
    }

    fn error<T>(&mut self, what: String, help: Option<String>) -> Option<T> {
        self.problems.error(Problem { help, ..Problem::new(&self.path, what) });
        None
    }

    fn near<'n>(&self, name: &Name, known: impl Iterator<Item = (u32, &'n str)>) -> Option<String> {
        match name {
            Name::Name(name) => self.problems.did_you_mean(name, known.map(|(_, name)| name)),
            Name::Id(id) => {
                let known: Vec<(String, &str)> = known.map(|(id, name)| (id.to_string(), name)).collect();
                let near = self.problems.closest(&id.to_string(), known.iter().map(|(id, _)| id.as_str()))?;
                let (id, name) = known.iter().find(|(id, _)| id == near)?;
                Some(format!("did you mean {id} (`{name}`)?"))
            }
        }
    }

    fn warn(&mut self, what: String, help: Option<String>) {
        self.problems.warn(Problem { help, ..Problem::new(&self.path, what) });
    }
}

fn float(at: At) -> TypedNode {
    TypedNode { at, kind: Some(Kind::Float) }
}

/// A kind with its article.
fn one(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "an int",
        Kind::Float => "a float",
        Kind::Bool => "a bool",
        Kind::Text => "a string",
    }
}

fn shown(name: &Name) -> String {
    match name {
        Name::Id(id) => id.to_string(),
        Name::Name(name) => quote(name),
    }
}
