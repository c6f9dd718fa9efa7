//! Functions that work on arbitrary bytes.

mod blocks;
mod bytes;
mod cut;
mod encode;
mod charset;
mod compress;
mod codecs;
mod hash;
mod verify;
mod cipher;
mod count;
mod content_type;
mod dedup;
mod folder;

use crate::registry::Functions;

pub(super) fn add(functions: &mut Functions) {
    bytes::add(functions);
    cut::add(functions);
    encode::add(functions);
    charset::add(functions);
    compress::add(functions);
    hash::add(functions);
    verify::add(functions);
    cipher::add(functions);
    count::add(functions);
    content_type::add(functions);
    dedup::add(functions);
    folder::add(functions);
}
