//! Takes a capture: a request runs while it is recorded, and the result is written to a store.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use anabranch_content::{Address, Class, Cost, Lease, NewMemo, Store};
use futures_util::future::try_join_all;

use super::error::Error;
use super::mask::{Behind, Masks};
use super::masking::Masking;
use super::parts::{Contents, Outcome, encode_request};
use super::recorder::{MOST_BYTES, Recorder};
use super::replay::{MadeFrom, Replayer, again};
use super::replayed_reads::RecordedFrom;
use super::replies::{Asker, Exchange, Replies};
use super::sets;
use anabranch_plan::Answer;
use anabranch_plan::Error as PlanError;
use anabranch_plan::Request;
use anabranch_plan::inspect::{Compiled, Inspection, InspectionOutcome};
use anabranch_plan::source::Reader;
use anabranch_plan::{Plan, RunOptions};

/// A request that was captured and is not yet in a store.
pub struct UnsavedCapture {
    plan: Plan,
    request: Request,
    exchanges: Vec<Exchange>,
    outcome: Outcome,
    answer: Option<Answer>,
    /// True if it holds pseudonyms.
    masked: bool,
    /// The parts that it shares with other captures of the plan, once they are addressed.
    fixed: OnceLock<Arc<SharedParts>>,
}

/// The text that replaces free text in a masked capture.
const MASKED: &str = "masked";

/// The parts of a capture that are its own: request, replies, outcome, answer.
pub(super) struct EncodedParts([Vec<u8>; 4]);

impl EncodedParts {
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(|part| part.len() as u64).sum()
    }
}

/// Answers a request with these options and captures it. The answer is more important, so an error of the capture is
/// returned beside the answer. The capture is added to a set, or pinned by itself.
pub async fn capture(
    plan: &Plan,
    request: Request,
    options: &RunOptions,
    store: &Store,
    set: Option<&str>,
) -> (Result<Answer, PlanError>, Result<Address, Error>) {
    let (answer, taken) = run_recorded(plan, request, options, MOST_BYTES).await;
    let stored = match taken {
        Ok(taken) => taken.write(store, set).await,
        Err(error) => Err(error),
    };
    (answer, stored)
}

/// Answers a request with these options, and keeps its reads if they have at most `most_bytes` bytes.
pub async fn run_recorded(
    plan: &Plan,
    request: Request,
    options: &RunOptions,
    most_bytes: usize,
) -> (Result<Answer, PlanError>, Result<UnsavedCapture, Error>) {
    let recorder = Recorder::new(most_bytes);
    let inspection = Inspection { observer: Some(Arc::clone(&recorder) as _), ..Inspection::default() };
    let InspectionOutcome { answer, failed_ledger, .. } =
        plan.run_inspected(request.clone(), options, inspection).await;
    let taken = match recorder.take() {
        Ok(exchanges) => {
            let outcome = Outcome::new(&answer, failed_ledger);
            let kept = answer.as_ref().ok().cloned();
            let fixed = OnceLock::new();
            Ok(UnsavedCapture {
                plan: plan.clone(),
                request,
                exchanges,
                outcome,
                answer: kept,
                masked: false,
                fixed,
            })
        }
        Err(bytes) => Err(Error::TooLarge { bytes, most: most_bytes }),
    };
    (answer, taken)
}

impl UnsavedCapture {
    /// Writes the capture. Its set, or its own pin, protects it from collection.
    pub async fn write(&self, store: &Store, set: Option<&str>) -> Result<Address, Error> {
        Ok(self.put(self.encode(), store, set).await?.0)
    }

    pub(super) fn encode(&self) -> EncodedParts {
        let registries = &self.plan.compiled().registries;
        let request = encode_request(&self.request, registries);
        EncodedParts([request, self.replies().encode(), self.outcome.encode(), self.answer_bytes()])
    }

