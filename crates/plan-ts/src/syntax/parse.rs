//! Parsing, and the messages of the parser.

use oxc_allocator::Allocator;
use oxc_ast::ast::{JSXElement, JSXFragment};
use oxc_ast_visit::VisitJs;
use oxc_parser::{Parser, ParserReturn};
use oxc_span::{SourceType, Span};

use crate::job::{At, Fault};

/// Parses a module and looks at it.
pub(super) fn with_program<T>(text: &str, look: impl FnOnce(ParserReturn<'_>) -> T) -> T {
    let allocator = Allocator::default();
    look(Parser::new(&allocator, text, SourceType::ts().with_module(true)).parse())
}

/// The errors of the parser.
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

/// A span within the file, even if the parser reports one past its end.
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

/// The words of a file, for details that the tree does not have: the position of a mark or a comma.
#[derive(Clone, Copy)]
pub(super) struct Words<'s>(pub(super) &'s str);

impl<'s> Words<'s> {
    /// The start of the next word, at a byte or after it: past spaces and comments.
    pub(super) fn next(self, at: u32) -> u32 {
        let mut rest = self.from(at);
        loop {
            // Only JavaScript treats a byte order mark as a space.
            rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
            let (end, skip) = match rest.as_bytes() {
                [b'/', b'/', ..] => (rest.find(['\n', '\r', '\u{2028}', '\u{2029}']), 0),
                [b'/', b'*', ..] => (rest.find("*/"), 2),
                _ => return (self.0.len() - rest.len()) as u32,
            };
            rest = end.map_or("", |end| &rest[end + skip..]);
        }
    }

    /// The name or keyword that begins at a byte, if any.
    pub(super) fn name(self, at: u32) -> &'s str {
        let rest = self.from(at);
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '_' | '$'));
        &rest[..end.unwrap_or(rest.len())]
    }

    /// The byte at a place.
    pub(super) fn byte(self, at: u32) -> Option<u8> {
        self.0.as_bytes().get(at as usize).copied()
    }

    /// The names and keywords between two bytes, and where they begin.
    pub(super) fn names(self, start: u32, end: u32) -> impl Iterator<Item = (u32, &'s str)> {
        let mut at = start;
        std::iter::from_fn(move || {
            loop {
                at = self.next(at);
                if at >= end {
                    return None;
                }
                let (begin, name) = (at, self.name(at));
                let letter = self.from(at).chars().next().map_or(1, char::len_utf8);
                at += name.len().max(letter) as u32;
                if !name.is_empty() {
                    return Some((begin, name));
                }
            }
        })
    }

    /// The end of a list item including the comma after it, if there is one.
    pub(super) fn past_comma(self, at: u32) -> u32 {
        let next = self.next(at);
        if self.byte(next) == Some(b',') { next + 1 } else { at }
    }

    fn from(self, at: u32) -> &'s str {
        self.0.get(at as usize..).unwrap_or_default()
    }
}
