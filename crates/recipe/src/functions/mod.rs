//! The functions that come with this crate, a family a module.

mod support;
mod plain;
mod text;
mod data;
#[cfg(test)]
mod tests;

use crate::registry::Functions;

pub(crate) fn add_all(functions: &mut Functions) {
    plain::add(functions);
    text::add(functions);
    data::add(functions);
}
