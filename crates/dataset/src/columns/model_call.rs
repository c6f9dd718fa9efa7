//! A model as columns use it: with its parameters and its limit.

use anabranch_engine::limit::LimitKey;
use anabranch_engine::retry::Classified;
use anabranch_model::{ChatParams, Error};

use super::paid_model::PaidModel;
use crate::fault::Fault;

/// A model under an alias.
#[derive(Clone)]
pub(crate) struct ModelCall {
    pub(crate) model: PaidModel,
    pub(crate) params: ChatParams,
    /// The limit that all calls to the model count against.
    pub(crate) limit: LimitKey,
    /// Requests in flight at the same time.
    pub(crate) parallel: u32,
}

/// The fault of a cell for an error of a model.
pub(crate) fn model_fault(error: &Error) -> Fault {
    Fault {
        class: error.class().into(),
        message: error.to_string(),
        severity: error.severity(),
        attempts: error.attempts(),
        column: None,
    }
}
