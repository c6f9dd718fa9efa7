//! Replies of an HTTP server, decoded into columns and lists as their bytes come.

use std::sync::Arc;

use anabranch_rows::Kind;

use super::json::{JsonError, Sink, Token, Tokens};
use crate::bounds::{OverBudget, ReplyCount};
use crate::source::values::{self, Values};
use crate::source::{Data, Field, Lists, Read};

/// A reply that cannot be used.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is not the requested reply.
    Malformed { found: String, expected: &'static str },
    /// It exceeds the budget of the request.
    TooLong(OverBudget),
}

impl From<OverBudget> for Fault {
    fn from(over: OverBudget) -> Fault {
        Fault::TooLong(over)
    }
}

/// A reply and the values of it that could not be read.
pub(super) struct DecodedReply {
    pub(super) data: Data,
    /// The number of values that could not be read.
    pub(super) malformed: u32,
    pub(super) first_malformed: Option<Fault>,
}

/// Decodes one reply.
pub(super) struct Decoder<'a> {
    tokens: Tokens,
    rows: Rows<'a>,
}

impl<'a> Decoder<'a> {
    /// A decoder of the reply to a read of these keys, which `count` counts. `None` is a row without a key.
    pub(super) fn new(read: &'a Read, names: &'a [Option<String>], count: ReplyCount) -> Decoder<'a> {
        let shape = match read {
            Read::Fields(fields) => Shape::Columns {
                fields,
                columns: fields.iter().map(|field| Values::new(field.kind, names.len())).collect(),
                filled: vec![false; fields.len()],
                field: None,
            },
            Read::List { limit } => Shape::Lists { limit: *limit, lists: Lists::default() },
            Read::Scored { limit } => Shape::Scored {
                limit: *limit,
                lists: Lists { scores: Some(Vec::new()), ..Lists::default() },
                id: None,
                score: None,
                next: None,
            },
        };
        let rows = Rows {
            names,
            count,
            row: 0,
            depth: 0,
            inside: Inside::Top,
            seen: false,
            shape,
            skip: None,
            malformed: 0,
            first_malformed: None,
        };
        Decoder { tokens: Tokens::default(), rows }
    }

    /// Takes more bytes of the reply.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let fed = self.tokens.feed(bytes, &mut self.rows);
        fed.map_err(|broken| self.fault(broken))
    }

    /// The values of a complete reply.
    pub(super) fn finish(mut self) -> Result<DecodedReply, Fault> {
        let finished = self.tokens.finish(&mut self.rows);
        finished.map_err(|broken| self.fault(broken))?;
        self.rows.finish()
    }

    fn fault(&self, broken: JsonError<Fault>) -> Fault {
        match broken {
            JsonError::Refused(fault) => fault,
            JsonError::Syntax(at, what) => {
                Fault::Malformed { found: format!("{what} at byte {at}"), expected: self.rows.form() }
            }
        }
    }
}

/// The place in a reply.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    /// Before or in the outermost object.
    Top,
    /// Behind the name of the member that has the rows.
    Member,
    /// In the list of rows.
    Rows,
    /// In one row or list.
    Row,
    /// In a scored item of a list.
    Item,
}

struct Rows<'a> {
    names: &'a [Option<String>],
    count: ReplyCount,
    /// The next row.
    row: usize,
    depth: usize,
    inside: Inside,
    /// True if the rows have come.
    seen: bool,
    shape: Shape<'a>,
    /// Values deeper than this are skipped; at this depth a skipped one ends.
    skip: Option<usize>,
    /// The number of values that could not be read.
    malformed: u32,
    first_malformed: Option<Fault>,
}

enum Shape<'a> {
    Columns {
        fields: &'a Arc<[Field]>,
        columns: Vec<Values>,
        /// The fields of the row that have arrived.
        filled: Vec<bool>,
        /// The field of the next value.
        field: Option<usize>,
    },
    Lists {
        limit: u32,
        lists: Lists,
    },
    Scored {
        limit: u32,
        lists: Lists,
        id: Option<i64>,
        score: Option<f64>,
        next: Option<Part>,
    },
}

#[derive(Clone, Copy)]
enum Part {
    Id,
    Score,
}

impl Sink for Rows<'_> {
    type Error = Fault;

    fn token(&mut self, token: Token<'_>) -> Result<(), Fault> {
        let ends = matches!(token, Token::EndObject | Token::EndList);
        let begins = matches!(token, Token::BeginObject | Token::BeginList);
        self.depth -= usize::from(ends);
        match self.skip {
            Some(depth) if self.depth > depth || begins => {}
            Some(_) => self.skip = None,
            None => self.take(token)?,
        }
        self.depth += usize::from(begins);
        Ok(())
    }
}

