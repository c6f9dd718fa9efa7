//! Text of declarations: indented lines, comments, names.

/// Comments are broken before this column.
const WIDTH: usize = 110;

/// Declarations, as they are written.
#[derive(Default)]
pub(super) struct Page {
    pub(super) text: String,
    depth: usize,
}

impl Page {
    /// Adds a line, without an indent if it is empty.
    pub(super) fn line(&mut self, line: &str) {
        if !line.is_empty() {
            self.text.extend(std::iter::repeat_n("  ", self.depth));
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A block: its opening line, its content, its closing line.
    pub(super) fn block(&mut self, open: &str, inside: impl FnOnce(&mut Page), close: &str) {
        self.line(open);
        self.indented(inside);
        self.line(close);
    }

    /// The content of a block.
    pub(super) fn indented(&mut self, inside: impl FnOnce(&mut Page)) {
        self.depth += 1;
        inside(self);
        self.depth -= 1;
    }

    /// A comment that editors show: sentences, then tags, one per line. Nothing if there are none.
    pub(super) fn doc(&mut self, sentences: &[String], tags: &[String]) {
        let words = sentences.iter().map(|sentence| harmless(sentence)).filter(|text| !text.is_empty());
        let text = words.collect::<Vec<_>>().join(" ");
        let width = WIDTH - 2 * self.depth;
        if tags.is_empty() && text.chars().count() + "/**  */".len() <= width {
            if !text.is_empty() {
                self.line(&format!("/** {text} */"));
            }
            return;
        }
        let tags = tags.iter().map(|tag| harmless(tag));
        let mut lines = wrapped(&text, width - " * ".len());
        lines.extend(tags);
        self.line("/**");
        lines.iter().for_each(|line| self.line(&format!(" * {line}")));
        self.line(" */");
    }
}

/// Untrusted text on one line that cannot end the comment around it.
fn harmless(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("*/", "*\\/")
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// `the most ids` as `The most ids.`
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return String::new() };
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{}{}{end}", first.to_uppercase(), letters.as_str())
}

/// A name as a member of an object, quoted if it is not an identifier.
pub(super) fn member(name: &str) -> String {
    let begins = |letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == '$';
    let goes_on = |letter: char| begins(letter) || letter.is_ascii_digit();
    match name.starts_with(begins) && name.chars().all(goes_on) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A string as a literal.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A union of these strings; `never` if there are none.
pub(super) fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(quoted).collect();
    if words.is_empty() { "never".to_owned() } else { words.join(" | ") }
}
