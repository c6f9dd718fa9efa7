//! The messages between the two processes: a length, then JSON.

use std::io::{Error, ErrorKind, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::job::{ImportResolution, JobOutput};

/// The longest frame.
const LONGEST: usize = 32 << 20;

/// A message of the worker process to its parent: requests for files, then the output.
#[derive(Serialize, Deserialize)]
pub(crate) enum WorkerMessage {
    /// A request for a file; the parent answers with an [`ImportResolution`].
    Import { from: u32, specifier: String },
    /// The output of the job.
    Made(JobOutput),
}

/// The parent's reply to a request for a file.
pub(crate) type Answer = ImportResolution;

/// Writes a frame; one that is too long is an error and nothing is written.
pub(crate) fn write(to: &mut dyn Write, what: &impl Serialize) -> Result<(), Error> {
    let bytes = serde_json::to_vec(what)?;
    if bytes.len() > LONGEST {
        return Err(Error::new(ErrorKind::FileTooLarge, "longer than a frame may be"));
    }
    to.write_all(&(bytes.len() as u32).to_le_bytes())?;
    to.write_all(&bytes)?;
    to.flush()
}

/// Reads a frame.
pub(crate) fn read<T: DeserializeOwned>(from: &mut dyn Read) -> Result<T, Error> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(Error::new(ErrorKind::InvalidData, "longer than a frame may be"));
    }
    let mut bytes = Vec::new();
    // The buffer grows with the received bytes, not with the announced length.
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&bytes).map_err(|cause| Error::new(ErrorKind::InvalidData, cause))
}
