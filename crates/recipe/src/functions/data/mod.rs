//! Functions of data.

use crate::registry::Functions;

pub(super) fn add(_: &mut Functions) {}
