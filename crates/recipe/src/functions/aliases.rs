//! Deriva's streaming functions, `streaming_NAME/1.0`, as aliases of the functions in this crate.
//!
//! Deriva's streaming functions work chunk by chunk, so most of their outputs depend on how a value is split into
//! chunks. An alias returns the output of its function for the whole value. For values of one chunk (64 KiB) this
//! equals Deriva's output, unless the row's `unlike` field says otherwise.

use std::sync::Arc;

use crate::Value;
use crate::function::{Call, Fault, Function, Kernel};
use crate::recipe::{FunctionId, Params};
use crate::registry::Functions;
use crate::signature::Signature;

/// One alias.
#[derive(Clone, Copy)]
struct Row {
    /// The name behind `streaming_`.
    name: &'static str,
    /// The id of the function that the alias calls.
    function: &'static str,
    /// Renamed parameters: the alias's name, then the function's name.
    renamed: &'static [(&'static str, &'static str)],
    /// Default values that the alias sets, by the function's parameter names.
    defaults: &'static [(&'static str, &'static str)],
    /// Values with another meaning in Deriva, which are refused: the parameter, the value, and the suggested
    /// alternative.
    refused: &'static [(&'static str, &'static str, &'static str)],
    /// Whether the alias accepts and ignores parameters that the function does not have.
    ignores: bool,
    /// The difference from Deriva's output; empty if there is none.
    unlike: &'static str,
}

const fn row(name: &'static str, function: &'static str, unlike: &'static str) -> Row {
    Row { name, function, renamed: &[], defaults: &[], refused: &[], ignores: false, unlike }
}

/// A function that returns its input unchanged. In Deriva such a function only affects timing or chunk sizes.
const fn passing(name: &'static str) -> Row {
    Row { ignores: true, ..row(name, "identity/1.0.0", TIMING) }
}

const WHOLE: &str = "";
const CHUNKED: &str = "Deriva applies the function to each 64 KiB chunk and concatenates the results.";
const TIMING: &str =
    "The bytes are Deriva's. There are no chunks and no waits here, so parameters have no effect.";
const BY_LINES: &str = "Deriva handles the lines of a chunk up to the last line feed, and then the rest. Here, \
    bytes that are not UTF-8 are an error.";
const LITERAL: &str = "A `$` in `replace` stands for a group, even if `find` is not a pattern. Deriva handles the \
    lines of a chunk up to the last line feed, and then the rest. Here, bytes that are not UTF-8 are an error.";
const LINE_ENDS: &str = "The output has an LF between lines and none after the last line.";

