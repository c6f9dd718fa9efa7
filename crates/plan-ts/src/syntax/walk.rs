//! The walk over a file, which dispatches each part to its handler.

use std::collections::HashSet;

use oxc_ast::ast::{
    ArrowFunctionExpression, AssignmentExpression, AwaitExpression, BindingIdentifier, CatchParameter, Class,
    ClassElement, Decorator, Directive, DoWhileStatement, Expression, ForStatement, FormalParameter,
    FormalParameterRest, Function, IdentifierReference, IfStatement, ImportExpression, ImportMeta,
    MethodDefinition, NewExpression, NumericLiteral, PropertyDefinition, Statement, SwitchCase,
    SwitchStatement, TSAsExpression, TSNonNullExpression, TSSatisfiesExpression, TSTypeAssertion,
    UnaryExpression, VariableDeclaration, VariableDeclarator, WhileStatement, YieldExpression,
};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_parser::ParserReturn;
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use super::edits::Edits;
use super::lift::Place;
use super::modules::Names;
use super::parse::Words;
use crate::job::{At, Fault, Method, Site};

/// The prefix of names that are reserved for the sandbox.
const RESERVED: &str = "__ab_";

/// Says whether a name that is imported from a specifier is a type only.
pub(super) type IsType<'s> = &'s dyn Fn(&str, &str) -> bool;

/// The state and the findings of the walk.
pub(super) struct Walk<'s, 'a> {
    pub(super) file: u32,
    pub(super) text: &'s str,
    pub(super) words: Words<'s>,
    /// The names of ops as methods.
    pub(super) methods: HashSet<&'s str>,
    pub(super) is_type: IsType<'s>,
    pub(super) names: Names<'a>,
    pub(super) sites: &'s mut Vec<Site>,
    pub(super) edits: Edits,
    pub(super) faults: Vec<Fault>,
    /// The number of `yield` and `await` in the current function so far.
    pub(super) suspensions: usize,
}

/// Walks a file. Returns the changes to make, and the problems.
pub(super) fn walk(
    file: u32,
    text: &str,
    parsed: &ParserReturn<'_>,
    (methods, is_type): (&[Method], IsType<'_>),
    sites: &mut Vec<Site>,
) -> (Edits, Vec<Fault>) {
    let methods = methods.iter().map(|method| method.name.as_str());
    let mut walk = Walk {
        file,
        text,
        words: Words(text),
        methods: methods.chain(["requireCapability", "definePlan"]).collect(),
        is_type,
        names: Names::of(&parsed.program, is_type),
        sites,
        edits: Edits::default(),
        faults: Vec::new(),
        suspensions: 0,
    };
    walk.visit_program(&parsed.program);
    (walk.edits, walk.faults)
}

impl Walk<'_, '_> {
    /// Bytes of this file.
    pub(super) fn at(&self, span: Span) -> At {
        At { file: self.file, start: span.start, end: span.end }
    }

    /// Reports a problem at a location, with advice.
    pub(super) fn fault(&mut self, span: Span, what: impl Into<String>, help: &str) {
        let at = self.at(span);
        self.faults.push(Fault::new(at, what).help(help));
    }

    /// A number for a place.
    pub(super) fn site(&mut self, span: Span) -> usize {
        let at = self.at(span);
        self.sites.push(Site { at, options: Vec::new() });
        self.sites.len() - 1
    }

    fn name(&mut self, span: Span, name: &str) {
        if name.starts_with(RESERVED) {
            let what = format!("the name `{name}` begins with `{RESERVED}`, which is kept for the compiler");
            self.fault(span, what, "call it something else");
        }
    }

    /// Does something to a function, whose `yield` and `await` are its own.
    fn apart(&mut self, inside: impl FnOnce(&mut Self)) {
        let outside = self.suspensions;
        inside(self);
        self.suspensions = outside;
    }
}

impl<'a> Walk<'_, 'a> {
    /// Walks the body of a loop. An empty one gets a call, because the engine knows only the locations of calls, and an
    /// endless loop should be reported at its location.
    fn loop_body(&mut self, body: &Statement<'a>) {
        const CALL: &str = "__ab_at();";
        match body {
            Statement::BlockStatement(block) if block.body.is_empty() => {
                self.edits.insert(block.span.start + 1, CALL);
            }
            Statement::EmptyStatement(empty) => self.edits.replace(empty.span.start, empty.span.end, CALL),
            body => self.visit_statement(body),
        }
    }
}

