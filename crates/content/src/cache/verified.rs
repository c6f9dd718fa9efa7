//! Bytes whose hash is known to be their address.

use bytes::Bytes;

use crate::Address;

/// Bytes with their address, which is known to be their hash. They may be a slice of a larger buffer: a cache copies
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedBytes {
    pub(super) address: Address,
    pub(super) bytes: Bytes,
}

/// The bytes' hash is not the address that they came with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bytes said to be {said} are {found}")]
pub struct Mismatch {
    /// The address that they came with.
    pub said: Address,
    /// The hash of the bytes.
    pub found: Address,
}

impl VerifiedBytes {
    /// Hashes the bytes and compares.
    pub fn check(address: Address, bytes: Bytes) -> Result<VerifiedBytes, Mismatch> {
        let found = Address::of(&bytes);
        if found == address {
            Ok(VerifiedBytes::known(address, bytes))
        } else {
            Err(Mismatch { said: address, found })
        }
    }

    /// For bytes that the caller has hashed.
    pub(crate) fn known(address: Address, bytes: Bytes) -> VerifiedBytes {
        VerifiedBytes { address, bytes }
    }
}
