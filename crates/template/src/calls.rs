//! Filters, tests, methods and functions as terms: they exist, and have the right number of arguments.

use std::ops::RangeInclusive;

use anabranch_text::closest;
use minijinja::machinery::ast::{Call, CallArg, Expr, Filter as FilterCall, Test as TestCall};

use crate::code::{Each, Kind, Mode, Place, Slot, Term};
use crate::compile::Compiler;
use crate::error::Halt;
use crate::filters::{self, Filter};
use crate::methods;
use crate::syntax::{place, refused};
use crate::template::Dialect;
use crate::tests::{self, Test};

/// The functions of the dataset dialect.
const FUNCTIONS: [&str; 3] = ["range", "namespace", "dict"];

fn check_count(name: &str, takes: &RangeInclusive<usize>, got: usize, place: &Place) -> Result<(), Halt> {
    let (least, most) = (*takes.start(), *takes.end());
    match takes.contains(&got) {
        true => Ok(()),
        false if least == most => {
            refused(place.clone(), format!("`{name}` takes {least} arguments, not {got}"))
        }
        false => refused(place.clone(), format!("`{name}` takes {least} to {most} arguments, not {got}")),
    }
}

/// A message about an unknown name.
fn unknown(what: &str, name: &str, names: &[&str]) -> String {
    match closest(name, names.iter().copied()) {
        Some(near) => format!("no {what} `{name}`; did you mean `{near}`?"),
        None => format!("no {what} `{name}`; there are {}", names.join(", ")),
    }
}

/// The same about a function, which may be a filter by another name.
fn unknown_function(name: &str) -> String {
    let filter = match name {
        "len" => "length",
        "str" => "string",
        "sorted" => "sort",
        "reversed" => "reverse",
        other => other,
    };
    match closest(filter, filters::names(Dialect::Dataset)) {
        Some(near) if closest(name, FUNCTIONS).is_none() => {
            format!("no function `{name}`; did you mean the filter `{near}`, as in `value|{near}`?")
        }
        _ => unknown("function", name, &FUNCTIONS),
    }
}

impl Compiler {
    pub(crate) fn filter(&mut self, of: &FilterCall<'_>, place: &Place) -> Result<Kind, Halt> {
        let value = match (&of.expr, self.filtered) {
            (Some(value), _) => self.term(value)?,
            (None, Some(slot)) => Term { place: place.clone(), kind: Kind::Local(slot) },
            (None, None) => return refused(place.clone(), "a filter of nothing"),
        };
        if !self.is_plain() {
            match of.name {
                "map" if matches!(of.args.first(), Some(CallArg::Pos(_))) => {
                    return self.map(value, &of.args, place);
                }
                "select" => return self.select(value, &of.args, Mode::Select, place),
                "reject" => return self.select(value, &of.args, Mode::Reject, place),
                "selectattr" => return self.select_attribute(value, &of.args, Mode::Select, place),
                "rejectattr" => return self.select_attribute(value, &of.args, Mode::Reject, place),
                _ => {}
            }
        }
        self.apply_filter(of.name, value, &of.args, place)
    }

