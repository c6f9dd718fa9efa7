//! Adds locations to calls of ops and of functions that make expressions.

use oxc_ast::ast::{
    Argument, CallExpression, Expression, NewExpression, ObjectExpression, ObjectPropertyKind, PropertyKey,
    PropertyKind,
};
use oxc_ast_visit::VisitJs;
use oxc_span::{GetSpan, Span};

use super::lift::bare;
use super::walk::Walk;
use crate::job::At;

/// Functions that make expressions.
const FUNCTIONS: [&str; 18] = [
    "coalesce", "regex", "min", "max", "abs", "log", "exp", "pow", "clamp", "lower", "upper", "floor",
    "ceil", "round", "mod", "now", "hash", "length",
];

/// The way in which a call gets its location.
enum CallPlace {
    /// By its name and its options.
    Name(Span),
    /// As a whole.
    Whole,
}

impl<'a> Walk<'_, 'a> {
    /// Walks the part of a call after the callee.
    pub(super) fn call(&mut self, it: &CallExpression<'a>) {
        if let Some(types) = &it.type_arguments {
            self.blank(types.span.start, types.span.end);
        }
        let told = self.told(&it.callee);
        let last = match (it.arguments.split_last(), &told) {
            // No argument is added: it may be the method of a list.
            (None, Some(told)) => {
                let site = match told {
                    CallPlace::Whole => self.site(it.span),
                    CallPlace::Name(name) => self.site(*name),
                };
                self.edits.insert(it.span.end - 1, format_args!("...__ab_at({site},[])"));
                return;
            }
            (Some((last, others)), Some(_)) => {
                others.iter().for_each(|argument| self.visit_argument(argument));
                last
            }
            _ => return self.visit_arguments(&it.arguments),
        };
        let value = match last {
            Argument::SpreadElement(spread) => Some(&spread.argument),
            other => other.as_expression(),
        };
        let (Some(value), Some(told)) = (value, told) else {
            return self.visit_argument(last);
        };
        let site = match told {
            CallPlace::Whole => self.site(it.span),
            CallPlace::Name(name) => {
                let options = match bare(value) {
                    Expression::ObjectExpression(object) => self.options(object),
                    _ => Vec::new(),
                };
                let site = self.site(name);
                self.sites[site].options = options;
                site
            }
        };
        self.open(value.span().start, value.span().start, format_args!("__ab_at({site},"));
        self.visit_expression(value);
        self.edits.insert(value.span().end, ")");
    }

    fn told(&self, callee: &Expression<'a>) -> Option<CallPlace> {
        match callee {
            Expression::Identifier(it) if it.name.as_str() == "definePlan" => Some(CallPlace::Name(it.span)),
            Expression::Identifier(it) => FUNCTIONS.contains(&it.name.as_str()).then_some(CallPlace::Whole),
            Expression::StaticMemberExpression(it) => {
                let of = match &it.object {
                    Expression::Identifier(object) => object.name.as_str(),
                    _ => "",
                };
                if matches!(of, "E" | "Pred") {
                    return Some(CallPlace::Whole);
                }
                let name = &it.property;
                self.methods.contains(name.name.as_str()).then_some(CallPlace::Name(name.span))
            }
            // It may be any name.
            Expression::ComputedMemberExpression(it) => Some(CallPlace::Name(it.expression.span())),
            _ => None,
        }
    }

    /// The options of a call that are written out.
    fn options(&self, object: &ObjectExpression<'a>) -> Vec<(String, At, At)> {
        let mut options = Vec::new();
        for property in &object.properties {
            let ObjectPropertyKind::ObjectProperty(it) = property else { continue };
            if it.computed || it.kind != PropertyKind::Init {
                continue;
            }
            let name = match &it.key {
                PropertyKey::StaticIdentifier(name) => name.name.as_str(),
                PropertyKey::StringLiteral(name) => name.value.as_str(),
                _ => continue,
            };
            options.push((name.to_owned(), self.at(it.key.span()), self.at(it.value.span())));
        }
        options
    }

    /// `new a.b(c)` becomes `new (a.b)(c)`: of a call in the place of `a.b`, `new` would take the called function.
    pub(super) fn construct(&mut self, it: &NewExpression<'a>) {
        let span = it.callee.span();
        let wrapped =
            it.callee.is_member_expression() || matches!(it.callee, Expression::TSNonNullExpression(_));
        if wrapped {
            self.edits.insert(span.start, "(");
        }
        self.visit_expression(&it.callee);
        if wrapped {
            self.edits.insert(span.end, ")");
        }
        if let Some(types) = &it.type_arguments {
            self.blank(types.span.start, types.span.end);
        }
        it.arguments.iter().for_each(|argument: &Argument<'a>| self.visit_argument(argument));
    }
}
