//! Differences between a function and the Deriva function with the same id. Functions that follow Deriva on purpose
//! describe their differences in their own signatures.

use crate::signature::Signature;

const DEFLATE: &str = "The compressed bytes differ, because they come from another deflate library; the \
    decompressed bytes are equal.";
const UNPACKED: &str = "Truncated input and trailing bytes are errors. Deriva returns the data so far, or \
    ignores the trailing bytes.";

const DIFFERENCES: [(&str, &str); 22] = [
    ("average/1.0.0", "`nan` and `inf` are errors; Deriva counts them."),
    (
        "brotli_compress/1.0.0",
        "The compressed bytes may differ, for example with quality 1; the decompressed bytes are equal.",
    ),
    ("brotli_decompress/1.0.0", "Trailing bytes are an error; Deriva ignores them."),
    (
        "charset_convert/1.0.0",
        "UTF-16 output is UTF-16; Deriva writes UTF-8. A character that `to` lacks is an error; Deriva \
         writes `&#NNN;`. A byte order mark does not override `from`.",
    ),
    ("chunk_split/1.0.0", "A size of 0 is an error; Deriva panics."),
    ("compress/1.0.0", DEFLATE),
    ("csv_to_json/1.0.0", "A duplicate name in the header is an error; in Deriva the last column wins."),
    ("decompress/1.0.0", UNPACKED),
    ("gzip_compress/1.0.0", DEFLATE),
    (
        "gzip_decompress/1.0.0",
        "All members are decompressed; Deriva ignores those after the first. Truncated input is an error.",
    ),
    ("hex_decode/1.0.0", "`+f` is an error; Deriva reads it as `0f`."),
    (
        "lz4_decompress/1.0.0",
        "A declared size that differs from the size of the data is an error; Deriva accepts a larger one.",
    ),
    ("magic_bytes/1.0.0", "An empty `expected` is an error; Deriva accepts every input then."),
    ("merge_sorted/1.0.0", "An unsorted input is an error; Deriva merges it as it is."),
    ("pad/1.0.0", "A `block_size` of 256 is an error; Deriva writes zero bytes as padding."),
    ("redact/1.0.0", "An empty pattern is an error; in Deriva it matches everywhere."),
    ("sum/1.0.0", "`nan` and `inf` are errors; Deriva counts them."),
    (
        "toml_to_json/1.0.0",
        "Dates and times are errors; Deriva writes an object with a private key. `nan` and `inf` are \
         errors; Deriva writes null.",
    ),
    ("truncate_lines/1.0.0", "A character that would be cut is left out; Deriva panics."),
    (
        "yaml_to_json/1.0.0",
        "`<<` merges. Tags, `.nan` and `.inf` are errors; Deriva writes objects and null. Integers beyond \
         64 bits become floats; Deriva refuses them.",
    ),
    ("zip_concat/1.0.0", "An input of 4 GiB or more is an error; Deriva's length overflows."),
    ("zstd_compress/1.0.0", "Levels above 19 use a window of 8 MiB, so the compressed bytes may differ."),
];

/// Adds the function's entry from the table to its signature, if there is one.
pub(super) fn note(signature: &mut Signature) {
    let id = signature.id.to_string();
    if let Some((_, difference)) = DIFFERENCES.iter().find(|(known, _)| *known == id) {
        signature.unlike_deriva = (*difference).into();
    }
}
