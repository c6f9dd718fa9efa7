//! Fenced blocks of Markdown.

/// One fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fence<'a> {
    /// The first word after the opening fence; empty if there is none.
    pub(super) tag: &'a str,
    pub(super) body: String,
    /// Whether the closing fence exists.
    pub(super) closed: bool,
}

/// Blocks between lines of three or more backticks or tildes, in order. A block ends at a line of as many of the same
/// characters, or more; the opening fence's indent is taken off its lines.
pub(super) fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut fences = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(open) = Opening::of(line) else { continue };
        let mut fence = Fence { tag: open.tag, body: String::new(), closed: false };
        for line in lines.by_ref() {
            if open.is_closed_by(line) {
                fence.closed = true;
                break;
            }
            let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
            if !fence.body.is_empty() {
                fence.body.push('\n');
            }
            fence.body.push_str(&line[indent.min(open.indent)..]);
        }
        fences.push(fence);
    }
    fences
}

struct Opening<'a> {
    indent: usize,
    mark: char,
    marks: usize,
    tag: &'a str,
}

impl Opening<'_> {
    fn of(line: &str) -> Option<Opening<'_>> {
        let rest = line.trim_start_matches([' ', '\t']);
        let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = rest.trim_start_matches(mark);
        let marks = rest.len() - info.len();
        // Backticks after backticks are inline code.
        if marks < 3 || (mark == '`' && info.contains('`')) {
            return None;
        }
        let tag = info.trim().trim_start_matches('{').trim_start_matches('.');
        let tag = tag.split([' ', '\t', ',', '}', '{']).next().unwrap_or("");
        Some(Opening { indent: line.len() - rest.len(), mark, marks, tag })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.chars().all(|c| c == self.mark) && line.len() >= self.marks
    }
}
