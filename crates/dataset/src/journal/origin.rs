//! Origins: the column and the model that a reply was paid for.

use super::entry::{Reader, Writer};

/// The names of an origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OriginNames {
    /// The dataset's name.
    pub(crate) dataset: String,
    /// The identity of the build, which it keeps while it is continued.
    pub(crate) build: String,
    pub(crate) column: String,
    /// The alias of the model.
    pub(crate) alias: String,
    /// The model, as `provider/model`.
    pub(crate) model: String,
}

/// An origin as the bytes that all of its entries have.
#[derive(Clone, Debug)]
pub(crate) struct Origin(Box<[u8]>);

impl Origin {
    pub(crate) fn new(names: &OriginNames) -> Origin {
        let OriginNames { dataset, build, column, alias, model } = names;
        let mut out = Writer(Vec::new());
        [dataset, build, column, alias, model].into_iter().for_each(|name| out.text(name));
        Origin(out.0.into())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl OriginNames {
    /// The names in the bytes of an origin; `None` if these are none.
    pub(super) fn decode(bytes: &[u8]) -> Option<OriginNames> {
        let mut from = Reader(bytes);
        let mut name = || from.text().map(str::to_owned);
        let names =
            OriginNames { dataset: name()?, build: name()?, column: name()?, alias: name()?, model: name()? };
        from.0.is_empty().then_some(names)
    }
}
