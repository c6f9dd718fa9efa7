//! Commands as bytes.

/// Appends a command of these words.
pub(super) fn command(out: &mut Vec<u8>, words: &[impl AsRef<[u8]>]) {
    head(out, words.len());
    words.iter().for_each(|word| self::word(out, word.as_ref()));
}

/// Appends the beginning of a command with this many words.
pub(super) fn head(out: &mut Vec<u8>, words: usize) {
    length(out, b'*', words);
}

/// Appends a word of a command.
pub(super) fn word(out: &mut Vec<u8>, word: &[u8]) {
    length(out, b'$', word.len());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

fn length(out: &mut Vec<u8>, kind: u8, len: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// A command that differs in its key only, with all other bytes made in advance.
pub(super) struct Template {
    /// The bytes before the length of the key.
    head: Box<[u8]>,
    /// The bytes behind the key.
    tail: Box<[u8]>,
    /// The parts of a key around an id.
    prefix: Box<str>,
    suffix: Box<str>,
}

impl Template {
    /// The command `name KEY arguments..`, whose keys are `prefix`, an id and `suffix`, or whole texts.
    pub(super) fn new(name: &str, arguments: &[&str], (prefix, suffix): (&str, &str)) -> Template {
        let mut start = Vec::new();
        head(&mut start, arguments.len() + 2);
        word(&mut start, name.as_bytes());
        start.push(b'$');
        let mut tail = b"\r\n".to_vec();
        arguments.iter().for_each(|argument| word(&mut tail, argument.as_bytes()));
        Template { head: start.into(), tail: tail.into(), prefix: prefix.into(), suffix: suffix.into() }
    }

    /// About how many bytes a command with an id takes.
    pub(super) fn size(&self) -> usize {
        self.head.len() + self.tail.len() + self.prefix.len() + self.suffix.len() + 16
    }

    /// Appends the command for an id.
    pub(super) fn id(&self, out: &mut Vec<u8>, id: i64) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(id);
        self.key(out, self.prefix.len() + digits.len() + self.suffix.len());
        out.extend_from_slice(self.prefix.as_bytes());
        out.extend_from_slice(digits.as_bytes());
        out.extend_from_slice(self.suffix.as_bytes());
        out.extend_from_slice(&self.tail);
    }

    /// Appends the command for a whole key.
    pub(super) fn text(&self, out: &mut Vec<u8>, key: &str) {
        self.key(out, key.len());
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(&self.tail);
    }

    /// The whole key of an id.
    pub(super) fn key_of(&self, id: i64) -> String {
        format!("{}{id}{}", self.prefix, self.suffix)
    }

    fn key(&self, out: &mut Vec<u8>, len: usize) {
        out.extend_from_slice(&self.head);
        out.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}