impl<'a> VisitJs<'a> for Walk<'_, 'a> {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        if self.is_erased(it) {
            self.edits.replace(it.span().start, it.span().end, ";");
            return;
        }
        if !self.module_statement(it) && !self.refused(it) {
            walk_js::walk_statement(self, it);
        }
        self.end_statement(it);
    }

    fn visit_directive(&mut self, it: &Directive<'a>) {
        self.end_with_semicolon(it.span);
    }

    fn visit_expression(&mut self, it: &Expression<'a>) {
        self.expression(it, Place::Value);
    }

    fn visit_numeric_literal(&mut self, it: &NumericLiteral<'a>) {
        self.exact(it);
    }

    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        self.unary(it);
    }

    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        self.assignment(it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.construct(it);
    }

    fn visit_yield_expression(&mut self, it: &YieldExpression<'a>) {
        walk_js::walk_yield_expression(self, it);
        self.suspensions += 1;
    }

    fn visit_await_expression(&mut self, it: &AwaitExpression<'a>) {
        walk_js::walk_await_expression(self, it);
        self.suspensions += 1;
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.blank_function(it);
        self.apart(|walk| walk_js::walk_function(walk, it, flags));
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.blank_arrow(it);
        self.apart(|walk| walk_js::walk_arrow_function_expression(walk, it));
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        self.blank_class(it);
        walk_js::walk_class(self, it);
    }

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        if !self.blank_element(it) {
            walk_js::walk_class_element(self, it);
        }
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        self.blank_method(it);
        walk_js::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        self.blank_property(it);
        walk_js::walk_property_definition(self, it);
        self.end_with_semicolon(it.span);
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.fault(it.span, "decorators cannot be erased", "call the function where its result is needed");
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        self.blank_parameter(it);
        walk_js::walk_formal_parameter(self, it);
    }

    fn visit_formal_parameter_rest(&mut self, it: &FormalParameterRest<'a>) {
        self.blank_annotation(it.type_annotation.as_deref(), it.rest.span.end);
        walk_js::walk_formal_parameter_rest(self, it);
    }

    fn visit_catch_parameter(&mut self, it: &CatchParameter<'a>) {
        self.blank_annotation(it.type_annotation.as_deref(), it.pattern.span().end);
        walk_js::walk_catch_parameter(self, it);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        self.refuse_using(it);
        walk_js::walk_variable_declaration(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        self.blank_annotation(it.type_annotation.as_deref(), it.id.span().end);
        walk_js::walk_variable_declarator(self, it);
    }

    // Of the expressions, only the targets of assignments reach this. The others are links of a chain.

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.expression(&it.expression, Place::Kept);
        self.blank(it.expression.span().end, it.span.end);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.expression(&it.expression, Place::Kept);
        self.blank(it.expression.span().end, it.span.end);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.expression(&it.expression, Place::Kept);
        self.blank(it.expression.span().end, it.span.end);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.assertion(it, Place::Kept);
    }

    fn visit_if_statement(&mut self, it: &IfStatement<'a>) {
        self.test(&it.test);
        self.visit_statement(&it.consequent);
        if let Some(alternate) = &it.alternate {
            self.visit_statement(alternate);
        }
    }

    fn visit_while_statement(&mut self, it: &WhileStatement<'a>) {
        self.test(&it.test);
        self.loop_body(&it.body);
    }

    fn visit_do_while_statement(&mut self, it: &DoWhileStatement<'a>) {
        self.loop_body(&it.body);
        self.test(&it.test);
    }

    fn visit_for_statement(&mut self, it: &ForStatement<'a>) {
        if let Some(init) = &it.init {
            self.visit_for_statement_init(init);
        }
        if let Some(test) = &it.test {
            self.test(test);
        }
        if let Some(update) = &it.update {
            self.visit_expression(update);
        }
        self.loop_body(&it.body);
    }

    fn visit_switch_statement(&mut self, it: &SwitchStatement<'a>) {
        self.test(&it.discriminant);
        self.visit_switch_cases(&it.cases);
    }

    fn visit_switch_case(&mut self, it: &SwitchCase<'a>) {
        if let Some(test) = &it.test {
            self.test(test);
        }
        self.visit_statements(&it.consequent);
    }

    fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
        self.fault(
            it.span,
            "a plan cannot import while it runs",
            "import at the top: `import { x } from \"./x\"`",
        );
    }

    fn visit_import_meta(&mut self, it: &ImportMeta) {
        self.fault(it.span, "a plan does not know where it is", "write what you need as a constant");
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.name(it.span, it.name.as_str());
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.name(it.span, it.name.as_str());
    }
}
