//! Derivations as the tests describe them: canonical bytes, whose addresses are the derivation's inputs.

use anabranch_content::{Address, Context, Described, Error, Put, Store, Value};
use bytes::Bytes;

use crate::archive::records::addresses_in;

/// Canonical bytes that describe a derivation: a label, and the addresses it reads.
pub(crate) fn description(label: impl AsRef<[u8]>, inputs: &[Address]) -> Bytes {
    let label = Value::Bytes(Bytes::copy_from_slice(label.as_ref()));
    let inputs = inputs.iter().copied().map(Value::Address);
    Value::List(std::iter::once(label).chain(inputs).collect()).encode().unwrap().into()
}

fn inputs(bytes: &[u8]) -> Vec<Address> {
    addresses_in(&Value::decode(bytes).expect("tests describe derivations by canonical bytes"))
}

/// Keeps a derivation by its canonical description.
pub(crate) async fn put_derivation(
    store: &Store,
    context: Context<'_>,
    bytes: impl Into<Bytes>,
) -> Result<Address, Error> {
    let bytes = bytes.into();
    let inputs = inputs(&bytes);
    store.put_derivation(context, bytes, &inputs).await
}

/// Keeps many derivations of one context.
pub(crate) async fn put_derivations(
    store: &Store,
    context: Context<'_>,
    described: &[Bytes],
) -> Result<Vec<Put>, Error> {
    let inputs: Vec<Vec<Address>> = described.iter().map(|bytes| inputs(bytes)).collect();
    let described = described.iter().zip(&inputs);
    let described = described.map(|(bytes, inputs)| Described { bytes: bytes.clone(), inputs });
    store.put_derivations(context, &described.collect::<Vec<_>>()).await
}