const ROWS: [Row; 73] = [
    row("identity", "identity/1.0.0", WHOLE),
    row("uppercase", "uppercase/1.0.0", "Deriva converts the letters of each chunk by itself."),
    row("lowercase", "lowercase/1.0.0", WHOLE),
    row("reverse", "reverse/1.0.0", "Deriva reverses each 64 KiB chunk by itself."),
    row("base64_encode", "base64_encode/1.0.0", CHUNKED),
    row("base64_decode", "base64_decode/1.0.0", CHUNKED),
    Row { defaults: &[("key", "255")], ..row("xor", "xor/1.0.0", WHOLE) },
    row("compress", "compress/1.0.0", CHUNKED),
    row("decompress", "decompress/1.0.0", CHUNKED),
    row("sha256", "sha256/1.0.0", WHOLE),
    row("byte_count", "byte_count/1.0.0", WHOLE),
    row("checksum", "crc32/1.0.0", WHOLE),
    row("concat", "concat/1.0.0", WHOLE),
    Row { defaults: &[("block_size", "65536")], ..row("interleave", "interleave/1.0.0", INTERLEAVED) },
    Row { defaults: &[("block_size", "65536")], ..row("zip_concat", "interleave/1.0.0", INTERLEAVED) },
    passing("chunk_resizer"),
    row("take", "take/1.0.0", WHOLE),
    row("skip", "skip/1.0.0", WHOLE),
    row("repeat", "repeat/1.0.0", WHOLE),
    row("encrypt", "encrypt/1.0.0", WHOLE),
    row("decrypt", "decrypt/1.0.0", WHOLE),
    row("hmac", "hmac_sha256/1.0.0", WHOLE),
    row("md5", "md5/1.0.0", WHOLE),
    row("sha512", "sha512/1.0.0", WHOLE),
    row("blake3", "blake3/1.0.0", WHOLE),
    Row {
        refused: &[("patterns", "default", "Deriva's own patterns are not known here; write them out")],
        ..row("redact", "redact/1.0.0", "Deriva searches line by line. `default` is an error.")
    },
    row("hex_encode", "hex_encode/1.0.0", WHOLE),
    row("hex_decode", "hex_decode/1.0.0", WHOLE),
    row("utf8_validate", "utf8_validate/1.0.0", WHOLE),
    Row { defaults: &[("target", "lf")], ..row("line_ending", "line_ending/1.0.0", WHOLE) },
    row("json_pretty_print", "pretty_json/1.0.0", WHOLE),
    row("json_minify", "minify_json/1.0.0", WHOLE),
    row("json_lines", "json_lines/1.0.0", LINE_ENDS),
    row("base32_encode", "base32_encode/1.0.0", CHUNKED),
    row("base32_decode", "base32_decode/1.0.0", CHUNKED),
    row("min_max", "min_max/1.0.0", "An empty input is an error; Deriva returns two bytes."),
    row("histogram", "histogram/1.0.0", WHOLE),
    row("zstd_compress", "zstd_compress/1.0.0", CHUNKED),
    row("zstd_decompress", "zstd_decompress/1.0.0", CHUNKED),
    row("lz4_compress", "lz4_compress/1.0.0", CHUNKED),
    row("lz4_decompress", "lz4_decompress/1.0.0", CHUNKED),
    row("snappy_compress", "snappy_compress/1.0.0", CHUNKED),
    row("snappy_decompress", "snappy_decompress/1.0.0", CHUNKED),
    Row { defaults: &[("quality", "4")], ..row("brotli_compress", "brotli_compress/1.0.0", CHUNKED) },
    row("brotli_decompress", "brotli_decompress/1.0.0", CHUNKED),
    row("trim", "trim/1.0.0", CHUNKED),
    passing("rate_limit"),
    passing("delay"),
    passing("timeout"),
    passing("retry"),
    passing("tee"),
    passing("broadcast"),
    passing("batch"),
    row(
        "merge",
        "concat/1.0.0",
        "The inputs are concatenated; Deriva mixes their chunks in the order in which they arrive.",
    ),
    row("json_validate", "json_validate/1.0.0", WHOLE),
    row("schema_validate", "schema_validate/1.0.0", "Deriva checks only types, required names and enums."),
    row("magic_bytes", "magic_bytes/1.0.0", WHOLE),
    row("size_limit", "size_limit/1.0.0", WHOLE),
    row("checksum_verify", "crc32_verify/1.0.0", WHOLE),
    row("sha256_verify", "sha256_verify/1.0.0", WHOLE),
    row("non_empty", "non_empty/1.0.0", WHOLE),
    row("prefix", "prefix/1.0.0", WHOLE),
    row("suffix", "suffix/1.0.0", WHOLE),
    row("line_prefix", "line_prefix/1.0.0", LINE_ENDS),
    Row { refused: &[("invert", "true", "use `grep_invert/1.0.0`")], ..row("grep", "grep/1.0.0", LINE_ENDS) },
    Row { defaults: &[("replacement", "")], ..row("sed", "regex_replace/1.0.0", BY_LINES) },
    Row {
        renamed: &[("find", "pattern"), ("replace", "replacement")],
        defaults: &[("replacement", "")],
        refused: &[("find", "", "an empty text is found everywhere")],
        ..row("replace", "regex_replace/1.0.0", LITERAL)
    },
    Row {
        defaults: &[("max_line_bytes", "1024")],
        ..row("truncate_lines", "truncate_lines/1.0.0", LINE_ENDS)
    },
    Row { defaults: &[("to", "utf-8")], ..row("charset_convert", "charset_convert/1.0.0", WHOLE) },
    Row {
        renamed: &[("expected_caddr", "expected_hash")],
        ..row("caddr_verify", "sha256_verify/1.0.0", WHOLE)
    },
    row("sum", "sum/1.0.0", "A line that is not a number is an error; Deriva skips it."),
    row("average", "average/1.0.0", "A line that is not a number is an error; Deriva skips it."),
    row("entropy", "entropy/1.0.0", WHOLE),
];

