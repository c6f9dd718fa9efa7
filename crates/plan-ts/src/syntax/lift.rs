//! Replaces operators by calls, so that their meaning is decided when the code runs.
//!
//! Left-leaning chains (`a + b + c ..`, `a.b().c() ..`) can be as long as a file, so they are walked in a loop.

use std::fmt::{self, Display};

use oxc_ast::ast::{
    AssignmentExpression, AssignmentTarget, BinaryExpression, BinaryOperator, CallExpression, ChainElement,
    ComputedMemberExpression, ConditionalExpression, Expression, LogicalExpression, MemberExpression,
    NumericLiteral, StaticMemberExpression, TSTypeAssertion, TaggedTemplateExpression, UnaryExpression,
    UnaryOperator,
};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_span::{GetSpan, Span};

use super::edits::Slot;
use super::walk::Walk;

/// The translation of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It is evaluated.
    Value,
    /// It is called, assigned or deleted: if it is a member, its object matters.
    Kept,
}

/// An expression whose leftmost part is an expression.
enum Link<'e, 'a> {
    Binary(&'e BinaryExpression<'a>, LiftDecision),
    Logical(&'e LogicalExpression<'a>, Slot),
    Conditional(&'e ConditionalExpression<'a>, Slot),
    Static(&'e StaticMemberExpression<'a>, LiftDecision),
    Computed(&'e ComputedMemberExpression<'a>),
    Private,
    Call(&'e CallExpression<'a>),
    Tagged(&'e TaggedTemplateExpression<'a>),
    /// The text after the inner expression is a type.
    Typed(Span),
    /// The inner expression is in parentheses.
    Plain,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LiftDecision {
    Yes,
    No,
}

impl<'a> Walk<'_, 'a> {
    /// Walks over an expression.
    pub(super) fn expression(&mut self, outer: &Expression<'a>, place: Place) {
        let mut links = Vec::new();
        let (mut inner, mut place) = (outer, place);
        while let Some((link, left)) = self.enter(inner, place) {
            place = match link {
                Link::Call(_) | Link::Tagged(_) => Place::Kept,
                Link::Typed(_) | Link::Plain => place,
                _ => Place::Value,
            };
            links.push((link, left));
            inner = left;
        }
        match inner {
            Expression::TSTypeAssertion(it) => self.assertion(it, place),
            other => walk_js::walk_expression(self, other),
        }
        while let Some((link, left)) = links.pop() {
            self.leave(&link, left.span());
        }
    }

