//! What an address is, in one look.

use super::commit::Order;
use super::tables::{Blob, Table};
use super::{Core, Store};
use crate::facts::{Derivation, Memo};
use crate::{Address, Error, Wait};

/// What a store has under an address, the most telling first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// What a derivation came to. Its value may be gone all the same.
    Memo(Memo),
    /// The description of a derivation that is not remembered.
    Derivation(Derivation),
    /// A blob of so many bytes.
    Blob(u64),
    /// Nothing.
    Nothing,
}

impl Store {
    /// What there is under an address.
    pub async fn known(&self, address: &Address) -> Result<Known, Error> {
        let address = *address;
        self.quick(move |core, wait| core.what_is(&address, wait)).await
    }

    /// Waits until what was [`derived`](Store::derived) so far is written, though not synced: a process that is killed
    /// leaves it.
    pub async fn written(&self) -> Result<(), Error> {
        self.inner.core.submit(Order::Pass, 0).await.map(|_| ())
    }
}

impl Core {
    fn what_is(&self, address: &Address, wait: Wait) -> Result<Known, Error> {
        if let Some(memo) = self.memo(address, wait)? {
            return Ok(Known::Memo(memo));
        }
        if let Some(derivation) = self.derivation(address, wait)? {
            return Ok(Known::Derivation(derivation));
        }
        if let Some(bytes) = self.pending.blob(address) {
            return Ok(Known::Blob(bytes.len() as u64));
        }
        let blob = self.row::<Blob>(&Table::Blob.key(address), wait)?;
        Ok(blob.map_or(Known::Nothing, |blob| Known::Blob(blob.size())))
    }
}
