//! Derivations as the tests describe them: canonical bytes, whose addresses are the derivation's inputs.

use anabranch_content::{Address, Context, Error, NewDerivation, Put, Store, Value};
use bytes::Bytes;

/// Canonical bytes that describe a derivation: a label, and the addresses it reads.
pub(crate) fn description(label: impl AsRef<[u8]>, inputs: &[Address]) -> Bytes {
    let label = Value::Bytes(Bytes::copy_from_slice(label.as_ref()));
    let inputs = inputs.iter().copied().map(Value::Address);
    Value::List(std::iter::once(label).chain(inputs).collect()).encode().unwrap().into()
}

/// Keeps a derivation by its canonical description.
pub(crate) async fn put_derivation(
    store: &Store,
    context: Context<'_>,
    bytes: impl Into<Bytes>,
) -> Result<Address, Error> {
    store.put_derivation(context, bytes.into()).await
}

/// Keeps many derivations of one context.
pub(crate) async fn put_derivations(
    store: &Store,
    context: Context<'_>,
    described: &[Bytes],
) -> Result<Vec<Put>, Error> {
    let described: Vec<NewDerivation> = described.iter().cloned().map(NewDerivation::from).collect();
    store.put_derivations(context, &described).await
}
