//! Code in a reply.

use super::ReplyProblem;
use super::fence::fences;

/// The last fenced block of a reply. Its tag must be the language or another name for it, or missing. All dialects of
/// `sql:` are `sql`.
///
/// ```
/// let reply = "Here it is:\n```py\nprint(1)\n```";
/// assert_eq!(anabranch_model::reply::code(reply, "python").unwrap(), "print(1)");
/// ```
pub fn code(reply: &str, language: &str) -> Result<String, ReplyProblem> {
    let tag = tag(language);
    let Some(fence) = fences(reply).pop() else {
        return Err(ReplyProblem(format!(
            "the reply has no fenced code block; it should end with a ```{tag} block"
        )));
    };
    if !fence.tag.is_empty() && !names(language, fence.tag) {
        let found = crate::error::shorten(fence.tag);
        return Err(ReplyProblem(format!("the last code block is tagged `{found}`, and should be `{tag}`")));
    }
    if !fence.closed {
        return Err(ReplyProblem("the last code block is not closed".to_owned()));
    }
    if fence.body.trim().is_empty() {
        return Err(ReplyProblem("the last code block is empty".to_owned()));
    }
    Ok(fence.body)
}

/// The usual tag of a language: `sql` for `sql:postgres`.
pub(crate) fn tag(language: &str) -> &str {
    language.split(':').next().unwrap_or(language)
}

/// Whether a tag is a name of the language.
fn names(language: &str, found: &str) -> bool {
    let found = found.to_ascii_lowercase();
    if found == language || found == tag(language) {
        return true;
    }
    let others: &[&str] = match language {
        "bash" => &["sh", "shell", "zsh", "console"],
        "c" => &["h"],
        "cobol" => &["cbl", "cob"],
        "cpp" => &["c++", "cc", "cxx", "hpp"],
        "csharp" => &["c#", "cs"],
        "go" => &["golang"],
        "javascript" => &["js", "node", "jsx", "mjs"],
        "kotlin" => &["kt", "kts"],
        "python" => &["py", "python3", "py3", "python2"],
        "ruby" => &["rb"],
        "rust" => &["rs"],
        "typescript" => &["ts", "tsx"],
        "sql:sqlite" => &["sqlite", "sqlite3"],
        "sql:tsql" => &["tsql", "t-sql", "mssql", "sqlserver"],
        "sql:bigquery" => &["bigquery", "bq", "googlesql"],
        "sql:mysql" => &["mysql", "mariadb"],
        "sql:postgres" => &["postgres", "postgresql", "pgsql", "psql", "plpgsql"],
        "sql:ansi" => &["ansi"],
        _ => &[],
    };
    others.contains(&found.as_str())
}