impl Rows<'_> {
    fn take(&mut self, token: Token<'_>) -> Result<(), Fault> {
        match (self.inside, &token) {
            (Inside::Top, Token::BeginObject) if self.depth == 0 => Ok(()),
            (Inside::Top, Token::Name(name)) => {
                if **name != *self.member() {
                    self.skip = Some(self.depth);
                } else if std::mem::replace(&mut self.seen, true) {
                    return self.refuse(format!("`{name}` twice"));
                } else {
                    self.inside = Inside::Member;
                }
                Ok(())
            }
            (Inside::Top, Token::EndObject) => Ok(()),
            (Inside::Member, Token::BeginList) => {
                self.inside = Inside::Rows;
                Ok(())
            }
            (Inside::Rows, Token::EndList) => {
                self.inside = Inside::Top;
                Ok(())
            }
            (Inside::Rows, _) => self.begin_row(&token),
            (Inside::Row, Token::EndObject | Token::EndList) => {
                self.end_row();
                Ok(())
            }
            (Inside::Row | Inside::Item, _) => self.value(token),
            _ => self.refuse(format!("{} where the rows belong", shown(&token))),
        }
    }

    /// The name of the member that has the rows.
    fn member(&self) -> &'static str {
        if let Shape::Columns { .. } = self.shape { "rows" } else { "lists" }
    }

    /// The form of a reply, for messages.
    fn form(&self) -> &'static str {
        match self.shape {
            Shape::Columns { .. } => r#"{"rows": [{..} or null]}"#,
            Shape::Lists { .. } => r#"{"lists": [[id]]}"#,
            Shape::Scored { .. } => r#"{"lists": [[{"id", "score"}]]}"#,
        }
    }

    fn refuse<T>(&self, found: String) -> Result<T, Fault> {
        Err(Fault::Malformed { found, expected: self.form() })
    }

    fn begin_row(&mut self, token: &Token<'_>) -> Result<(), Fault> {
        self.skip_rows_without_key();
        if self.row == self.names.len() {
            let keys = self.names.iter().flatten().count();
            return Err(Fault::Malformed {
                found: format!("more than {keys} rows"),
                expected: "one row per key",
            });
        }
        match (&mut self.shape, token) {
            (Shape::Columns { .. }, Token::Null) => self.end_row(),
            (Shape::Columns { .. }, Token::BeginObject) => self.inside = Inside::Row,
            (Shape::Lists { lists, .. } | Shape::Scored { lists, .. }, Token::BeginList) => {
                lists.lens.push(0);
                self.inside = Inside::Row;
            }
            _ => return self.refuse(format!("{} as a row", shown(token))),
        }
        Ok(())
    }

    /// Leaves rows without a key empty, because they were not requested from the server.
    fn skip_rows_without_key(&mut self) {
        while let Some(None) = self.names.get(self.row) {
            match &mut self.shape {
                Shape::Columns { columns, .. } => columns.iter_mut().for_each(Values::push_null),
                Shape::Lists { lists, .. } | Shape::Scored { lists, .. } => lists.lens.push(0),
            }
            self.row += 1;
        }
    }

    fn end_row(&mut self) {
        if let Shape::Columns { columns, filled, .. } = &mut self.shape {
            for (column, filled) in columns.iter_mut().zip(filled) {
                if !std::mem::take(filled) {
                    column.push_null();
                }
            }
        }
        self.row += 1;
        self.inside = Inside::Rows;
    }

    /// Takes a name or a value inside a row.
    fn value(&mut self, token: Token<'_>) -> Result<(), Fault> {
        let nested = matches!(token, Token::BeginObject | Token::BeginList);
        match &mut self.shape {
            Shape::Columns { fields, field, filled, .. } => match token {
                Token::Name(name) => {
                    let known = fields.iter().position(|known| *known.name == *name);
                    *field = known.filter(|at| !filled[*at]);
                    if field.is_none() {
                        self.skip = Some(self.depth);
                    }
                    Ok(())
                }
                token => {
                    self.fill(&token)?;
                    if nested {
                        self.skip = Some(self.depth);
                    }
                    Ok(())
                }
            },
            Shape::Lists { .. } => {
                self.count_item()?;
                let id = text(&token).and_then(values::int);
                let Shape::Lists { lists, .. } = &mut self.shape else { return Ok(()) };
                match (id, lists.lens.last_mut()) {
                    (Some(id), _) => lists.ids.push(id),
                    (None, len) => {
                        len.into_iter().for_each(|len| *len -= 1);
                        self.add_malformed_item(&token, values::AN_ID);
                    }
                }
                if nested {
                    self.skip = Some(self.depth);
                }
                Ok(())
            }
            Shape::Scored { .. } => self.scored(&token),
        }
    }

    fn fill(&mut self, token: &Token<'_>) -> Result<(), Fault> {
        let Shape::Columns { fields, columns, filled, field } = &mut self.shape else { return Ok(()) };
        let Some(at) = field.take() else { return Ok(()) };
        filled[at] = true;
        let read = match (token, text(token)) {
            (Token::Null, _) => {
                columns[at].push_null();
                true
            }
            (_, Some(text)) => {
                if fields[at].kind == Kind::Text {
                    self.count.take_bytes(text.len() as u64)?;
                }
                columns[at].push(text)
            }
            _ => false,
        };
        if !read {
            columns[at].push_null();
            let (name, expected) = (Arc::clone(&fields[at].name), values::expected(fields[at].kind));
            let found = format!("{} as `{name}` of `{}`", shown(token), self.name());
            self.add_malformed(found, expected);
        }
        Ok(())
    }

    fn scored(&mut self, token: &Token<'_>) -> Result<(), Fault> {
        if self.inside == Inside::Row {
            self.count_item()?;
            let Shape::Scored { id, score, lists, .. } = &mut self.shape else { return Ok(()) };
            (*id, *score) = (None, None);
            if let Token::BeginObject = token {
                self.inside = Inside::Item;
                return Ok(());
            }
            lists.lens.last_mut().into_iter().for_each(|len| *len -= 1);
            self.add_malformed_item(token, "an object of `id` and `score`");
            if let Token::BeginList = token {
                self.skip = Some(self.depth);
            }
            return Ok(());
        }
        let Shape::Scored { lists, id, score, next, .. } = &mut self.shape else { return Ok(()) };
        match token {
            Token::Name(name) => {
                *next = match &**name {
                    "id" => Some(Part::Id),
                    "score" => Some(Part::Score),
                    _ => None,
                };
                if next.is_none() {
                    self.skip = Some(self.depth);
                }
            }
            Token::EndObject => {
                self.inside = Inside::Row;
                match (*id, *score, &mut lists.scores) {
                    (Some(id), Some(score), Some(scores)) => {
                        lists.ids.push(id);
                        scores.push(score);
                    }
                    _ => {
                        lists.lens.last_mut().into_iter().for_each(|len| *len -= 1);
                        let found = format!("an item for `{}` without its id or score", self.name());
                        self.add_malformed(found, "an id and a finite score");
                    }
                }
            }
            value => {
                match next.take() {
                    Some(Part::Id) => *id = text(value).and_then(values::int),
                    Some(Part::Score) => *score = text(value).and_then(values::float),
                    None => {}
                }
                if matches!(value, Token::BeginObject | Token::BeginList) {
                    self.skip = Some(self.depth);
                }
            }
        }
        Ok(())
    }

    /// Counts an item of the current list, which may have as many as were requested.
    fn count_item(&mut self) -> Result<(), Fault> {
        let (limit, values, lists) = match &mut self.shape {
            Shape::Columns { .. } => return Ok(()),
            Shape::Lists { limit, lists } => (*limit, 0, lists),
            Shape::Scored { limit, lists, .. } => (*limit, 1, lists),
        };
        let Some(len) = lists.lens.last_mut() else { return Ok(()) };
        *len += 1;
        self.count.take_ids(1, values)?;
        if *len > limit {
            let found = format!("more than {limit} items for `{}`", self.name());
            return Err(Fault::Malformed { found, expected: "at most as many items as were asked for" });
        }
        Ok(())
    }

    fn name(&self) -> &str {
        self.names.get(self.row).and_then(Option::as_deref).unwrap_or_default()
    }

    fn add_malformed_item(&mut self, token: &Token<'_>, expected: &'static str) {
        let found = format!("the item {} for `{}`", shown(token), self.name());
        self.add_malformed(found, expected);
    }

    fn add_malformed(&mut self, found: String, expected: &'static str) {
        self.malformed = self.malformed.saturating_add(1);
        self.first_malformed.get_or_insert(Fault::Malformed { found, expected });
    }

    fn finish(mut self) -> Result<DecodedReply, Fault> {
        if !self.seen {
            return self.refuse(format!("no `{}`", self.member()));
        }
        self.count.settle()?;
        self.skip_rows_without_key();
        if self.row < self.names.len() {
            let found = self.names[..self.row].iter().flatten().count();
            let keys = self.names.iter().flatten().count();
            return Err(Fault::Malformed {
                found: format!("{found} for {keys} keys"),
                expected: "one row per key",
            });
        }
        let data = match self.shape {
            Shape::Columns { columns, .. } => {
                Data::Columns(columns.into_iter().map(Values::finish).collect())
            }
            Shape::Lists { lists, .. } | Shape::Scored { lists, .. } => Data::Lists(lists),
        };
        Ok(DecodedReply { data, malformed: self.malformed, first_malformed: self.first_malformed })
    }
}

/// A value as a store would keep it: numbers stay digit for digit as they are written.
fn text<'t>(token: &'t Token<'_>) -> Option<&'t str> {
    match token {
        Token::Text(text) => Some(text),
        Token::Number(number) => Some(number),
        Token::Bool(true) => Some("true"),
        Token::Bool(false) => Some("false"),
        _ => None,
    }
}

/// A token for a message.
fn shown(token: &Token<'_>) -> String {
    match token {
        Token::BeginObject | Token::EndObject => "an object".to_owned(),
        Token::BeginList | Token::EndList => "a list".to_owned(),
        Token::Name(text) | Token::Text(text) => values::quoted(text),
        Token::Number(number) => (*number).to_owned(),
        Token::Bool(value) => value.to_string(),
        Token::Null => "null".to_owned(),
    }
}
