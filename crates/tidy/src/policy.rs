//! The rules' data, read from `policy.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Everything in `policy.toml`; an unknown field is an error.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub(crate) edges: BTreeMap<String, Edges>,
    pub(crate) words: Words,
    pub(crate) size: Size,
    pub(crate) docs: Docs,
    pub(crate) crates: Crates,
    pub(crate) licences: Licences,
    pub(crate) marks: Marks,
}

impl Policy {
    /// The policy of this repository.
    ///
    /// # Panics
    /// When `policy.toml` is not a policy; the message says where.
    pub fn of_this_repository() -> Self {
        toml::from_str(include_str!("../policy.toml"))
            .unwrap_or_else(|e| panic!("crates/tidy/policy.toml: {e}"))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edges {
    pub(crate) uses: Vec<String>,
    pub(crate) tests: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    pub(crate) scope: Vec<String>,
    pub(crate) banned: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Size {
    pub(crate) file_lines: usize,
    pub(crate) function_lines: usize,
    pub(crate) files: BTreeMap<String, usize>,
    pub(crate) functions: BTreeMap<String, usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Docs {
    pub(crate) roots: Vec<String>,
    pub(crate) markdown_per_rust: f64,
    pub(crate) counted_from_rust_lines: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Crates {
    pub(crate) code_lines: usize,
    pub(crate) inherited: Vec<String>,
    pub(crate) test_binaries: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Licences {
    pub(crate) allowed: Vec<String>,
    pub(crate) exceptions: BTreeMap<String, Exception>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exception {
    pub(crate) licence: String,
    pub(crate) reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Marks {
    pub(crate) banned: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::Policy;

    #[test]
    fn an_unknown_field_is_an_error() {
        let text = format!("surprise = 1\n{}", include_str!("../policy.toml"));
        let error = toml::from_str::<Policy>(&text).unwrap_err();
        assert!(error.to_string().contains("unknown field `surprise`"), "{error}");
    }
}
