//! Parsing: minijinja's parser, behind bounds that it does not have itself.

use anabranch_text::{closest, offset};
use minijinja::machinery::ast::Stmt;
use minijinja::machinery::{Span, Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;

use crate::code::Place;
use crate::error::{Halt, Stop};
use crate::template::Dialect;

/// The most bytes of a template.
const TEMPLATE_BYTES: usize = 1 << 20;

/// The most words and signs between two delimiters. It bounds the nesting of an expression, and with it the stack.
const TOKENS: usize = 512;

/// The most brackets inside of each other.
const BRACKETS: usize = 32;

/// The most blocks inside of each other; a branch counts as inside of the branch before it.
const BLOCKS: usize = 64;

/// The statements of the dataset dialect.
const STATEMENTS: [&str; 7] = ["for", "if", "set", "with", "filter", "break", "continue"];

/// The words that continue or end a statement of the dataset dialect.
const ENDS: [&str; 7] = ["elif", "else", "endif", "endfor", "endset", "endwith", "endfilter"];

/// Parses a template and passes the syntax tree on.
pub(crate) fn with_tree<T>(
    source: &str,
    dialect: Dialect,
    then: impl FnOnce(&Stmt<'_>) -> Result<T, Halt>,
) -> Result<T, Halt> {
    let syntax = SyntaxConfig::builder().keep_trailing_newline(dialect == Dialect::Plain).build();
    let syntax = syntax.expect("the delimiters are Jinja's");
    guard(source, dialect, syntax.clone())?;
    let tree = parse(source, "template", syntax).map_err(|error| unreadable(source, &error))?;
    then(&tree)
}

fn unreadable(source: &str, error: &minijinja::Error) -> Halt {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let start = offset(source, error.line().unwrap_or(1), 1);
    Halt { place: error.range().unwrap_or(start..start), stop: Stop::Wrong(detail.into()) }
}

pub(crate) fn place(span: Span) -> Place {
    span.start_offset as usize..span.end_offset as usize
}

pub(crate) fn refused<T>(place: Place, problem: impl Into<String>) -> Result<T, Halt> {
    Err(Halt { place, stop: Stop::Wrong(problem.into().into()) })
}

/// The reason why a statement is refused, and the way out.
fn reason(statement: &str, dialect: Dialect) -> String {
    let plain = dialect == Dialect::Plain;
    let reason = match statement {
        "set" | "with" => {
            "values have names only in `values` and in loops; write the expression where it is used"
        }
        "macro" | "call" | "do" if plain => "nothing can be called but `range`",
        "macro" | "call" => "write the text where it is used, or use a loop",
        "do" => "values do not change; `set` names a new one",
        "include" | "import" | "from" | "extends" | "block" => "there are no other templates",
        "filter" | "autoescape" => "filters stand behind the values they change, as in `{{ value|escape }}`",
        _ if plain => "there are `for`, `if`, `elif`, `else`, `break`, `continue` and `raw`",
        other => {
            return match closest(other, STATEMENTS.into_iter().chain(ENDS)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are `{}` and `raw`", STATEMENTS.join("`, `")),
            };
        }
    };
    reason.to_owned()
}

/// Refuses sources that the parser has no bounds for.
fn guard(source: &str, dialect: Dialect, syntax: SyntaxConfig) -> Result<(), Halt> {
    if source.len() > TEMPLATE_BYTES {
        return refused(0..0, format!("has {} bytes; a template has at most {TEMPLATE_BYTES}", source.len()));
    }
    let mut depth = Depth::default();
    for token in tokenize(source, false, syntax) {
        let (token, span) = token.map_err(|error| unreadable(source, &error))?;
        if let Token::Ident(word) = token
            && depth.begins
            && !allowed(word, dialect)
        {
            return refused(place(span), format!("`{word}` is refused: {}", reason(word, dialect)));
        }
        depth.pass(&token);
        if let Some(problem) = depth.problem() {
            return refused(place(span), problem);
        }
    }
    Ok(())
}

fn allowed(word: &str, dialect: Dialect) -> bool {
    match dialect {
        Dialect::Plain => {
            matches!(word, "for" | "if" | "elif" | "endfor" | "endif" | "else" | "break" | "continue")
        }
        Dialect::Dataset => STATEMENTS.contains(&word) || ENDS.contains(&word),
    }
}

/// The nesting at one token of a template.
#[derive(Default)]
struct Depth {
    tokens: usize,
    brackets: usize,
    /// The token is the first one of a block.
    begins: bool,
    /// The branches of each open block, and their sum.
    blocks: Vec<usize>,
    branches: usize,
}

impl Depth {
    fn pass(&mut self, token: &Token<'_>) {
        self.tokens += 1;
        match token {
            Token::VariableStart | Token::BlockStart => (self.tokens, self.brackets) = (0, 0),
            Token::BracketOpen | Token::ParenOpen | Token::BraceOpen => self.brackets += 1,
            Token::BracketClose | Token::ParenClose | Token::BraceClose => {
                self.brackets = self.brackets.saturating_sub(1);
            }
            Token::Ident(word) if self.begins => match *word {
                "for" | "if" | "with" | "filter" => {
                    self.blocks.push(1);
                    self.branches += 1;
                }
                "elif" => {
                    if let Some(branches) = self.blocks.last_mut() {
                        *branches += 1;
                        self.branches += 1;
                    }
                }
                "endfor" | "endif" | "endwith" | "endfilter" => {
                    self.branches -= self.blocks.pop().unwrap_or(0);
                }
                _ => {}
            },
            _ => {}
        }
        self.begins = matches!(token, Token::BlockStart);
    }

    fn problem(&self) -> Option<String> {
        if self.tokens > TOKENS {
            return Some(format!("an expression has at most {TOKENS} words and signs"));
        }
        if self.brackets > BRACKETS {
            return Some(format!("at most {BRACKETS} brackets are inside of each other"));
        }
        (self.branches > BLOCKS).then(|| format!("at most {BLOCKS} blocks are inside of each other"))
    }
}
