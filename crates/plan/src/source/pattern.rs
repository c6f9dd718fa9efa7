//! The patterns of keys: `user:{id}`, `feed:{user_id}:{country}`.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use anabranch_rows::{Column, Key, Kind, Rows};

use super::Keys;
use crate::call::Call;
use crate::registry;
use crate::request::UserId;
use crate::schema::Schema;
use crate::value::{Scalar, Values};

/// A store key with placeholders.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    parts: Arc<[Part]>,
}

/// A piece of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// These very characters.
    Literal(Box<str>),
    /// The row's value of a column: ids and other integers, or strings.
    Key(Key),
    /// The user of the request.
    User,
    /// The request's value of a parameter, by its index.
    Param(usize),
}

impl Pattern {
    /// Reads a pattern. `{user_id}` is the request's user, `{$name}` a parameter, `{name}` a column of the rows.
    pub fn parse(
        text: &str,
        schema: &Schema,
        keys: &registry::Keys,
        params: &registry::Params,
    ) -> Result<Pattern, String> {
        let part = |piece: Piece<'_>| match piece {
            Piece::Literal(text) => Ok(Part::Literal(text.into())),
            Piece::Placeholder(name) => placeholder(name, schema, keys, params),
        };
        let parts: Vec<Part> = pieces(text)?.into_iter().map(part).collect::<Result<_, String>>()?;
        if parts.is_empty() {
            return Err("is empty; write a key such as `user:{id}`".to_owned());
        }
        Ok(Pattern { parts: parts.into() })
    }

    /// A pattern of `prefix` and the row's id.
    pub fn of_id(prefix: &str) -> Pattern {
        Pattern { parts: Arc::new([Part::Literal(prefix.into()), Part::Key(Key::ID)]) }
    }

    /// A pattern of `prefix` and the user's id.
    pub fn of_user(prefix: &str) -> Pattern {
        Pattern { parts: Arc::new([Part::Literal(prefix.into()), Part::User]) }
    }

    /// Its pieces.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The columns it reads.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.parts.iter().filter_map(|part| match part {
            Part::Key(key) => Some(*key),
            _ => None,
        })
    }

    /// The text before and after its one placeholder, if that is the row's or the user's id.
    pub fn affixes(&self) -> Option<(&str, &str)> {
        match &*self.parts {
            [Part::Key(Key::ID) | Part::User] => Some(("", "")),
            [Part::Literal(prefix), Part::Key(Key::ID) | Part::User] => Some((prefix, "")),
            [Part::Key(Key::ID) | Part::User, Part::Literal(suffix)] => Some(("", suffix)),
            [Part::Literal(prefix), Part::Key(Key::ID) | Part::User, Part::Literal(suffix)] => {
                Some((prefix, suffix))
            }
            _ => None,
        }
    }

    /// The keys of the active rows. They are [`Keys::Ids`] if the pattern has [`affixes`](Self::affixes) and the value
    /// between them is an integer in every row.
    pub fn apply(&self, rows: &Rows, call: &Call) -> Keys {
        self.apply_with(rows, &call.user, &call.params)
    }

    /// The keys of the active rows for this user and these parameters.
    pub fn apply_with(&self, rows: &Rows, user: &UserId, params: &Values) -> Keys {
        match self.ids(rows, user) {
            Some(ids) => Keys::Ids(ids),
            None => Keys::Whole(rows.iter().map(|row| self.key_of(row, rows, user, params)).collect()),
        }
    }

    /// The integers of the only placeholder, if there is one and all values are integers.
    fn ids(&self, rows: &Rows, user: &UserId) -> Option<Vec<i64>> {
        self.affixes()?;
        let by_user = self.parts.contains(&Part::User);
        match user.as_int() {
            Some(user) if by_user => Some(vec![user; rows.len()]),
            None if by_user || rows.ids().any(|id| id == user.row_id()) => None,
            _ => Some(rows.ids().collect()),
        }
    }

    fn key_of(&self, row: usize, rows: &Rows, user: &UserId, params: &Values) -> Option<Box<str>> {
        let int = |key: &mut String, value: i64| match user.name_of(value) {
            Some(name) => key.write_str(name),
            None => write!(key, "{value}"),
        };
        let mut key = String::new();
        for part in &*self.parts {
            let written = match part {
                Part::Literal(text) => key.write_str(text),
                Part::User => write!(key, "{user}"),
                Part::Param(index) => match params[*index].as_ref()? {
                    Scalar::Int(value) => write!(key, "{value}"),
                    Scalar::Float(value) => write!(key, "{value}"),
                    Scalar::Bool(value) => write!(key, "{value}"),
                    Scalar::Text(value) => key.write_str(value),
                },
                Part::Key(Key::ID) => int(&mut key, rows.batch().ids()[row]),
                Part::Key(column) => {
                    let column = rows.batch().column(*column)?;
                    if column.is_null(row) {
                        return None;
                    }
                    match column {
                        Column::Int(values) => int(&mut key, values.value(row)),
                        Column::Float(values) => write!(key, "{}", values.value(row)),
                        Column::Bool(values) => write!(key, "{}", values.value(row)),
                        Column::Text(text) => key.write_str(text.get(row)?),
                    }
                }
            };
            written.expect("a string takes all that is written");
        }
        Some(key.into())
    }
}

/// A piece of the text of a pattern.
pub(super) enum Piece<'t> {
    /// Characters outside of braces; never empty.
    Literal(&'t str),
    /// The name between braces.
    Placeholder(&'t str),
}

/// Splits `user:{id}` into its literals and placeholders. Every pattern of keys is read with this function.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = rest[open..].find('}').ok_or("a `{` without its `}`")? + open;
        if open > 0 {
            pieces.push(Piece::Literal(&rest[..open]));
        }
        pieces.push(Piece::Placeholder(&rest[open + 1..close]));
        rest = &rest[close + 1..];
    }
    if rest.contains('}') {
        return Err("a `}` without its `{`".to_owned());
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest));
    }
    Ok(pieces)
}

fn placeholder(
    name: &str,
    schema: &Schema,
    keys: &registry::Keys,
    params: &registry::Params,
) -> Result<Part, String> {
    if name == "user_id" {
        return Ok(Part::User);
    }
    if let Some(name) = name.strip_prefix('$') {
        let param =
            params.named(name).ok_or_else(|| format!("`{{${name}}}`: there is no parameter `{name}`"))?;
        if param.shape == registry::Shape::List {
            return Err(format!("`{{${name}}}`: parameter `{name}` is a list, and a key takes one value"));
        }
        return Ok(Part::Param(param.index));
    }
    let entry = keys.named(name).ok_or_else(|| format!("`{{{name}}}`: there is no key `{name}`"))?;
    match schema.kind(entry.key) {
        Some(Kind::Int | Kind::Text) => Ok(Part::Key(entry.key)),
        Some(kind) => Err(format!("`{{{name}}}`: `{name}` is a {kind}; keys are made of ints and strings")),
        None => Err(format!("`{{{name}}}`: the rows have no column `{name}` here")),
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &*self.parts {
            match part {
                Part::Literal(text) => f.write_str(text)?,
                Part::Key(Key::ID) => f.write_str("{id}")?,
                Part::Key(key) => write!(f, "{{key {key}}}")?,
                Part::User => f.write_str("{user_id}")?,
                Part::Param(index) => write!(f, "{{param {index}}}")?,
            }
        }
        Ok(())
    }
}
