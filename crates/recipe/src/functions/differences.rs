//! Differences between a function and the Deriva function with the same id. Functions that follow Deriva on purpose
//! describe their differences in their own signatures.

use crate::signature::Signature;

const DEFLATE: &str = "The compressed bytes are those of another deflate library; they unpack to the same.";
const UNPACKED: &str =
    "A cut-off input, and something behind the end, are errors; Deriva gives what it got, or ignores it.";

const DIFFERENCES: [(&str, &str); 22] = [
    ("average/1.0.0", "`nan` and `inf` are errors; Deriva counts them."),
    ("brotli_compress/1.0.0", "The bytes may be others, as with quality 1; they unpack to the same."),
    ("brotli_decompress/1.0.0", "Something behind the end is an error; Deriva ignores it."),
    (
        "charset_convert/1.0.0",
        "UTF-16 is written as such, where Deriva writes UTF-8. A character that `to` lacks is an error, where Deriva \
         writes `&#NNN;`. A byte order mark does not override `from`.",
    ),
    ("chunk_split/1.0.0", "A size of 0 is an error; Deriva panics."),
    ("compress/1.0.0", DEFLATE),
    ("csv_to_json/1.0.0", "A name that is twice in the header is an error; in Deriva the last column wins."),
    ("decompress/1.0.0", UNPACKED),
    ("gzip_compress/1.0.0", DEFLATE),
    (
        "gzip_decompress/1.0.0",
        "All members are unpacked, where Deriva drops those behind the first. A cut-off input is an error.",
    ),
    ("hex_decode/1.0.0", "`+f` is an error; Deriva takes it for `0f`."),
    (
        "lz4_decompress/1.0.0",
        "A declared size that is not that of the data is an error; Deriva takes a larger one.",
    ),
    ("magic_bytes/1.0.0", "An empty `expected` is an error; in Deriva every input passes."),
    ("merge_sorted/1.0.0", "An input that is not in order is an error; Deriva merges it as it is."),
    ("pad/1.0.0", "A block_size of 256 is an error; Deriva writes zero bytes as padding."),
    ("redact/1.0.0", "An empty pattern is an error; Deriva's matches everywhere."),
    ("sum/1.0.0", "`nan` and `inf` are errors; Deriva counts them."),
    (
        "toml_to_json/1.0.0",
        "Dates and times are errors, where Deriva gives an object with a private key; so are `nan` and `inf`, where it \
         gives null.",
    ),
    ("truncate_lines/1.0.0", "A character that does not fit is left out whole; Deriva panics."),
    (
        "yaml_to_json/1.0.0",
        "`<<` merges. Tags, `.nan` and `.inf` are errors, where Deriva gives objects and null. Integers beyond 64 bits \
         become floats, where Deriva refuses them.",
    ),
    ("zip_concat/1.0.0", "An input of 4 GiB or more is an error; Deriva's length wraps."),
    ("zstd_compress/1.0.0", "Levels above 19 have a window of 8 MiB, so the bytes may be others."),
];

/// Adds the function's entry from the table to its signature, if there is one.
pub(super) fn note(signature: &mut Signature) {
    let id = signature.id.to_string();
    if let Some((_, difference)) = DIFFERENCES.iter().find(|(known, _)| *known == id) {
        signature.unlike_deriva = (*difference).into();
    }
}
