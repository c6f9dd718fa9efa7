//! Makes a capture again without the values that it may not hold.
//!
//! The captured request runs again, on replies with pseudonyms, and its reads then are the capture. Keys that contain a
//! masked value contain its pseudonym, too. The stored reply to such a key is found by the original value.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cover::Cover;
use super::mask::{Behind, Masks};
use super::model::Model;
use super::replies::{Exchange, Replies};
use anabranch_engine::retry::Classified as _;
use anabranch_plan::Values;
use anabranch_plan::inspect::ReadRequest;
use anabranch_plan::source::{Data, Error, Read, Reply};

/// The reads of one request that is made again with pseudonyms.
pub(super) struct Masking {
    masks: Arc<Masks>,
    /// The original values of masked parameters.
    params: Values,
    model: Arc<Model>,
    replies: Replies,
    made: Mutex<MaskedExchanges>,
}

#[derive(Default)]
struct MaskedExchanges {
    behind: Behind,
    exchanges: Vec<Exchange>,
}

impl Masking {
    /// `behind` are the values behind the pseudonyms that the request itself holds.
    pub(super) fn new(masks: Arc<Masks>, params: Values, replies: Replies, behind: Behind) -> Arc<Masking> {
        let model = Model::new(Arc::new(Cover::new(&replies)));
        let made = Mutex::new(MaskedExchanges { behind, exchanges: Vec::new() });
        Arc::new(Masking { masks, params, model, replies, made })
    }

    /// The reply to a reader that reads for masked rows.
    pub(super) fn read(&self, endpoint: &Arc<str>, request: &ReadRequest<'_>) -> Result<Reply, Error> {
        let ReadRequest { reader, rows, keys, call, stale } = *request;
        let mut made = self.lock();
        let unmasked = self.masks.unmasked(rows, reader.pattern.keys(), &made.behind);
        let real = reader.pattern.apply_with(&unmasked, &call.user, &self.params);
        let reply = self.model.read(endpoint, reader, &real);
        let reply = match reply {
            Ok(reply) => Ok(Reply { data: self.masked(reply.data, &reader.read, &mut made.behind), ..reply }),
            Err(Error::NotCaptured { .. }) => reply,
            // The error message may contain a value.
            Err(error) => Err(Error::Recorded {
                message: format!("{endpoint} failed; what it said is masked").into(),
                severity: error.severity(),
            }),
        };
        let mut were = self.replies.exchanges.iter().rev();
        let was = were.find(|was| was.reader == reader.number && was.stale.is_some() == stale);
        let (took, stale) = was.map(|was| (was.took, was.stale)).unwrap_or_default();
        let exchange =
            Exchange { reader: reader.number, keys: keys.clone(), reply: reply.clone(), took, stale };
        made.exchanges.push(exchange);
        reply
    }

    fn masked(&self, data: Data, read: &Read, behind: &mut Behind) -> Data {
        match (data, read) {
            (Data::Columns(columns), Read::Fields(fields)) => {
                let column =
                    |(column, field): (_, &anabranch_plan::source::Field)| match self.masks.has(field.key) {
                        true => self.masks.column(&column, behind),
                        false => column,
                    };
                Data::Columns(columns.into_iter().zip(&**fields).map(column).collect())
            }
            (data, _) => data,
        }
    }

    /// The replies and the values behind the pseudonyms; `None` if it read values that were not captured.
    pub(super) fn take(&self) -> Option<(Vec<Exchange>, Behind)> {
        let MaskedExchanges { behind, exchanges } = std::mem::take(&mut *self.lock());
        self.model.uncovered().is_none().then_some((exchanges, behind))
    }

    fn lock(&self) -> MutexGuard<'_, MaskedExchanges> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
