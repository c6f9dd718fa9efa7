//! The sinks of decoded replies: the columns or lists of a read.

use std::sync::Arc;

use anabranch_rows::Kind;

use super::resp::{Group, Token, take_ids};
use super::slots::Redirect;
use crate::bounds::{OverBudget, ReplyCount};
use crate::source::values::{self, Values};
use crate::source::{Data, Field, Lists, Read};

/// The replies to the commands of a trip, decoded as they come.
pub(super) struct Sink {
    shape: Shape,
    /// Counts the replies in the budget of the request; none for commands of the driver's own.
    count: Option<ReplyCount>,
    /// The number of complete replies.
    row: u32,
    /// Replies that point to another server.
    pub(super) redirects: Vec<Redirect>,
    /// The first reply that makes the whole trip fail.
    pub(super) fault: Option<Fault>,
    /// The number of values that could not be read.
    pub(super) malformed: u32,
    /// The first of them.
    pub(super) first_malformed: Option<MalformedValue>,
}

enum Shape {
    /// The replies are not needed any more.
    Nothing,
    Columns {
        fields: Arc<[Field]>,
        columns: Vec<Values>,
        /// The index of the next field.
        at: usize,
    },
    Ids {
        limit: u32,
        lists: Lists,
        /// The start of the current list.
        start: usize,
    },
    Scored(ScoredLists),
    Values(Vec<Value>, Vec<Vec<Value>>),
}

struct ScoredLists {
    limit: u32,
    lists: Lists,
    scores: Vec<f64>,
    start: usize,
    /// True if a member has come whose score has not.
    has_member: bool,
    /// The member, if it is an id.
    member: Option<i64>,
}

/// A reply that makes the whole trip fail.
#[derive(Debug)]
pub(super) struct Fault {
    /// The place of its command in the trip.
    pub(super) row: u32,
    pub(super) kind: FaultKind,
}

#[derive(Debug)]
pub(super) enum FaultKind {
    /// An error of the server.
    Refused(String),
    /// A list with more items than requested.
    TooMany(u64),
    /// The reply exceeds the budget of the request.
    TooLong(OverBudget),
}

/// A value that cannot be read.
#[derive(Debug)]
pub(super) struct MalformedValue {
    pub(super) row: u32,
    /// The place of its field, if it is the value of one.
    pub(super) field: Option<usize>,
    pub(super) found: FoundValue,
    pub(super) expected: &'static str,
}

#[derive(Debug)]
pub(super) enum FoundValue {
    /// A value, as messages show it.
    Value(String),
    /// An item of a list.
    Item(String),
    /// A key of another type, in the words of the server.
    WrongType(String),
}

/// A reply as a value, for the few that are not rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Int(i64),
    Double(f64),
    Bool(bool),
    Text(Vec<u8>),
    Error(String),
    /// A list, a set, or a map with alternating keys and values.
    List(Vec<Value>),
}

/// Items that are made room for at once; a server that promises more must send them first.
const RESERVED: u64 = 1_000;

const A_PAIR: &str = "a member and its finite score";

impl Sink {
    fn new(shape: Shape) -> Sink {
        Sink {
            shape,
            count: None,
            row: 0,
            redirects: Vec::new(),
            fault: None,
            malformed: 0,
            first_malformed: None,
        }
    }

    /// Skips replies.
    pub(super) fn nothing() -> Sink {
        Sink::new(Shape::Nothing)
    }

    /// Keeps replies as values.
    pub(super) fn values() -> Sink {
        Sink::new(Shape::Values(Vec::new(), Vec::new()))
    }

