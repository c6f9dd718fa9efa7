//! Bytes that are known to be the ones of their address.

use bytes::Bytes;

use crate::Address;

/// Bytes together with their address, which is theirs.
///
/// A cache counts their length. Bytes cut from a larger buffer keep all of it in memory: copy them first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub(super) address: Address,
    pub(super) bytes: Bytes,
}

/// Bytes that are not the ones of their address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bytes said to be {said} are {found}")]
pub struct Mismatch {
    /// The address that they came with.
    pub said: Address,
    /// The address that they have.
    pub found: Address,
}

impl Verified {
    /// Hashes the bytes and compares.
    pub fn check(address: Address, bytes: Bytes) -> Result<Verified, Mismatch> {
        let found = Address::of(&bytes);
        if found == address {
            Ok(Verified::known(address, bytes))
        } else {
            Err(Mismatch { said: address, found })
        }
    }

    /// For bytes that were hashed a moment ago.
    pub(crate) fn known(address: Address, bytes: Bytes) -> Verified {
        Verified { address, bytes }
    }
}