    fn find_filter(&self, name: &str, place: &Place) -> Result<&'static Filter, Halt> {
        let Some(filter) = filters::find(name, self.dialect) else {
            let names = filters::names(self.dialect);
            let problem = match self.is_plain() {
                true => format!("no filter `{name}`; there are {}", names.join(", ")),
                false => unknown("filter", name, &names),
            };
            return refused(place.clone(), problem);
        };
        Ok(filter)
    }

    fn find_test(&self, name: &str, place: &Place) -> Result<&'static Test, Halt> {
        let Some(test) = tests::find(name, self.dialect) else {
            let names = tests::names(self.dialect);
            let problem = match self.is_plain() {
                true => format!("no test `{name}`; there are {}", names.join(", ")),
                false => unknown("test", name, &names),
            };
            return refused(place.clone(), problem);
        };
        Ok(test)
    }

    fn apply_filter(
        &mut self,
        name: &str,
        value: Term,
        given: &[CallArg<'_>],
        place: &Place,
    ) -> Result<Kind, Halt> {
        let filter = self.find_filter(name, place)?;
        let mut arguments = self.arguments(filter, given, place)?;
        let value = Box::new(value);
        if matches!(name, "default" | "d") {
            let flag = arguments.get_mut(1).and_then(Option::take).map(Box::new);
            let other = arguments.get_mut(0).and_then(Option::take).map(Box::new);
            return Ok(Kind::Default(value, other, flag));
        }
        Ok(Kind::Filter(filter, value, arguments))
    }

    /// The arguments of a filter, in the order of its parameters.
    fn arguments(
        &mut self,
        filter: &'static Filter,
        given: &[CallArg<'_>],
        place: &Place,
    ) -> Result<Vec<Option<Term>>, Halt> {
        let mut arguments: Vec<Option<Term>> = Vec::new();
        arguments.resize_with(filter.params.len(), || None);
        let mut positional = 0;
        for argument in given {
            match argument {
                CallArg::Pos(value) => {
                    let term = self.term(value)?;
                    match arguments.get_mut(positional) {
                        Some(argument) => *argument = Some(term),
                        None => arguments.push(Some(term)),
                    }
                    positional += 1;
                }
                CallArg::Kwarg(name, value) => {
                    let index = self.parameter(filter, name, value)?;
                    arguments[index] = Some(self.term(value)?);
                }
                CallArg::PosSplat(value) | CallArg::KwargSplat(value) => return splat(value),
            }
        }
        let takes = match (self.is_plain(), &filter.plain) {
            (true, Some(takes)) => takes.clone(),
            _ => 0..=if filter.variadic { usize::MAX } else { filter.params.len() },
        };
        check_count(filter.name, &takes, positional, place)?;
        match arguments[..filter.required].iter().position(Option::is_none) {
            Some(missing) if !self.is_plain() => refused(
                place.clone(),
                format!("`{}` needs the argument `{}`", filter.name, filter.params[missing]),
            ),
            _ => Ok(arguments),
        }
    }

    /// The index of a parameter that is given by its name.
    fn parameter(&self, filter: &Filter, name: &str, value: &Expr<'_>) -> Result<usize, Halt> {
        let index = filter.params.iter().position(|param| *param == name);
        if !self.is_plain() {
            return match (index, filter.params.is_empty()) {
                (Some(index), _) => Ok(index),
                (None, true) => refused(place(value.span()), format!("`{}` takes no arguments", filter.name)),
                (None, false) => refused(
                    place(value.span()),
                    format!(
                        "`{}` has no argument `{name}`; it takes {}",
                        filter.name,
                        filter.params.join(", ")
                    ),
                ),
            };
        }
        let is_text = matches!(value, Expr::Const(constant) if constant.value.as_str().is_some());
        match index {
            Some(index) if name == "attribute" && is_text => Ok(index),
            _ => {
                let takes = match filter.params.contains(&"attribute") {
                    true => "`attribute` alone, as a text in quotes",
                    false => "none",
                };
                refused(place(value.span()), format!("argument `{name}`: by its name it takes {takes}"))
            }
        }
    }

    fn each(&mut self, over: Term, mode: Mode, element: Slot, body: Term) -> Kind {
        Kind::Each(Box::new(Each { over, element, body, mode }))
    }

    /// `map('filter', ...)`: a filter per element.
    fn map(&mut self, over: Term, given: &[CallArg<'_>], place: &Place) -> Result<Kind, Halt> {
        let (name, rest) = leading_name(given, "map", place)?;
        let element = self.names.hidden();
        let value = Term { place: place.clone(), kind: Kind::Local(element) };
        let kind = self.apply_filter(&name, value, rest, place)?;
        Ok(self.each(over, Mode::Map, element, Term { place: place.clone(), kind }))
    }

    /// `select('test', ...)`: elements for which a test holds.
    fn select(&mut self, over: Term, given: &[CallArg<'_>], mode: Mode, place: &Place) -> Result<Kind, Halt> {
        let element = self.names.hidden();
        let value = Term { place: place.clone(), kind: Kind::Local(element) };
        let body = self.condition(value, given, place)?;
        Ok(self.each(over, mode, element, body))
    }

    /// `selectattr('field', 'test', ...)`: elements of which a field passes a test.
    fn select_attribute(
        &mut self,
        over: Term,
        given: &[CallArg<'_>],
        mode: Mode,
        place: &Place,
    ) -> Result<Kind, Halt> {
        let (path, rest) = leading_name(given, "selectattr", place)?;
        let element = self.names.hidden();
        let mut value = Term { place: place.clone(), kind: Kind::Local(element) };
        for part in path.split('.') {
            let key = filters::path_key(part);
            let key = Term { place: place.clone(), kind: Kind::Constant(key) };
            value = Term { place: place.clone(), kind: Kind::Item(Box::new(value), Box::new(key)) };
        }
        let body = self.condition(value, rest, place)?;
        Ok(self.each(over, mode, element, body))
    }

    fn condition(&mut self, value: Term, given: &[CallArg<'_>], place: &Place) -> Result<Term, Halt> {
        if given.is_empty() {
            return Ok(value);
        }
        let (name, rest) = leading_name(given, "select", place)?;
        let kind = self.apply_test(&name, value, rest, place)?;
        Ok(Term { place: place.clone(), kind })
    }

    pub(crate) fn test(&mut self, of: &TestCall<'_>, place: &Place) -> Result<Kind, Halt> {
        self.find_test(of.name, place)?;
        let value = self.term(&of.expr)?;
        self.apply_test(of.name, value, &of.args, place)
    }

    fn apply_test(
        &mut self,
        name: &str,
        value: Term,
        given: &[CallArg<'_>],
        place: &Place,
    ) -> Result<Kind, Halt> {
        let test = self.find_test(name, place)?;
        let arguments = self.positional(given)?;
        check_count(name, &(test.takes..=test.takes), arguments.len(), place)?;
        Ok(Kind::Test(test, Box::new(value), arguments))
    }

    /// Arguments that have no names.
    fn positional(&mut self, given: &[CallArg<'_>]) -> Result<Vec<Term>, Halt> {
        let mut values = Vec::new();
        for argument in given {
            match argument {
                CallArg::Pos(value) => values.push(self.term(value)?),
                CallArg::Kwarg(name, value) => {
                    return refused(
                        place(value.span()),
                        format!("argument `{name}`: by its name it takes none"),
                    );
                }
                CallArg::PosSplat(value) | CallArg::KwargSplat(value) => return splat(value),
            }
        }
        Ok(values)
    }

    pub(crate) fn call(&mut self, of: &Call<'_>, place: &Place) -> Result<Kind, Halt> {
        match &of.expr {
            Expr::Var(name) if name.id == "range" => {
                let values = self.positional(&of.args)?;
                check_count("range", &(1..=3), values.len(), place)?;
                Ok(Kind::Range(values))
            }
            _ if self.is_plain() => refused(
                place.clone(),
                "nothing can be called but `range`; what changes a value stands behind `|`",
            ),
            Expr::Var(name) if name.id == "dict" => self.dict(&of.args, place),
            Expr::Var(name) if name.id == "namespace" => {
                refused(place.clone(), "a namespace gets a name first, as in `{% set ns = namespace(n=0) %}`")
            }
            Expr::Var(name) => refused(place.clone(), unknown_function(name.id)),
            Expr::GetAttr(method) => {
                let values = self.positional(&of.args)?;
                if matches!(&method.expr, Expr::Var(name) if name.id == "loop") {
                    return match method.name {
                        "cycle" if !values.is_empty() && !self.loops.is_empty() => Ok(Kind::Cycle(values)),
                        "cycle" => refused(place.clone(), "`loop.cycle` takes values, inside of a loop"),
                        _ => refused(place.clone(), "of `loop` only `cycle` can be called"),
                    };
                }
                let Some(found) = methods::find(method.name) else {
                    return refused(place.clone(), unknown("method", method.name, &methods::names()));
                };
                check_count(method.name, &found.takes, values.len(), place)?;
                Ok(Kind::Method(found, self.boxed(&method.expr)?, values))
            }
            _ => refused(place.clone(), "only functions and methods of values can be called"),
        }
    }

    fn dict(&mut self, given: &[CallArg<'_>], whole: &Place) -> Result<Kind, Halt> {
        let mut entries = Vec::new();
        for argument in given {
            let CallArg::Kwarg(name, value) = argument else {
                return refused(whole.clone(), "`dict` takes entries by name, as in `dict(a=1)`");
            };
            let key = Term { place: place(value.span()), kind: Kind::Constant((*name).into()) };
            entries.push((key, self.term(value)?));
        }
        Ok(Kind::Map(entries))
    }
}

fn splat<T>(value: &Expr<'_>) -> Result<T, Halt> {
    refused(place(value.span()), "arguments are written out one by one")
}

/// The name that the arguments of `map`, `select` and the like begin with.
fn leading_name<'a, 'b>(
    given: &'a [CallArg<'b>],
    filter: &str,
    place: &Place,
) -> Result<(String, &'a [CallArg<'b>]), Halt> {
    match given.split_first() {
        Some((CallArg::Pos(Expr::Const(name)), rest)) if name.value.as_str().is_some() => {
            Ok((name.value.as_str().unwrap_or_default().to_owned(), rest))
        }
        _ => refused(place.clone(), format!("`{filter}` takes a name in quotes first")),
    }
}