    /// A sink for the replies to this many commands of a read, which `count` counts.
    pub(super) fn of(read: &Read, commands: usize, count: ReplyCount) -> Sink {
        let lists = || Lists { lens: Vec::with_capacity(commands), ..Lists::default() };
        let shape = match read {
            Read::Fields(fields) => Shape::Columns {
                fields: Arc::clone(fields),
                columns: fields.iter().map(|field| Values::new(field.kind, commands)).collect(),
                at: 0,
            },
            Read::List { limit } => Shape::Ids { limit: *limit, lists: lists(), start: 0 },
            Read::Scored { limit } => Shape::Scored(ScoredLists {
                limit: *limit,
                lists: lists(),
                scores: Vec::new(),
                start: 0,
                has_member: false,
                member: None,
            }),
        };
        Sink { count: Some(count), ..Sink::new(shape) }
    }

    /// True if replies are skipped.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.shape, Shape::Nothing)
    }

    /// True if replies are kept as values, as those to commands of the driver's own are.
    pub(super) fn is_probe(&self) -> bool {
        matches!(self.shape, Shape::Values(..))
    }

    /// The number of complete replies.
    pub(super) fn rows(&self) -> u32 {
        self.row
    }

    /// Ends a reply.
    pub(super) fn end_reply(&mut self) {
        self.row += 1;
    }

    /// The columns or lists, one row per command.
    pub(super) fn into_data(self) -> Data {
        match self.shape {
            Shape::Columns { columns, .. } => {
                Data::Columns(columns.into_iter().map(Values::finish).collect())
            }
            Shape::Ids { lists, .. } => Data::Lists(lists),
            Shape::Scored(scored) => Data::Lists(Lists { scores: Some(scored.scores), ..scored.lists }),
            Shape::Nothing | Shape::Values(..) => Data::Lists(Lists::default()),
        }
    }

    /// The replies as values.
    pub(super) fn into_values(self) -> Vec<Value> {
        match self.shape {
            Shape::Values(values, _) => values,
            _ => Vec::new(),
        }
    }

    /// Takes a value that holds no others, at this depth.
    pub(super) fn scalar(&mut self, depth: usize, token: Token<'_>) {
        if let (0, Token::Error(message)) = (depth, token)
            && !matches!(self.shape, Shape::Nothing | Shape::Values(..))
        {
            return self.error(message);
        }
        match &mut self.shape {
            Shape::Nothing => {}
            Shape::Columns { fields, at, .. } => {
                let single = fields.len() == 1;
                match (depth, single) {
                    (0, true) => self.field(0, token),
                    (0, false) => self.add_malformed_row(shown(token), "a list of the fields asked for"),
                    _ => {
                        let field = *at;
                        *at += 1;
                        self.field(field, token);
                    }
                }
            }
            Shape::Ids { lists, .. } => match (depth, id(token)) {
                (0, _) => self.add_malformed_row(shown(token), "a list"),
                (_, Some(id)) => lists.ids.push(id),
                (_, None) => self.add_malformed(None, FoundValue::Item(shown(token)), values::AN_ID),
            },
            Shape::Scored(scored) => match depth {
                0 => self.add_malformed_row(shown(token), "a list"),
                _ if !scored.has_member => {
                    scored.has_member = true;
                    scored.member = id(token);
                    if scored.member.is_none() {
                        self.add_malformed(None, FoundValue::Item(shown(token)), values::AN_ID);
                    }
                }
                _ => {
                    scored.has_member = false;
                    match (scored.member, score(token)) {
                        (Some(member), Some(score)) => {
                            match self.count.as_mut().map(|count| count.take_ids(1, 1)) {
                                Some(Err(over)) => self.too_long(over),
                                _ => {
                                    scored.lists.ids.push(member);
                                    scored.scores.push(score);
                                }
                            }
                        }
                        (Some(_), None) => self.add_malformed(None, FoundValue::Value(shown(token)), A_PAIR),
                        (None, _) => {}
                    }
                }
            },
            Shape::Values(values, open) => {
                let value = match token {
                    Token::Text(bytes) => Value::Text(bytes.to_vec()),
                    Token::Error(bytes) => Value::Error(lossy(bytes)),
                    Token::Int(value) => Value::Int(value),
                    Token::Double(value) => Value::Double(value),
                    Token::Bool(value) => Value::Bool(value),
                    Token::Null | Token::Begin(..) => Value::Null,
                };
                open.last_mut().unwrap_or(values).push(value);
            }
        }
    }

    /// Takes the beginning of a group at this depth; whether the values in it are wanted.
    pub(super) fn begin(&mut self, depth: usize, group: Group, len: u64) -> bool {
        let found = || shown(Token::Begin(group, len));
        match &mut self.shape {
            Shape::Nothing => {}
            Shape::Columns { fields, at, .. } => match depth {
                0 if fields.len() > 1 && group == Group::List && len == fields.len() as u64 => {
                    *at = 0;
                    return true;
                }
                0 if fields.len() > 1 => self.add_malformed_row(found(), "a list of the fields asked for"),
                0 => self.field(0, Token::Begin(group, len)),
                _ => {
                    let field = *at;
                    *at += 1;
                    self.field(field, Token::Begin(group, len));
                }
            },
            Shape::Ids { limit, lists, start } => match (depth, group) {
                (0, Group::List) if len <= u64::from(*limit) => {
                    *start = lists.ids.len();
                    if let Some(Err(over)) = self.count.as_mut().map(|count| count.take_ids(len, 0)) {
                        self.too_long(over);
                        self.push_empty();
                        return false;
                    }
                    lists.ids.reserve(len.min(RESERVED) as usize);
                    return true;
                }
                (0, Group::List) => self.too_many(len),
                (0, _) => self.add_malformed_row(found(), "a list"),
                _ => self.add_malformed(None, FoundValue::Item(found()), values::AN_ID),
            },
            Shape::Scored(scored) => match (depth, group, len) {
                // In RESP2, members and scores alternate.
                (0, Group::List, _) if len <= 2 * u64::from(scored.limit) => {
                    scored.start = scored.lists.ids.len();
                    scored.has_member = false;
                    return true;
                }
                (0, Group::List, _) => self.too_many(len),
                (0, ..) => self.add_malformed_row(found(), "a list"),
                (1, Group::List, 2) => {
                    scored.has_member = false;
                    return true;
                }
                _ => {
                    scored.has_member = false;
                    self.add_malformed(None, FoundValue::Value(found()), A_PAIR);
                }
            },
            Shape::Values(_, open) => {
                open.push(Vec::new());
                return true;
            }
        }
        false
    }

    /// Ends a group that was wanted.
    pub(super) fn end(&mut self, depth: usize) {
        match &mut self.shape {
            Shape::Ids { lists, start, .. } if depth == 0 => {
                lists.lens.push((lists.ids.len() - *start) as u32);
            }
            Shape::Scored(scored) if depth == 0 => {
                let len = scored.lists.ids.len() - scored.start;
                if len > scored.limit as usize {
                    scored.lists.ids.truncate(scored.start);
                    scored.scores.truncate(scored.start);
                    self.too_many(len as u64);
                } else {
                    scored.lists.lens.push(len as u32);
                }
            }
            Shape::Values(values, open) => {
                let done = open.pop().unwrap_or_default();
                open.last_mut().unwrap_or(values).push(Value::List(done));
            }
            _ => {}
        }
    }

    /// Takes as many items of a list as possible at once. Returns the number of bytes used.
    #[inline]
    pub(super) fn run(&mut self, input: &[u8], left: &mut u64) -> usize {
        match &mut self.shape {
            Shape::Ids { lists, .. } => take_ids(input, left, &mut lists.ids),
            _ => 0,
        }
    }

    fn field(&mut self, at: usize, token: Token<'_>) {
        let Shape::Columns { fields, columns, .. } = &mut self.shape else { return };
        let column = &mut columns[at];
        if let (Token::Text(bytes), Kind::Text, Some(count)) = (token, fields[at].kind, &mut self.count)
            && let Err(over) = count.take_bytes(bytes.len() as u64)
        {
            column.push_null();
            return self.too_long(over);
        }
        match token {
            Token::Text(bytes) if column.push_bytes(bytes) => {}
            Token::Null => column.push_null(),
            other => {
                column.push_null();
                let expected = values::expected(fields[at].kind);
                self.add_malformed(Some(at), FoundValue::Value(shown(other)), expected);
            }
        }
    }

    /// Takes an error in place of a reply.
    fn error(&mut self, message: &[u8]) {
        let row = self.row;
        if let Some(redirect) = Redirect::parse(row, message) {
            self.redirects.push(redirect);
        } else if message.starts_with(b"WRONGTYPE") {
            self.add_malformed(None, FoundValue::WrongType(lossy(message)), "a value of the type asked for");
        } else {
            self.fault.get_or_insert_with(|| Fault { row, kind: FaultKind::Refused(lossy(message)) });
        }
        self.push_empty();
    }

    fn too_many(&mut self, len: u64) {
        let row = self.row;
        self.fault.get_or_insert(Fault { row, kind: FaultKind::TooMany(len) });
        self.push_empty();
    }

    /// Records that the replies exceed the budget of the request. Earlier replies are dropped, later ones are skipped.
    #[cold]
    fn too_long(&mut self, over: OverBudget) {
        let row = self.row;
        self.shape = Shape::Nothing;
        self.fault.get_or_insert(Fault { row, kind: FaultKind::TooLong(over) });
    }

    /// Counts the rest of complete replies.
    pub(super) fn settle(&mut self) {
        if let Some(Err(over)) = self.count.as_mut().map(ReplyCount::settle) {
            // All replies are complete, so the last one is reported.
            let row = self.row.saturating_sub(1);
            self.fault.get_or_insert(Fault { row, kind: FaultKind::TooLong(over) });
        }
    }

    /// Counts a reply that cannot be read and leaves its row empty.
    fn add_malformed_row(&mut self, found: String, expected: &'static str) {
        self.add_malformed(None, FoundValue::Value(found), expected);
        self.push_empty();
    }

    /// Counts a value that cannot be read.
    fn add_malformed(&mut self, field: Option<usize>, found: FoundValue, expected: &'static str) {
        self.malformed = self.malformed.saturating_add(1);
        let row = self.row;
        self.first_malformed.get_or_insert(MalformedValue { row, field, found, expected });
    }

    fn push_empty(&mut self) {
        match &mut self.shape {
            Shape::Columns { columns, .. } => columns.iter_mut().for_each(Values::push_null),
            Shape::Ids { lists, .. } | Shape::Scored(ScoredLists { lists, .. }) => lists.lens.push(0),
            Shape::Nothing | Shape::Values(..) => {}
        }
    }
}

