//! The smallest change that would make a predicate hold.

use anabranch_rows::{Key, Kind};

use super::Change;
use super::judge::Judge;
use super::values::json;
use anabranch_plan::Scalar;
use anabranch_plan::expr::{Compare, Expr, Pattern, Pred};

/// The most ways that are looked at.
const MOST: usize = 16;
/// The cost of a change to a value that has no distance.
const ODD: f64 = 1.0;
/// The cost of a change for which no value can be given: other changes are better advice.
const VAGUE: f64 = 4.0;

/// A required change.
#[derive(Clone)]
struct Step {
    change: Change,
    /// The column, and the value that it should have, if that is known.
    set: Option<(Key, Option<Scalar>)>,
    cost: f64,
}

/// Changes that are all required.
type Steps = Vec<Step>;

/// The smallest change that would make `pred` hold, tested where values are known.
pub(super) fn least(judge: &Judge<'_>, pred: &Pred) -> Option<Vec<Change>> {
    let mut found: Vec<Steps> = options(judge, pred, true).into_iter().flat_map(once_a_column).collect();
    found.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    let works = |steps: &&Steps| {
        let given = steps.iter().filter_map(|step| step.set.as_ref());
        let mut changed: Option<Judge<'_>> = None;
        for (key, value) in given {
            changed = Some(changed.as_ref().unwrap_or(judge).with(*key, value.as_ref()));
        }
        // A change without a known value cannot be tested.
        steps.iter().any(|step| step.set.is_none())
            || changed.is_some_and(|changed| changed.holds(pred) == Some(true))
    };
    let steps = found.iter().find(works)?;
    Some(steps.iter().map(|step| step.change.clone()).collect())
}

fn cost(steps: &Steps) -> f64 {
    steps.iter().map(|step| step.cost).sum()
}

/// If one column has several values, a list of steps for each of them.
fn once_a_column(steps: Steps) -> Vec<Steps> {
    let key = |step: &Step| step.set.as_ref().map(|(key, _)| *key);
    let twice = steps.iter().find_map(|step| {
        let own = key(step)?;
        (steps.iter().filter(|other| key(other) == Some(own)).count() > 1).then_some(own)
    });
    let Some(twice) = twice else { return vec![steps] };
    let all = steps.iter().enumerate().filter(|(_, step)| key(step) == Some(twice)).map(|(at, _)| at);
    let one = |chosen: usize| -> Steps {
        let stays = |at: usize, step: &Step| at == chosen || key(step) != Some(twice);
        let kept = steps.iter().enumerate().filter(|(at, step)| stays(*at, step));
        kept.map(|(_, step)| step.clone()).collect()
    };
    let mut options: Vec<Steps> = all.map(one).collect();
    options.truncate(MOST);
    options.into_iter().flat_map(once_a_column).take(MOST).collect()
}

/// Ways to have `pred` come out as `wanted`, each a list of things to change.
fn options(judge: &Judge<'_>, pred: &Pred, wanted: bool) -> Vec<Steps> {
    if judge.holds(pred) == Some(wanted) {
        return vec![Vec::new()];
    }
    let mut found = match (pred, wanted) {
        (Pred::And(a, b), true) | (Pred::Or(a, b), false) => {
            let (first, second) = (options(judge, a, wanted), options(judge, b, wanted));
            let both = |a: &Steps| {
                let joined = second.iter().map(|b| a.iter().chain(b).cloned().collect());
                joined.collect::<Vec<Steps>>()
            };
            first.iter().flat_map(both).collect()
        }
        (Pred::And(a, b), false) | (Pred::Or(a, b), true) => {
            let either = [a, b].into_iter().flat_map(|part| options(judge, part, wanted));
            either.collect()
        }
        (Pred::Not(x), wanted) => options(judge, x, !wanted),
        (leaf, wanted) => leaf_options(judge, leaf, wanted).into_iter().map(|step| vec![step]).collect(),
    };
    found.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    found.truncate(MOST);
    found
}

