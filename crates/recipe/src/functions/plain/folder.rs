//! The folder function. The value of a folder is its listing.

use anabranch_content::Address;
use bytes::Bytes;

use crate::folder::{EXECUTABLE, FILES, FOLDERS, FUNCTION, Folder, FolderEntry, LINKS};
use crate::function::{Call, Fault, Function, Kernel, OpenInputs, Out};
use crate::functions::kernels::signature;
use crate::param::{ParamKind, no_entries, no_values};
use crate::registry::Functions;
use crate::signature::{Arity, Holds, Signature};

/// The memory per entry: its address, and its line in the listing.
const ENTRY_BYTES: u64 = 512;

/// The memory per byte of a name: several copies, and control characters take six bytes in JSON.
const TEXT_COPIES: u64 = 8;

pub(super) fn add(functions: &mut Functions) {
    let names = || ParamKind::list(ParamKind::Text, 0);
    let mut signature =
        signature(FUNCTION, "A folder: files and folders by name. Its value is a listing in JSON.")
            .inputs(Arity::at_least(0))
            .may(FILES, names(), no_values(), "names of the first inputs, which are files, in byte order")
            .may(
                FOLDERS,
                names(),
                no_values(),
                "names of the inputs after them, which are folders, in byte order",
            )
            .may(EXECUTABLE, names(), no_values(), "names from `files` of executable files, in byte order")
            .may(LINKS, ParamKind::Map, no_entries(), "symbolic links: a map from name to path")
            .memory_per_input(ENTRY_BYTES)
            .nanos_per_kib(1)
            .compiles();
    // This prevents fusion: the listing contains the addresses of the inputs, which a fused run does not have.
    signature.holds = Holds::Everything;
    functions.add(FolderFunction { signature });
}

struct FolderFunction {
    signature: Signature,
}

impl Function for FolderFunction {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn begin(&self, call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        let inputs: Vec<(Address, u64)> =
            call.inputs.iter().copied().zip(call.sizes.iter().copied()).collect();
        let folder = Folder::read(&inputs, call.given())?;
        call.budget.claim(TEXT_COPIES * folder.text_bytes())?;
        let lines = folder.entries().map(|(name, entry)| line(name, entry)).collect::<Vec<_>>();
        Ok(Box::new(Listing { lines: lines.into_iter(), began: false, closed: false }))
    }
}

/// The line of an entry in the listing. It is formatted by hand, because the order of fields must not depend on the
/// build.
fn line(name: &str, entry: &FolderEntry<(Address, u64)>) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let name = text(name);
    match entry {
        FolderEntry::File { address: (address, size), executable } => format!(
            r#"{{"name":{name},"kind":"file","address":"{address}","size":{size},"executable":{executable}}}"#
        ),
        FolderEntry::Folder { address: (address, _) } => {
            format!(r#"{{"name":{name},"kind":"folder","address":"{address}"}}"#)
        }
        FolderEntry::Link { target } => {
            format!(r#"{{"name":{name},"kind":"link","target":{}}}"#, text(target))
        }
    }
}

/// A listing that is being written. It does not read its inputs.
struct Listing {
    lines: std::vec::IntoIter<String>,
    began: bool,
    closed: bool,
}

impl Kernel for Listing {
    fn wants(&self, _: &OpenInputs<'_>) -> Option<usize> {
        None
    }

    fn push(&mut self, _: usize, _: Bytes, _: &mut Out) -> Result<(), Fault> {
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        out.write(b"{\"version\":1,\"entries\":[");
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        for line in self.lines.by_ref() {
            out.write(if std::mem::replace(&mut self.began, true) { b",\n" } else { b"\n" });
            out.write(line.as_bytes());
            if out.is_full() {
                out.pause();
                return Ok(());
            }
        }
        if !std::mem::replace(&mut self.closed, true) {
            out.write(b"\n]}\n");
        }
        Ok(())
    }
}