fn id(token: Token<'_>) -> Option<i64> {
    match token {
        Token::Text(bytes) => values::int_of(bytes),
        _ => None,
    }
}

fn score(token: Token<'_>) -> Option<f64> {
    match token {
        Token::Double(score) => Some(score).filter(|score| score.is_finite()),
        Token::Text(bytes) => values::float_of(bytes),
        _ => None,
    }
}

/// Bytes of a server as text for a message, without control characters.
pub(super) fn lossy(bytes: &[u8]) -> String {
    const SHOWN: usize = 300;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]);
    text.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

/// A value for a message.
fn shown(token: Token<'_>) -> String {
    match token {
        Token::Null => "nil".to_owned(),
        Token::Int(value) => format!("the integer {value}"),
        Token::Double(value) => format!("the double {value}"),
        Token::Bool(value) => format!("the boolean {value}"),
        Token::Text(bytes) => match str::from_utf8(bytes) {
            Ok(text) => values::quoted(text),
            Err(_) => format!("{} bytes that are not UTF-8", bytes.len()),
        },
        Token::Error(bytes) => lossy(bytes),
        Token::Begin(Group::Set, len) => format!("a set of {len}"),
        Token::Begin(Group::Map, len) => format!("a map of {len}"),
        Token::Begin(_, len) => format!("a list of {len}"),
    }
}