fn leaf_options(judge: &Judge<'_>, leaf: &Pred, wanted: bool) -> Vec<Step> {
    match leaf {
        Pred::Compare(op, a, b) => {
            let written_null = |expr: &Expr| matches!(expr, Expr::Null);
            match (written_null(a), written_null(b)) {
                (false, true) => null(judge, a, (*op == Compare::Eq) == wanted).into_iter().collect(),
                (true, false) => null(judge, b, (*op == Compare::Eq) == wanted).into_iter().collect(),
                _ => {
                    let op = if wanted { *op } else { negated(*op) };
                    let sides = [side(judge, a, op, b), side(judge, b, op.swapped(), a)];
                    sides.into_iter().flatten().collect()
                }
            }
        }
        Pred::IsNull(x) => null(judge, x, wanted).into_iter().collect(),
        Pred::NotNull(x) => null(judge, x, !wanted).into_iter().collect(),
        Pred::In(x, list) => member(judge, x, list, wanted).into_iter().collect(),
        Pred::Regex { text, pattern, .. } if judge.column(text).is_some() => {
            let pattern = match pattern {
                Pattern::Literal(pattern) => format!("{pattern:?}"),
                Pattern::Param(name) => {
                    let value = judge.value(&Expr::Param(name.clone())).flatten();
                    json(value.as_ref()).to_string()
                }
            };
            let needs = if wanted { "matching" } else { "not matching" };
            vec![step(judge, text, format!("{needs} {pattern}"), None, VAGUE)]
        }
        _ => Vec::new(),
    }
}

fn negated(op: Compare) -> Compare {
    match op {
        Compare::Eq => Compare::Ne,
        Compare::Ne => Compare::Eq,
        Compare::Lt => Compare::Ge,
        Compare::Le => Compare::Gt,
        Compare::Gt => Compare::Le,
        Compare::Ge => Compare::Lt,
    }
}

/// `expr` otherwise; `to` is a value of its column that would do.
fn step(judge: &Judge<'_>, expr: &Expr, needs: String, to: Option<Option<Scalar>>, cost: f64) -> Step {
    let column = judge.column(expr);
    let set = column.zip(to).map(|((key, _), to)| (key, to));
    let change = Change {
        what: judge.shown(expr),
        from: json(judge.value(expr).flatten().as_ref()),
        needs,
        to: set.as_ref().map(|(_, to)| json(to.as_ref())),
        param: None,
    };
    Step { change, set, cost }
}

/// Null, or not.
fn null(judge: &Judge<'_>, expr: &Expr, wanted: bool) -> Option<Step> {
    let (_, kind) = judge.column(expr)?;
    let any = match kind {
        Kind::Int => Scalar::Int(0),
        Kind::Float => Scalar::Float(0.0),
        Kind::Bool => Scalar::Bool(false),
        Kind::Text => Scalar::Text("".into()),
    };
    let (needs, to) = if wanted { ("null", None) } else { ("not null", Some(any)) };
    Some(step(judge, expr, needs.to_owned(), Some(to), ODD))
}

/// `expr` such that it compares so with `other` as that is.
fn side(judge: &Judge<'_>, expr: &Expr, op: Compare, other: &Expr) -> Option<Step> {
    let fixed = matches!(expr, Expr::Const(_) | Expr::Null);
    let bound = judge.value(other)??;
    if fixed || (judge.column(expr).is_none() && matches!(expr, Expr::Key(_))) {
        return None;
    }
    let own = judge.value(expr).flatten();
    let needs = format!("{} {}", op.symbol(), shown(&bound));
    let Some((_, kind)) = judge.column(expr) else {
        return Some(step(judge, expr, needs, None, VAGUE + distance(own.as_ref(), &bound)));
    };
    let to = beyond(op, &bound, kind)?;
    let cost = distance(own.as_ref(), &bound);
    let mut step = step(judge, expr, needs, Some(Some(to)), cost);
    if let (Expr::Param(_), Some(own)) = (other, &own) {
        let own = shown(own);
        step.change.param = Some(format!("{} {} {own}", judge.shown(other), op.swapped().symbol()));
    }
    Some(step)
}

fn shown(value: &Scalar) -> String {
    json(Some(value)).to_string()
}