    /// Writes the capture with these parts. Also returns the number of new bytes among the parts that captures share.
    pub(super) async fn put(
        &self,
        encoded: EncodedParts,
        store: &Store,
        set: Option<&str>,
    ) -> Result<(Address, u64), Error> {
        if let Some(set) = set {
            sets::check_name(set)?;
        }
        // The parts are protected until the capture itself is stored.
        let mut lease = store.lease();
        let (fixed, new) = self.keep_fixed(store, &mut lease).await?;
        let size = encoded.0[3].len() as u64;
        let put = try_join_all(encoded.0.map(|part| store.put(part, Class::Acknowledged))).await?;
        let [request, replies, outcome, answer] = [0, 1, 2, 3].map(|at: usize| put[at].address);
        let contents = Contents {
            plan: fixed.plan,
            env: self.plan.compiled().registries.env.clone(),
            registries: fixed.registries.clone(),
            files: fixed.files.clone(),
            request,
            replies,
            outcome,
            answer,
            bounds: Some(self.plan.compiled().registries.limits.bounds),
            masked: self.masked,
        };
        let capture = store.put_derivation(sets::CAPTURE, contents.encode()).await?;
        let made = NewMemo { derivation: capture, output: answer, size, cost: Cost::default(), inputs: &[] };
        store.remember(made, Class::Acknowledged).await?;
        match set {
            Some(set) => sets::add(store, set, capture).await?,
            None => _ = store.pin(&capture).await?,
        }
        Ok((capture, new))
    }

    /// The same with pseudonyms for masked values; `None` if the request runs differently with these, or the answer
    /// would still contain a masked value.
    pub(super) async fn masked(
        &self,
        masks: &Arc<Masks>,
        replayer: &Replayer,
    ) -> Result<Option<UnsavedCapture>, Error> {
        let mut request = self.request.clone();
        let mut behind = Behind::default();
        let registries = &self.plan.compiled().registries;
        let same = "a pseudonym is of the kind of its value";
        request.restore_params(masks.params(self.request.params()), registries).expect(same);
        if let Some(rows) = self.request.candidates() {
            request.set_candidates(masks.candidates(rows, &mut behind), registries).expect(same);
        }
        let mut outcome = self.outcome.clone();
        // The messages of nodes may contain any value.
        outcome
            .ledger
            .iter_mut()
            .for_each(|entry| entry.detail = entry.detail.as_ref().map(|_| MASKED.to_owned()));
        let failed = self.outcome.failure.as_ref();
        let mut taken = UnsavedCapture {
            plan: self.plan.clone(),
            request,
            exchanges: Vec::new(),
            outcome,
            answer: None,
            masked: true,
            fixed: self.fixed.clone(),
        };
        if failed.is_some_and(|failure| failure.node.is_none()) {
            return Ok(Some(taken));
        }
        let plan = replayer.plan(&self.made_from())?;
        let params = self.request.params().clone();
        let masking = Masking::new(Arc::clone(masks), params, self.replies(), behind);
        let from = RecordedFrom::Masked(Arc::clone(&masking));
        let answer = again(&plan, taken.request.clone(), &taken.outcome, from, None).await;
        let Some((exchanges, behind)) = masking.take() else { return Ok(None) };
        taken.exchanges = exchanges;
        match (answer, failed) {
            (Ok(answer), None) if masks.hide(&answer, &behind, &plan.compiled().registries) => {
                taken.answer = Some(answer);
            }
            (Err(failure), Some(was)) if failure.node == was.node => taken.outcome.failure = Some(failure),
            _ => return Ok(None),
        }
        Ok(Some(taken))
    }