    /// The outermost link of an expression and its left part, if it has one.
    fn enter<'e>(
        &mut self,
        it: &'e Expression<'a>,
        place: Place,
    ) -> Option<(Link<'e, 'a>, &'e Expression<'a>)> {
        Some(match it {
            Expression::BinaryExpression(it) => {
                let lifted = if is_lifted(it.operator) { LiftDecision::Yes } else { LiftDecision::No };
                if lifted == LiftDecision::Yes {
                    let site = self.site(it.span);
                    let call = format_args!("__ab_op({site},\"{}\",", it.operator.as_str());
                    self.open(it.span.start, it.span.start, call);
                }
                (Link::Binary(it, lifted), &it.left)
            }
            Expression::LogicalExpression(it) => {
                (Link::Logical(it, self.edits.slot(it.span.start)), &it.left)
            }
            Expression::ConditionalExpression(it) => {
                (Link::Conditional(it, self.edits.slot(it.span.start)), &it.test)
            }
            Expression::CallExpression(it) => (Link::Call(it), &it.callee),
            Expression::TaggedTemplateExpression(it) => (Link::Tagged(it), &it.tag),
            Expression::ParenthesizedExpression(it) => (Link::Plain, &it.expression),
            Expression::TSAsExpression(it) => (Link::Typed(it.span), &it.expression),
            Expression::TSSatisfiesExpression(it) => (Link::Typed(it.span), &it.expression),
            Expression::TSNonNullExpression(it) => (Link::Typed(it.span), &it.expression),
            Expression::TSInstantiationExpression(it) => (Link::Typed(it.span), &it.expression),
            Expression::ChainExpression(it) => match &it.expression {
                ChainElement::CallExpression(it) => (Link::Call(it), &it.callee),
                ChainElement::TSNonNullExpression(it) => (Link::Typed(it.span), &it.expression),
                other => self.enter_member(other.as_member_expression()?, place),
            },
            other => self.enter_member(other.as_member_expression()?, place),
        })
    }

    fn enter_member<'e>(
        &mut self,
        it: &'e MemberExpression<'a>,
        place: Place,
    ) -> (Link<'e, 'a>, &'e Expression<'a>) {
        match it {
            MemberExpression::ComputedMemberExpression(it) => (Link::Computed(it), &it.object),
            MemberExpression::PrivateFieldExpression(it) => (Link::Private, &it.object),
            MemberExpression::StaticMemberExpression(it) => {
                if place == Place::Kept || !is_registered(it) {
                    return (Link::Static(it, LiftDecision::No), &it.object);
                }
                let site = self.site(it.span);
                self.open(it.span.start, it.span.start, format_args!("__ab_get({site},"));
                (Link::Static(it, LiftDecision::Yes), &it.object)
            }
        }
    }

    /// Walks the right part of a link.
    fn leave(&mut self, link: &Link<'_, 'a>, left: Span) {
        match link {
            Link::Binary(it, lifted) => {
                if *lifted == LiftDecision::Yes {
                    let gap = self.gap(left.end, it.right.span().start);
                    self.edits.replace(left.end, it.right.span().start, format_args!("{gap},"));
                }
                self.visit_expression(&it.right);
                if *lifted == LiftDecision::Yes {
                    self.edits.insert(it.span.end, ")");
                }
            }
            Link::Logical(it, slot) => self.logical(it, *slot),
            Link::Conditional(it, slot) => self.conditional(it, *slot),
            Link::Static(it, LiftDecision::Yes) => {
                let name = serde_json::Value::from(it.property.name.as_str());
                self.edits.replace(left.end, it.span.end, format_args!(",{name})"));
            }
            Link::Static(_, LiftDecision::No) | Link::Private | Link::Plain => {}
            Link::Computed(it) => self.visit_expression(&it.expression),
            Link::Call(it) => self.call(it),
            Link::Tagged(it) => {
                if let Some(types) = &it.type_arguments {
                    self.blank(types.span.start, types.span.end);
                }
                self.visit_template_literal(&it.quasi);
            }
            Link::Typed(span) => self.blank(left.end, span.end),
        }
    }

    /// The right side runs only if it is needed, which a function can do; but not if it waits for something.
    fn logical(&mut self, it: &LogicalExpression<'a>, open: Slot) {
        let (left, right) = (it.left.span(), it.right.span());
        let between = self.edits.slot(left.end);
        let before = self.suspensions;
        self.visit_expression(&it.right);
        if self.suspensions > before {
            self.native_test(open, between, &it.left);
            return;
        }
        let site = self.site(it.span);
        let call = format_args!("__ab_logic({site},\"{}\",", it.operator.as_str());
        self.fill_open(open, it.span.start, call);
        let gap = self.gap(left.end, right.start);
        self.edits.fill(between, right.start, format_args!("{gap},()=>("));
        self.edits.insert(it.span.end, "))");
    }

    fn conditional(&mut self, it: &ConditionalExpression<'a>, open: Slot) {
        let (test, yes, no) = (it.test.span(), it.consequent.span(), it.alternate.span());
        let before = self.suspensions;
        let first = self.edits.slot(test.end);
        self.visit_expression(&it.consequent);
        let second = self.edits.slot(yes.end);
        self.visit_expression(&it.alternate);
        if self.suspensions > before {
            self.native_test(open, first, &it.test);
            return;
        }
        let site = self.site(it.span);
        self.fill_open(open, it.span.start, format_args!("__ab_if({site},"));
        let gap = self.gap(test.end, yes.start);
        self.edits.fill(first, yes.start, format_args!("{gap},()=>("));
        let gap = self.gap(yes.end, no.start);
        self.edits.fill(second, no.start, format_args!("{gap}),()=>("));
        self.edits.insert(it.span.end, "))");
    }

    /// Keeps an operator. Its operand must have a known value.
    fn native_test(&mut self, open: Slot, close: Slot, test: &Expression<'a>) {
        if is_literal(test) {
            return;
        }
        let span = test.span();
        let site = self.site(span);
        self.fill_open(open, span.start, format_args!("__ab_test({site},"));
        self.edits.fill(close, span.end, ")");
    }

    /// The conditions of JavaScript's branches.
    pub(super) fn test(&mut self, it: &Expression<'a>) {
        if is_literal(it) {
            return;
        }
        let span = it.span();
        let site = self.site(span);
        // A sequence would be more arguments.
        let (open, close) = match it {
            Expression::SequenceExpression(_) => ("(", "))"),
            _ => ("", ")"),
        };
        self.open(span.start, span.start, format_args!("__ab_test({site},{open}"));
        self.visit_expression(it);
        self.edits.insert(span.end, close);
    }

    pub(super) fn unary(&mut self, it: &UnaryExpression<'a>) {
        let place = if it.operator == UnaryOperator::Delete { Place::Kept } else { Place::Value };
        let operator = match it.operator {
            UnaryOperator::LogicalNot | UnaryOperator::UnaryNegation | UnaryOperator::UnaryPlus => {
                it.operator
            }
            UnaryOperator::Typeof => return self.type_of(it),
            _ => return self.expression(&it.argument, place),
        };
        if is_literal(&it.argument) {
            return self.visit_expression(&it.argument);
        }
        let site = self.site(it.span);
        let start = it.argument.span().start;
        let gap = self.gap(it.span.start, start);
        let call = format_args!("__ab_unary({site},\"{}\",{gap}", operator.as_str());
        self.open(it.span.start, start, call);
        self.visit_expression(&it.argument);
        self.edits.insert(it.span.end, ")");
    }

    /// Refuses inexact integers: ids have 64 bits and numbers of JavaScript 53, so a literal could become its
    /// neighbour.
    pub(super) fn exact(&mut self, it: &NumericLiteral<'a>) {
        let text = it.raw.map(|raw| raw.as_str().replace('_', "")).unwrap_or_default();
        let written = match text.get(..2) {
            Some("0x" | "0X") => u128::from_str_radix(&text[2..], 16),
            Some("0o" | "0O") => u128::from_str_radix(&text[2..], 8),
            Some("0b" | "0B") => u128::from_str_radix(&text[2..], 2),
            _ => text.parse(),
        };
        if written.is_ok_and(|written| written != it.value as u128) {
            let what = format!("JavaScript has no number {text}: it would be {}", it.value);
            self.fault(
                it.span,
                what,
                "let requests bring it in a parameter; if it need not be exact, write it as `1.5e20`",
            );
        }
    }

    /// An undefined name is not an error for `typeof`, but it is one for a call.
    fn type_of(&mut self, it: &UnaryExpression<'a>) {
        let start = it.argument.span().start;
        let gap = self.gap(it.span.start, start);
        match bare(&it.argument) {
            Expression::Identifier(name) => {
                let call = format_args!("__ab_typeof({gap}typeof {0}===\"undefined\"?void 0:", name.name);
                self.open(it.span.start, start, call);
            }
            _ => self.open(it.span.start, start, format_args!("__ab_typeof({gap}")),
        }
        self.visit_expression(&it.argument);
        self.edits.insert(it.span.end, ")");
    }

    pub(super) fn assignment(&mut self, it: &AssignmentExpression<'a>) {
        self.visit_assignment_target(&it.left);
        let binary = it.operator.to_binary_operator().filter(|operator| is_lifted(*operator));
        let logical = it.operator.to_logical_operator();
        let AssignmentTarget::AssignmentTargetIdentifier(name) = &it.left else {
            if logical.is_some() && it.left.as_member_expression().is_some() {
                let what = format!("`{}` on a member hides what it decides by", it.operator.as_str());
                self.fault(it.span, what, "write it out: `a.b = a.b ?? c`");
            }
            return self.visit_expression(&it.right);
        };
        // Parentheses around the name are not part of it.
        let mut start = self.words.next(it.left.span().end);
        while self.words.byte(start) == Some(b')') {
            start = self.words.next(start + 1);
        }
        let right = it.right.span();
        let change = self.edits.slot(start);
        let before = self.suspensions;
        self.visit_expression(&it.right);
        let gap = self.gap(start, right.start);
        let name = name.name.as_str();
        if let Some(operator) = binary {
            let site = self.site(it.span);
            let call = format_args!("={gap} __ab_op({site},\"{}\",{name},", operator.as_str());
            self.edits.fill(change, right.start, call);
            self.edits.insert(right.end, ")");
        } else if let Some(operator) = logical.filter(|_| self.suspensions == before) {
            let site = self.site(it.span);
            let call = format_args!("={gap} __ab_logic({site},\"{}\",{name},()=>(", operator.as_str());
            self.edits.fill(change, right.start, call);
            self.edits.insert(right.end, "))");
        }
    }

    /// `<T>x` becomes `(x)`. Without the parentheses, the rest could begin a block, or be on the line after `return`.
    pub(super) fn assertion(&mut self, it: &TSTypeAssertion<'a>, place: Place) {
        self.edits.replace(it.span.start, it.expression.span().start, "(");
        self.expression(&it.expression, place);
        self.edits.insert(it.span.end, ")");
    }

    /// Puts the begin of a call in the place of old text, apart from a word before it: `return-x`.
    pub(super) fn open(&mut self, start: u32, end: u32, call: impl Display) {
        let slot = self.edits.slot(start);
        let space = self.space(start);
        self.edits.fill(slot, end, format_args!("{space}{call}"));
    }

    fn fill_open(&mut self, slot: Slot, start: u32, call: impl Display) {
        let space = self.space(start);
        self.edits.fill(slot, start, format_args!("{space}{call}"));
    }

    fn space(&self, start: u32) -> &'static str {
        let before = (start as usize).checked_sub(1).and_then(|index| self.text.as_bytes().get(index));
        match before {
            Some(b'_' | b'$' | b'\\' | 0x80..) => " ",
            Some(letter) if letter.is_ascii_alphanumeric() => " ",
            _ => "",
        }
    }

    /// The newlines of a part that goes, so that lines stay where they are.
    fn gap(&self, start: u32, end: u32) -> Newlines {
        let gap = self.text.as_bytes().get(start as usize..end as usize).unwrap_or_default();
        Newlines(gap.iter().filter(|byte| **byte == b'\n').count())
    }
}

