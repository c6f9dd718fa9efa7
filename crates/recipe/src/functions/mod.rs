//! The functions built into this crate, one module per family.

mod differences;
mod kernels;
mod output;
mod plain;
mod text;
mod data;
mod aliases;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use crate::registry::Functions;

#[cfg(test)]
use aliases::NOT_HERE;

pub(crate) fn add_all(functions: &mut Functions) {
    plain::add(functions);
    text::add(functions);
    data::add(functions);
    aliases::add(functions);
}