    fn made_from(&self) -> MadeFrom<'_> {
        let compiled = self.plan.compiled();
        let (fixed, registries) = (self.fixed(), &compiled.registries);
        let mut addresses = vec![fixed.plan];
        addresses.extend(fixed.registries.values().chain(fixed.files.values()));
        let texts = registries.texts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        MadeFrom {
            addresses,
            env: registries.env.as_deref(),
            bounds: Some(registries.limits.bounds),
            registries: texts.collect(),
            text: &compiled.origin.text,
            files: &compiled.origin.files,
        }
    }

    /// The answer as it is written, or the words of the error.
    fn answer_bytes(&self) -> Vec<u8> {
        match (&self.answer, &self.outcome.failure) {
            (Some(answer), _) => {
                let mut bytes = Vec::new();
                answer.write_json(&self.plan.compiled().registries.keys, &mut bytes);
                bytes
            }
            (None, Some(failure)) => failure.text.clone().into_bytes(),
            (None, None) => unreachable!("a request ends one way or the other"),
        }
    }

    fn replies(&self) -> Replies {
        let plan = self.plan.compiled();
        let endpoints: Vec<Arc<str>> =
            plan.registries.endpoints.iter().map(|endpoint| endpoint.id.as_str().into()).collect();
        let readers = plan.nodes.iter().flat_map(|node| &node.about.reads);
        let asked = readers.filter(|reader| self.exchanges.iter().any(|made| made.reader == reader.number));
        let asker = |reader: &Reader| Asker {
            number: reader.number,
            endpoint: Arc::clone(&endpoints[reader.endpoint]),
            affixes: reader.pattern.affixes().map(|(prefix, suffix)| (prefix.into(), suffix.into())),
            read: reader.read.clone(),
        };
        let mut readers: Vec<Asker> = asked.map(asker).collect();
        readers.sort_by_key(|asker| asker.number);
        Replies { readers, exchanges: self.exchanges.clone() }
    }

    fn fixed(&self) -> &Arc<SharedParts> {
        self.fixed.get_or_init(|| Arc::new(SharedParts::new(self.plan.compiled())))
    }

    /// The same, with the addresses of another capture of the same plan: models are large, and hashed once.
    pub(super) fn sharing(self, fixed: Arc<SharedParts>) -> UnsavedCapture {
        UnsavedCapture { fixed: fixed.into(), ..self }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Stores the parts that all captures of the plan share. Returns the number of new bytes.
    async fn keep_fixed(&self, store: &Store, lease: &mut Lease) -> Result<(&Arc<SharedParts>, u64), Error> {
        let (plan, fixed) = (self.plan.compiled(), self.fixed());
        let mut new = keep(store, lease, fixed.plan, plan.origin.text.as_bytes()).await?;
        for (name, text) in plan.registries.texts.iter() {
            new += keep(store, lease, fixed.registries[name], text.as_bytes()).await?;
        }
        for (name, bytes) in &plan.origin.files {
            new += keep(store, lease, fixed.files[name], bytes).await?;
        }
        Ok((fixed, new))
    }
}

/// The addresses of the parts that all captures of a plan share.
#[derive(Debug)]
pub(super) struct SharedParts {
    plan: Address,
    registries: BTreeMap<String, Address>,
    files: BTreeMap<String, Address>,
}

impl SharedParts {
    pub(super) fn new(plan: &Compiled) -> SharedParts {
        SharedParts {
            plan: Address::of(plan.origin.text.as_bytes()),
            registries: addresses(plan.registries.texts.iter()),
            files: addresses(plan.origin.files.iter()),
        }
    }
}

fn addresses<'a, B: AsRef<[u8]> + 'a>(
    files: impl Iterator<Item = &'a (String, B)>,
) -> BTreeMap<String, Address> {
    files.map(|(name, bytes)| (name.clone(), Address::of(bytes.as_ref()))).collect()
}

/// Stores bytes unless they exist and are protected, because models are large and the same in every capture. Returns
/// the number of bytes stored.
async fn keep(store: &Store, lease: &mut Lease, address: Address, bytes: &[u8]) -> Result<u64, Error> {
    let stays = lease.hold(address).await?;
    if stays && store.size(&address).await?.is_some() {
        return Ok(0);
    }
    store.put(bytes.to_vec(), Class::Acknowledged).await?;
    Ok(bytes.len() as u64)
}
