//! Tokens and their scopes.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::str::FromStr;

use data_encoding::BASE64URL_NOPAD;

/// The scope of a token. Each scope includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Reads everything and changes nothing.
    Read,
    /// Runs plans, computes and stores recipes, and builds datasets.
    Run,
    /// Also imports, collects, scrubs, reloads, and reads the configuration.
    Admin,
}

/// The text is not a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected read, run or admin")]
pub struct NotAScope;

impl Scope {
    /// The name of the scope.
    pub fn word(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Run => "run",
            Scope::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

impl FromStr for Scope {
    type Err = NotAScope;

    fn from_str(text: &str) -> Result<Scope, NotAScope> {
        let all = [Scope::Read, Scope::Run, Scope::Admin];
        all.into_iter().find(|scope| scope.word() == text).ok_or(NotAScope)
    }
}

/// A secret that a client sends. Debug output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// The prefix of every generated token, so that scanners of leaked secrets find it.
const PREFIX: &str = "anb_";

/// The number of random bytes in a token.
const RANDOM_BYTES: usize = 32;

/// The length of the longest accepted token, in bytes.
const LEN_MOST: usize = 256;

impl Token {
    /// A new token, from the system's source of randomness.
    ///
    /// # Errors
    /// If the system has no such source.
    pub fn generate() -> std::io::Result<Token> {
        let mut bytes = [0; RANDOM_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Token(format!("{PREFIX}{}", BASE64URL_NOPAD.encode(&bytes))))
    }

    /// Reads a token: printable ASCII without spaces.
    pub fn parse(text: &str) -> Option<Token> {
        let fits =
            !text.is_empty() && text.len() <= LEN_MOST && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Token(text.to_owned()))
    }

    /// The text that clients send.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The stored hash of a token. Tokens have 256 random bits, so a fast hash is enough. Hashes are compared in
    /// constant time.
    pub(super) fn hash(&self) -> blake3::Hash {
        blake3::derive_key("anabranch server token v1", self.0.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_are_not_shown() {
        let (one, two) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.as_str().len(), PREFIX.len() + 43);
        assert_eq!(format!("{one:?}"), "Token(..)");
        assert_eq!(Token::parse(one.as_str()), Some(one));
        for wrong in ["", "a b", "a\n", "\u{e9}", &"x".repeat(257)] {
            assert_eq!(Token::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn scopes_include_each_other() {
        assert!(Scope::Read < Scope::Run && Scope::Run < Scope::Admin);
        assert_eq!("run".parse(), Ok(Scope::Run));
        assert_eq!("Run".parse::<Scope>(), Err(NotAScope));
    }
}