/// The distance of two values, relative to their size.
fn distance(own: Option<&Scalar>, bound: &Scalar) -> f64 {
    let number = |value: &Scalar| match value {
        Scalar::Int(value) => Some(*value as f64),
        Scalar::Float(value) => Some(*value),
        Scalar::Bool(_) | Scalar::Text(_) => None,
    };
    let pair = own.and_then(number).zip(number(bound));
    pair.map_or(ODD, |(own, bound)| {
        let size = own.abs().max(bound.abs()).max(f64::MIN_POSITIVE);
        ((own - bound).abs() / size).min(2.0) / 2.0
    })
}

/// True if two values of a kind compare so.
pub(super) fn compares(op: Compare, a: &Scalar, b: &Scalar) -> bool {
    a.kind() == b.kind() && anabranch_plan::expr::compare(op, a, b)
}

/// A value of this kind for which the comparison with `bound` holds, if there is one.
pub(super) fn beyond(op: Compare, bound: &Scalar, kind: Kind) -> Option<Scalar> {
    match (kind, bound) {
        (Kind::Float, Scalar::Int(_) | Scalar::Float(_)) => {
            let bound = match bound {
                Scalar::Int(bound) => *bound as f64,
                Scalar::Float(bound) => *bound,
                Scalar::Bool(_) | Scalar::Text(_) => return None,
            };
            let value = match op {
                Compare::Lt => bound.next_down(),
                Compare::Gt | Compare::Ne => bound.next_up(),
                Compare::Le | Compare::Ge | Compare::Eq => bound,
            };
            value.is_finite().then_some(Scalar::Float(value))
        }
        (Kind::Int, Scalar::Int(bound)) => match op {
            Compare::Lt => bound.checked_sub(1),
            Compare::Gt => bound.checked_add(1),
            Compare::Ne => bound.checked_add(1).or(bound.checked_sub(1)),
            Compare::Le | Compare::Ge | Compare::Eq => Some(*bound),
        }
        .map(Scalar::Int),
        (Kind::Int, Scalar::Float(bound)) => {
            let value = match op {
                Compare::Lt => bound.ceil() - 1.0,
                Compare::Le => bound.floor(),
                Compare::Gt | Compare::Ne => bound.floor() + 1.0,
                Compare::Ge => bound.ceil(),
                Compare::Eq => *bound,
            };
            // A value that is out of range, or between two integers, fails the test.
            Some(Scalar::Int(value as i64))
        }
        (Kind::Bool, Scalar::Bool(bound)) => Some(Scalar::Bool(match op {
            Compare::Eq | Compare::Le | Compare::Ge => *bound,
            Compare::Ne => !bound,
            Compare::Lt => false,
            Compare::Gt => true,
        })),
        (Kind::Text, Scalar::Text(bound)) => Some(Scalar::Text(match op {
            Compare::Eq | Compare::Le | Compare::Ge => bound.clone(),
            Compare::Gt | Compare::Ne => format!("{bound} ").into(),
            Compare::Lt => "".into(),
        })),
        _ => None,
    }
}

/// One of a list, or none of it.
fn member(judge: &Judge<'_>, expr: &Expr, list: &[Scalar], wanted: bool) -> Option<Step> {
    let (key, kind) = judge.column(expr)?;
    let items: Vec<String> = list.iter().map(shown).collect();
    let own = judge.cell(key);
    let in_list =
        |value: &Scalar| judge.with(key, Some(value)).holds(&Pred::In(Box::new(expr.clone()), list.to_vec()));
    if wanted {
        let fits =
            |item: &&Scalar| beyond(Compare::Eq, item, kind).is_some_and(|to| in_list(&to) == Some(true));
        let near = |item: &&Scalar| distance(own.as_ref(), item);
        let item = list.iter().filter(fits).min_by(|a, b| near(a).total_cmp(&near(b)))?;
        let cost = distance(own.as_ref(), item);
        let needs = format!("in [{}]", items.join(", "));
        return Some(step(judge, expr, needs, Some(beyond(Compare::Eq, item, kind)), cost));
    }
    // One of the values just above each item is not in the list.
    let mut beside = list.iter().filter_map(|item| beyond(Compare::Gt, item, kind));
    let to = beside.find(|value| in_list(value) == Some(false))?;
    Some(step(judge, expr, format!("not in [{}]", items.join(", ")), Some(Some(to)), ODD))
}
