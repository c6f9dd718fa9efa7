//! A million derivations that read one input, beside a million that share none.

use std::io;

use anabranch_content::{Address, Store};

use super::callers::{Outputs, Rate, median, own_input, ratio, serve_all};
use super::ground::{Ground, Scratch};
use super::{digits, percent, verdict};
use crate::report::{Report, row};

/// A closed store with as many memos as a large store has entries, numbered from 0, of one input each.
pub(super) struct Memos {
    pub(super) folder: Scratch,
    pub(super) outputs: Outputs,
}

const CALLERS: usize = 4096;
const PARTS: u64 = 10;

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<Memos> {
    let entries = ground.sizes.entries;
    report.heading(&format!("{} dependents on one input", digits(entries as f64)));
    report.say(format_args!(
        "Durable memos from {CALLERS} callers, in {PARTS} parts by turns. Bytes are of all files of the closed store, without the outputs'.\n"
    ));
    let mut shared = GrownStore::new(ground, "shared", |_| own_input(0))?;
    let mut apart = GrownStore::new(ground, "apart", own_input)?;
    for part in 0..PARTS {
        ground.settle()?;
        for store in [&mut shared, &mut apart] {
            store.grow(ground, part)?;
        }
    }
    let rows = [
        row(["what", "one input", "an input each", "ratio", "aim", "met?"]),
        shared.rate_beside(&apart),
        shared.bytes_beside(&apart, 0, PARTS),
        shared.bytes_beside(&apart, 1, PARTS),
        linear(&shared),
    ];
    report.table(&rows);
    Ok(Memos { folder: apart.folder, outputs: apart.outputs })
}

struct GrownStore {
    folder: Scratch,
    store: Option<Store>,
    outputs: Outputs,
    input: fn(u64) -> Address,
    rates: Vec<Rate>,
    /// Bytes of the outputs.
    before: u64,
    /// Bytes an entry, after the first part and after the last.
    bytes: Vec<f64>,
}

impl GrownStore {
    fn new(ground: &Ground, name: &str, input: fn(u64) -> Address) -> io::Result<GrownStore> {
        let folder = ground.folder(name);
        let store = folder.open();
        let outputs = Outputs::put(&ground.runtime, &store);
        ground.close(store);
        let before = folder.bytes()?;
        Ok(GrownStore { folder, store: None, outputs, input, rates: Vec::new(), before, bytes: Vec::new() })
    }

    fn grow(&mut self, ground: &Ground, part: u64) -> io::Result<()> {
        let size = ground.sizes.entries / PARTS;
        let (to, outputs, input) = (self.store().clone(), self.outputs.clone(), self.input);
        let numbers = part * size..(part + 1) * size;
        self.rates.push(serve_all(&ground.runtime, CALLERS, numbers, move |number| {
            let (store, outputs) = (to.clone(), outputs.clone());
            async move { outputs.remember(&store, number, input(number)).await }
        }));
        if [1, PARTS].contains(&(part + 1)) {
            ground.close(self.store.take().expect("it is open between two parts"));
            let bytes = self.folder.bytes()? - self.before;
            self.bytes.push(bytes as f64 / ((part + 1) * size) as f64);
        }
        Ok(())
    }

    fn store(&mut self) -> &Store {
        self.store.get_or_insert_with(|| self.folder.open())
    }

    fn rate_beside(&self, apart: &GrownStore) -> Vec<String> {
        let rate = |grown: &GrownStore| digits(median(grown.rates.iter().map(|rate| rate.per_second)));
        let ratio = ratio(&self.rates, &apart.rates);
        let cells = [rate(self), rate(apart), percent(ratio)];
        let [ours, theirs, ratio_cell] = cells.each_ref().map(String::as_str);
        row(["memos a second", ours, theirs, ratio_cell, ">= 80%", verdict(ratio >= 0.8)])
    }

    fn bytes_beside(&self, apart: &GrownStore, at: usize, parts: u64) -> Vec<String> {
        let when = if at == 0 { format!("at 1/{parts} of them") } else { "at all of them".to_owned() };
        vec![
            format!("bytes an entry, {when}"),
            digits(self.bytes[at]),
            digits(apart.bytes[at]),
            percent(self.bytes[at] / apart.bytes[at]),
            String::new(),
            "-".to_owned(),
        ]
    }
}

fn linear(shared: &GrownStore) -> Vec<String> {
    let ratio = shared.bytes[1] / shared.bytes[0];
    let (cell, met) = (percent(ratio), verdict(ratio <= 1.2));
    row(["the same, all over 1/10", "", "", &cell, "<= 120%: linear", met])
}