struct Newlines(usize);

impl Display for Newlines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.0).try_for_each(|_| f.write_str("\n"))
    }
}

/// Whether an operator is defined for values that only requests have.
fn is_lifted(operator: BinaryOperator) -> bool {
    operator.is_arithmetic() || operator.is_equality() || operator.is_compare() || operator.is_in()
}

pub(super) fn is_literal(it: &Expression<'_>) -> bool {
    matches!(
        it,
        Expression::BooleanLiteral(_)
            | Expression::NullLiteral(_)
            | Expression::NumericLiteral(_)
            | Expression::BigIntLiteral(_)
            | Expression::StringLiteral(_)
            | Expression::RegExpLiteral(_)
    )
}

/// True if a member may be of a registry: `Key.x`, `P.x`, `EP.x`, `EP.x.y`.
fn is_registered(it: &StaticMemberExpression<'_>) -> bool {
    if it.optional {
        return false;
    }
    match bare(&it.object) {
        Expression::Identifier(root) => matches!(root.name.as_str(), "Key" | "P" | "EP"),
        Expression::StaticMemberExpression(kind) if !kind.optional => {
            matches!(bare(&kind.object), Expression::Identifier(root) if root.name.as_str() == "EP")
        }
        _ => false,
    }
}

/// An expression without the parentheses and the types around it.
pub(super) fn bare<'e, 'a>(mut it: &'e Expression<'a>) -> &'e Expression<'a> {
    loop {
        it = match it {
            Expression::ParenthesizedExpression(inner) => &inner.expression,
            Expression::TSAsExpression(inner) => &inner.expression,
            Expression::TSSatisfiesExpression(inner) => &inner.expression,
            Expression::TSNonNullExpression(inner) => &inner.expression,
            Expression::TSTypeAssertion(inner) => &inner.expression,
            _ => return it,
        }
    }
}