const INTERLEAVED: &str = "The default block size is 65536 bytes; Deriva interleaves chunks as they arrive.";

/// Bitwise and byte-swap functions, with Deriva's defaults.
const BITWISE: [Row; 4] = [
    Row { defaults: &[("mask", "255")], ..row("bitwise_and", "bitwise_and/1.0.0", WHOLE) },
    Row { defaults: &[("mask", "0")], ..row("bitwise_or", "bitwise_or/1.0.0", WHOLE) },
    row("bitwise_not", "bitwise_not/1.0.0", WHOLE),
    Row { defaults: &[("word_size", "2")], ..row("byte_swap", "byte_swap/1.0.0", CHUNKED) },
];

/// Deriva's streaming functions that have no alias, by reason. The names omit the prefix `streaming_`. A function whose
/// answer for a value of one chunk is that of a function here has an alias, whatever it does at the cuts between chunks.
#[cfg(test)]
pub(super) const NOT_HERE: [(&str, &[&str]); 4] = [
    (
        "They select, reorder or drop whole chunks, and return a value of one chunk unchanged or not at all. The \
         functions of these names here work on lines.",
        &["filter", "sample", "head", "tail", "deduplicate", "sort", "unique", "partition"],
    ),
    (
        "They write a digest, or a nonce and a tag, per chunk. No function of whole values writes the same.",
        &["merkle_tree", "chunk_hash", "rolling_hash", "aead_encrypt", "aead_decrypt"],
    ),
    ("Its output depends on time.", &["debounce"]),
    (
        "They differ from the batch functions of the same name, and no function here is equivalent.",
        &[
            "pad",
            "line_count",
            "word_count",
            "csv_to_json",
            "caddr_embed",
            "diff",
            "patch",
            "content_type",
            "tee_count",
        ],
    ),
];

pub(super) fn add(functions: &mut Functions) {
    for row in ROWS.iter().chain(&BITWISE) {
        let id = row.function.parse().expect("the ids in the table are `name/version`");
        let function = Arc::clone(functions.get(&id).expect("an alias is of a function that is here"));
        functions.add(Alias { signature: row.signature(function.signature()), row: *row, function });
    }
}

impl Row {
    /// The alias's name for one of the function's parameters.
    fn name_of<'a>(&self, param: &'a str) -> &'a str {
        self.renamed.iter().find(|(_, name)| *name == param).map_or(param, |(alias, _)| alias)
    }

    fn signature(&self, function: &Signature) -> Signature {
        let mut signature = function.clone();
        signature.id = FunctionId::new(format!("streaming_{}", self.name), "1.0");
        signature.about = format!("`{}` under another name.", self.function).into();
        signature.unlike_deriva = self.unlike.into();
        signature.other_params |= self.ignores;
        // The parameters under the function's names.
        signature.memory.per_param_byte += 1;
        for param in &mut signature.params {
            if let Some((_, default)) = self.defaults.iter().find(|(name, _)| *name == param.name) {
                param.default = Some(Value::from(*default));
            }
            param.name = self.name_of(&param.name).to_owned().into();
        }
        signature
    }
}

struct Alias {
    signature: Signature,
    row: Row,
    function: Arc<dyn Function>,
}

impl Function for Alias {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn begin(&self, call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        for (name, value, way_out) in self.row.refused {
            if call.given().get(*name) == Some(&Value::from(*value)) {
                return Err(Fault::param(name, format!("{value:?} is not taken: {way_out}")));
            }
        }
        let mut params = Params::new();
        for param in &self.function.signature().params {
            let value = call.value(self.row.name_of(&param.name))?;
            params.insert(param.name.to_string(), value.clone());
        }
        self.function.begin(&Call::new(self.function.signature(), &params, call.sizes, call.budget))
    }
}
