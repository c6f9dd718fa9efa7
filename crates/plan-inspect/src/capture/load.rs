//! Reading a capture back from its store.

use std::sync::Arc;

use anabranch_content::{Address, Store, Time};
use bytes::Bytes;

use super::error::Error;
use super::parts::{self, Contents, Outcome, Unreadable};
use super::replayed_reads::RecordedFrom;
use super::replies::{self, Replies};
use super::sets::CAPTURE;
use anabranch_plan::Plan;
use anabranch_plan::bounds::Bounds;
use anabranch_plan::inspect::NamedFile;
use anabranch_plan::{Request, UserId};

/// A capture, read from its store and checked.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Its name.
    pub address: Address,
    /// The time at which it was stored.
    pub at: Option<Time>,
    /// The outcome of the request.
    pub outcome: Outcome,
    /// The answer, or the error message.
    pub answer: Bytes,
    /// Whether secrets are masked in it.
    pub masked: bool,
    pub(super) env: Option<String>,
    /// The bounds of the engine that answered; `None` for those of the registries.
    pub(super) bounds: Option<Bounds>,
    /// The plan, by address and as text.
    pub(super) plan: (Address, String),
    pub(super) registries: Vec<(Address, String, String)>,
    pub(super) files: Vec<NamedFile>,
    pub(super) request: Bytes,
    pub(super) replies: Arc<Replies>,
}

/// Parts of one capture.
struct Parts<'a> {
    store: &'a Store,
    address: Address,
}

impl Capture {
    /// Reads a capture.
    pub async fn load(store: &Store, address: Address) -> Result<Capture, Error> {
        let described = store.derivation(&address).await?.filter(|found| found.context == CAPTURE.0);
        let described = described.ok_or(Error::NoCapture { address })?;
        let parts = Parts { store, address };
        let contents =
            Contents::decode(&described.bytes).map_err(|error| parts.unreadable("description", error))?;
        let mut registries = Vec::new();
        for (name, part) in &contents.registries {
            registries.push((*part, name.clone(), parts.text("registries", part).await?));
        }
        let mut files = Vec::new();
        for (name, part) in &contents.files {
            files.push((name.clone(), parts.get("files", part).await?.as_ref().into()));
        }
        let outcome = Outcome::decode(&parts.get("outcome", &contents.outcome).await?)
            .map_err(|error| parts.unreadable("outcome", error))?;
        let replies = parts.get("replies", &contents.replies).await?;
        let replies = Replies::decode(&replies).map_err(|error| match error {
            replies::Unreadable::Version(version) => {
                parts.unreadable("replies", Unreadable::Version(version.into()))
            }
            replies::Unreadable::Broken => parts.damaged("replies", "they break off or say what cannot be"),
        })?;
        Ok(Capture {
            address,
            at: store.recall(&address).await?.map(|memo| memo.at),
            outcome,
            answer: parts.get("answer", &contents.answer).await?,
            masked: contents.masked,
            env: contents.env.clone(),
            bounds: contents.bounds,
            plan: (contents.plan, parts.text("plan", &contents.plan).await?),
            registries,
            files,
            request: parts.get("request", &contents.request).await?,
            replies: Arc::new(replies),
        })
    }

    /// The text of the plan that answered.
    pub fn plan_text(&self) -> &str {
        &self.plan.1
    }

    /// The name of the plan that answered; empty if its text has none.
    pub fn plan_name(&self) -> String {
        let plan: Option<serde_json::Value> = serde_json::from_str(self.plan_text()).ok();
        let name = plan.as_ref().and_then(|plan| plan.get("plan_name")?.as_str());
        name.unwrap_or_default().to_owned()
    }

    /// The user of the request.
    pub fn user_id(&self) -> Option<UserId> {
        parts::user_of(&self.request)
    }

    /// The request, as a plan takes it.
    pub(super) fn request_to(&self, plan: &Plan) -> Result<Request, Error> {
        parts::decode_request(&self.request, &plan.compiled().registries)
            .map_err(|error| self.unreadable("request", error))
    }

    /// The very replies that were recorded.
    pub(super) fn recorded(&self) -> RecordedFrom {
        RecordedFrom::Same(Arc::clone(&self.replies))
    }

    /// The problems of the request, in terms of the capture.
    pub(super) fn unreadable(&self, part: &'static str, error: Unreadable) -> Error {
        unreadable(self.address, part, error)
    }
}

impl Parts<'_> {
    async fn get(&self, part: &'static str, address: &Address) -> Result<Bytes, Error> {
        self.store.get(address).await?.ok_or(Error::Missing { address: self.address, part })
    }

    async fn text(&self, part: &'static str, address: &Address) -> Result<String, Error> {
        let bytes = self.get(part, address).await?;
        String::from_utf8(bytes.into()).map_err(|_| self.damaged(part, "it is no text"))
    }

    fn unreadable(&self, part: &'static str, error: Unreadable) -> Error {
        unreadable(self.address, part, error)
    }

    fn damaged(&self, part: &'static str, what: &str) -> Error {
        Error::Damaged { address: self.address, part, what: what.to_owned() }
    }
}

fn unreadable(address: Address, part: &'static str, error: Unreadable) -> Error {
    match error {
        Unreadable::Version(version) => Error::Newer { address, part, version },
        Unreadable::Broken(what) => Error::Damaged { address, part, what },
    }
}
