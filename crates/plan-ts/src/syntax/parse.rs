//! Parsing, and what the parser has to say.

use oxc_allocator::Allocator;
use oxc_ast::ast::{JSXElement, JSXFragment};
use oxc_ast_visit::VisitJs;
use oxc_parser::config::TokensParserConfig;
use oxc_parser::{Kind, Parser, ParserReturn, Token};
use oxc_span::{SourceType, Span};

use crate::job::{At, Fault};

/// Parses a module and looks at it.
pub(super) fn with_program<T>(text: &str, look: impl FnOnce(ParserReturn<'_>) -> T) -> T {
    let allocator = Allocator::default();
    let parser = Parser::new(&allocator, text, SourceType::ts().with_module(true));
    look(parser.with_config(TokensParserConfig).parse())
}

/// What the parser found wrong.
pub(super) fn faults(file: u32, text: &str, parsed: &ParserReturn<'_>) -> Vec<Fault> {
    let errors: Vec<Fault> = parsed
        .diagnostics
        .errors()
        .map(|error| {
            let span = error.labels.first().map(|label| label.span());
            let at = span.map(|span| clamp(file, text, span));
            let help = error.help.as_deref().map(str::to_owned);
            Fault { what: error.message.as_ref().to_owned(), help, at }
        })
        .collect();
    if errors.is_empty() && parsed.panicked {
        return vec![Fault { what: "this is not TypeScript".to_owned(), help: None, at: None }];
    }
    if !errors.is_empty()
        && let Some(span) = jsx(text)
    {
        let fault = Fault::new(clamp(file, text, span), "a plan has no use for JSX");
        return vec![fault.help("write a plain expression")];
    }
    errors
}

/// Bytes of a file that are there, whatever the parser says at a file's end.
fn clamp(file: u32, text: &str, span: Span) -> At {
    let end = span.end.min(text.len() as u32);
    At { file, start: span.start.min(end), end }
}

/// The first element of a text that would be right if JSX were.
fn jsx(text: &str) -> Option<Span> {
    struct Find(Option<Span>);
    impl<'a> VisitJs<'a> for Find {
        fn visit_jsx_element(&mut self, it: &JSXElement<'a>) {
            self.0.get_or_insert(it.span);
        }
        fn visit_jsx_fragment(&mut self, it: &JSXFragment<'a>) {
            self.0.get_or_insert(it.span);
        }
    }
    if !text.contains("/>") && !text.contains("</") {
        return None;
    }
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, SourceType::tsx().with_module(true)).parse();
    let mut find = Find(None);
    if !parsed.panicked && !parsed.diagnostics.has_errors() {
        find.visit_program(&parsed.program);
    }
    find.0
}

/// The words of a file, in order.
#[derive(Clone, Copy)]
pub(super) struct Words<'s>(pub(super) &'s [Token]);

impl<'s> Words<'s> {
    /// The words that begin at a byte or after it.
    pub(super) fn from(self, at: u32) -> impl Iterator<Item = &'s Token> {
        let first = self.0.partition_point(|word| word.start() < at);
        self.0[first..].iter()
    }

    /// The first word at a byte or after it.
    pub(super) fn next(self, at: u32) -> Option<&'s Token> {
        self.from(at).next()
    }

    /// The last word that ends at a byte or before it.
    pub(super) fn last(self, at: u32) -> Option<&'s Token> {
        let next = self.0.partition_point(|word| word.end() <= at);
        next.checked_sub(1).map(|index| &self.0[index])
    }

    /// Where the list item that ends at a byte ends with the comma after it, if there is one.
    pub(super) fn past_comma(self, at: u32) -> u32 {
        match self.next(at) {
            Some(word) if word.kind() == Kind::Comma => word.end(),
            _ => at,
        }
    }
}
