//! Functions that work on characters.

use bytes::{Bytes, BytesMut};
use memchr::memchr;

use crate::function::{Fault, Kernel, Out};
use crate::functions::kernels::{StreamingFunction, changed, signature};
use crate::param::ParamKind;
use crate::registry::Functions;

pub(super) fn add(functions: &mut Functions) {
    functions.add(StreamingFunction(
        signature(
            "uppercase/1.0.0",
            "The text in upper case, character by character, as in Unicode (ß becomes SS). The character \
             table is the standard library's.",
        )
        .nanos_per_kib(300),
        |_| Ok(cased(<[u8]>::make_ascii_uppercase, str::to_uppercase)),
    ));
    functions.add(StreamingFunction(
        signature(
            "lowercase/1.0.0",
            "The bytes with the letters A to Z in lower case. Other characters, such as É, are unchanged. \
             Version 2.0.0 converts all letters.",
        )
        .nanos_per_kib(60),
        |_| Ok(changed(<[u8]>::make_ascii_lowercase)),
    ));
    functions.add(StreamingFunction(
        signature(
            "lowercase/2.0.0",
            "The text in lower case, character by character, as in Unicode (Σ becomes σ, also at the end \
             of a word). The character table is the standard library's.",
        )
        .nanos_per_kib(300),
        |_| {
            Ok(cased(<[u8]>::make_ascii_lowercase, |text| {
                text.chars().flat_map(char::to_lowercase).collect()
            }))
        },
    ));
    functions.add(StreamingFunction(
        signature(
            "utf8_validate/1.0.0",
            "Returns the input unchanged; fails if it is not UTF-8. The error has the position of the \
             first invalid byte.",
        )
        .nanos_per_kib(60),
        |_| Ok(Box::new(ValidateKernel(Text::default()))),
    ));
    functions.add(StreamingFunction(
        signature(
            "line_ending/1.0.0",
            "The input with other line ends. `lf`: each CR LF becomes LF; a CR alone is unchanged. `crlf`: \
             each LF without a CR before it becomes CR LF.",
        )
        .needs("target", ParamKind::one_of(&["lf", "crlf"]), "the line ends of the output")
        .nanos_per_kib(400),
        |call| match call.text("target")? {
            "lf" => Ok(Box::new(LfKernel { held: false })),
            _ => Ok(Box::new(CrLfKernel { behind: false })),
        },
    ));
}

/// Decodes UTF-8 text from chunks of any size.
#[derive(Default)]
struct Text {
    /// The beginning of a character whose last byte has not arrived.
    held: Vec<u8>,
    /// The number of bytes before `held`.
    offset: u64,
}

impl Text {
    /// Passes all characters that are complete with this chunk to `see`.
    fn push(&mut self, mut chunk: &[u8], mut see: impl FnMut(&str)) -> Result<(), Fault> {
        while !self.held.is_empty() && !chunk.is_empty() {
            self.held.push(chunk[0]);
            chunk = &chunk[1..];
            match std::str::from_utf8(&self.held) {
                Ok(character) => {
                    see(character);
                    self.offset += self.held.len() as u64;
                    self.held.clear();
                }
                Err(error) if error.error_len().is_some() => return Err(self.fault()),
                Err(_) => {}
            }
        }
        if chunk.is_empty() {
            return Ok(());
        }
        match std::str::from_utf8(chunk) {
            Ok(text) => {
                see(text);
                self.offset += chunk.len() as u64;
            }
            Err(error) => {
                let (valid, rest) = chunk.split_at(error.valid_up_to());
                self.offset += valid.len() as u64;
                if error.error_len().is_some() {
                    return Err(self.fault());
                }
                see(std::str::from_utf8(valid).expect("it was looked at"));
                self.held.extend_from_slice(rest);
            }
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), Fault> {
        match self.held.is_empty() {
            true => Ok(()),
            false => Err(self.fault()),
        }
    }

    fn fault(&self) -> Fault {
        Fault::input(0, format!("not UTF-8 at byte {}", self.offset))
    }
}

/// A kernel that changes letters: byte by byte in ASCII chunks, otherwise character by character.
fn cased(
    ascii: impl Fn(&mut [u8]) + Send + 'static,
    each: impl Fn(&str) -> String + Send + 'static,
) -> Box<dyn Kernel> {
    Box::new(CaseKernel { text: Text::default(), ascii, each })
}

struct CaseKernel<A, E> {
    text: Text,
    ascii: A,
    each: E,
}

impl<A: Fn(&mut [u8]) + Send, E: Fn(&str) -> String + Send> Kernel for CaseKernel<A, E> {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        if self.text.held.is_empty() && chunk.is_ascii() {
            self.text.offset += chunk.len() as u64;
            let mut own = chunk.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
            (self.ascii)(&mut own);
            out.push(own.freeze());
            return Ok(());
        }
        self.text.push(&chunk, |text| out.push((self.each)(text).into()))
    }

    fn finish(&mut self, _: &mut Out) -> Result<(), Fault> {
        self.text.finish()
    }
}

struct ValidateKernel(Text);

impl Kernel for ValidateKernel {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.0.push(&chunk, |_| ())?;
        out.push(chunk);
        Ok(())
    }

    fn finish(&mut self, _: &mut Out) -> Result<(), Fault> {
        self.0.finish()
    }
}

struct LfKernel {
    /// Whether the last byte was a CR that has not been written yet.
    held: bool,
}

impl Kernel for LfKernel {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        if std::mem::take(&mut self.held) && chunk[0] != b'\n' {
            out.write(b"\r");
        }
        let mut from = 0;
        while let Some(len) = memchr(b'\r', &chunk[from..]) {
            let at = from + len;
            let given = match chunk.get(at + 1) {
                Some(b'\n') => at,
                Some(_) => at + 1,
                None => {
                    self.held = true;
                    at
                }
            };
            out.write(&chunk[from..given]);
            from = at + 1;
        }
        match from {
            0 => out.push(chunk),
            _ => out.write(&chunk[from..]),
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        if self.held {
            out.write(b"\r");
        }
        Ok(())
    }
}

struct CrLfKernel {
    /// Whether the last byte was a CR.
    behind: bool,
}

impl Kernel for CrLfKernel {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        let mut from = 0;
        for at in memchr::memchr_iter(b'\n', &chunk) {
            let behind = match at.checked_sub(1) {
                Some(before) => chunk[before] == b'\r',
                None => self.behind,
            };
            out.write(&chunk[from..at]);
            out.write(if behind { b"\n" } else { b"\r\n" });
            from = at + 1;
        }
        self.behind = chunk.last() == Some(&b'\r');
        match from {
            0 => out.push(chunk),
            _ => out.write(&chunk[from..]),
        }
        Ok(())
    }
}
