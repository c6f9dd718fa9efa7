//! Random histories against a model.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Model, at, check, key, open, value};
use crate::index::{Index, Settings};
use crate::{Disk, Memory};

#[derive(Clone, Debug)]
enum Step {
    Apply(Vec<(usize, Option<usize>)>),
    Work,
    Flush,
    Reopen,
    Check,
}

const KEYS: usize = 48;

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![8 => 0..40usize, 1 => Just(0usize), 1 => 0..=2000usize];
    let change = prop_oneof![3 => len.prop_map(Some), 1 => Just(None)];
    prop_oneof![
        8 => vec((0..KEYS, change), 0..12).prop_map(Step::Apply),
        6 => Just(Step::Work),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
        1 => Just(Step::Check),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn says_what_the_model_says(steps in vec(step(), 1..60), fan_in in 2..5usize) {
        let settings = Settings { recent_bytes: 1 << 10, fan_in, frozen_most: 4 };
        let disk = Arc::new(Memory::new());
        let mut history = History { models: vec![Model::new()], index: open(&disk, settings).unwrap().0 };
        for step in steps {
            history.go(step, &disk, settings);
        }
        history.go(Step::Flush, &disk, settings);
        history.go(Step::Reopen, &disk, settings);
        history.index.verify(&mut |_| {}).unwrap();
        history.go(Step::Check, &disk, settings);
    }
}

/// The expected content of the index, now and at every earlier position.
struct History {
    models: Vec<Model>,
    index: Index,
}

impl History {
    fn go(&mut self, step: Step, disk: &Arc<impl Disk>, settings: Settings) {
        let position = self.models.len() - 1;
        match step {
            Step::Apply(changes) => self.apply(changes),
            Step::Work => assert_eq!(self.index.work().unwrap(), self.index.should_work()),
            Step::Flush => self.index.flush(|| note(position)).unwrap(),
            Step::Reopen => {
                let (index, covered) = open(disk, settings).unwrap();
                let position = covered.as_ref().map_or(0, |covered| covered.position.offset as usize);
                assert!(covered.is_none_or(|covered| covered.note == note(position)));
                self.models.truncate(position + 1);
                self.index = index;
            }
            Step::Check => {
                let keys: Vec<_> = (0..KEYS).map(key).collect();
                check(&self.index, self.models.last().unwrap(), &keys);
            }
        }
    }

    fn apply(&mut self, changes: Vec<(usize, Option<usize>)>) {
        let position = self.models.len();
        let mut model = self.models.last().unwrap().clone();
        let changes = changes.into_iter().map(|(number, len)| {
            let (key, value) = (key(number), len.map(|len| value(number + position, len)));
            match value.clone() {
                Some(value) => model.insert(key, value),
                None => model.remove(&key),
            };
            (key, value)
        });
        self.index.apply(changes, at(position as u64), || note(position));
        self.models.push(model);
    }
}

fn note(position: usize) -> Vec<u8> {
    vec![position as u8; position % 7]
}
