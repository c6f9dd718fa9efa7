//! A value that this command receives. If the owner of the store ends, the rest is requested from where it stopped.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_content::Address;
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_recipe::{Get, Source};
use bytes::Bytes;

use super::backend::Backend;
use super::owner::Owner;
use super::place::Connection;
use crate::failure::Failure;

/// A value that is being received.
pub(super) struct IncomingValue<'a> {
    pub output: Address,
    pub size: u64,
    pub source: Source,
    /// The number of recipes that did not run because their inputs have the same values as in an earlier call.
    pub cut_off: u32,
    backend: &'a Backend,
    connection: Arc<Connection>,
    address: Address,
    /// The bytes that have not arrived yet.
    rest: Range<u64>,
    deadline: Option<Instant>,
    body: Body,
}

enum Body {
    Local(anabranch_recipe::FetchedValue),
    Remote(Box<anabranch_server::ReceivedValue>),
}

impl Body {
    fn described(&self) -> (Address, u64, Source) {
        match self {
            Body::Local(got) => (got.output, got.size, got.source),
            Body::Remote(got) => (got.output, got.size, got.source),
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self {
            Body::Local(got) => Ok(got.next().await.transpose()?),
            Body::Remote(got) => Ok(got.next().await.transpose()?),
        }
    }
}

impl IncomingValue<'_> {
    /// Requests a part of a value and waits until it begins.
    pub(super) async fn begin(
        backend: &Backend,
        address: Address,
        range: Range<u64>,
        within: Option<Duration>,
    ) -> Result<IncomingValue<'_>, Failure> {
        let deadline = within.map(|within| SystemClock.now() + within);
        let (connection, body) = request(backend, address, &range, deadline).await?;
        let (output, size, source) = body.described();
        let cut_off = match &body {
            Body::Local(got) => got.cut_off,
            Body::Remote(got) => got.cut_off,
        };
        Ok(IncomingValue {
            output,
            size,
            source,
            cut_off,
            backend,
            connection,
            address,
            rest: range,
            deadline,
            body,
        })
    }

    /// The next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            match self.body.next().await {
                Ok(Some(piece)) => {
                    self.rest.start += piece.len() as u64;
                    return Ok(Some(piece));
                }
                Err(failure) if self.backend.is_cut(&self.connection, &failure).await => {
                    self.resume().await?;
                }
                end => return end,
            }
        }
    }

    async fn resume(&mut self) -> Result<(), Failure> {
        self.backend.renew(&self.connection).await?;
        let rest = self.rest.start..self.rest.end.max(self.rest.start);
        (self.connection, self.body) = request(self.backend, self.address, &rest, self.deadline).await?;
        match self.body.described() {
            (output, ..) if output == self.output => Ok(()),
            (output, ..) => Err(Failure::of(format!(
                "the value was {}, and is {output} now that it was computed again; get it again from its beginning",
                self.output
            ))),
        }
    }
}

async fn request(
    backend: &Backend,
    address: Address,
    range: &Range<u64>,
    deadline: Option<Instant>,
) -> Result<(Arc<Connection>, Body), Failure> {
    backend
        .call_on(async |connection| {
            let range = range.clone();
            match connection {
                Connection::Owner(Owner { executor, .. }) => {
                    Ok(Body::Local(executor.get(&address, &Get { range, deadline }).await?))
                }
                Connection::Client(client) => {
                    let within =
                        deadline.map(|deadline| deadline.saturating_duration_since(SystemClock.now()));
                    Ok(Body::Remote(Box::new(client.get(address, range, within).await?)))
                }
            }
        })
        .await
}
