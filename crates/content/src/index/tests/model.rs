//! Random histories against a model.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Model, SMALL, at, check, key, open, value};
use crate::index::{Index, Settings};
use crate::{Address, Disk, Memory, Wait};

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

/// A lookup that found no value spares a later one the runs, whatever was applied, written and merged in between.
#[test]
fn an_absence_that_was_noted_changes_no_answer() {
    let disk = Arc::new(Memory::new());
    let (index, _) = open(&disk, SMALL).unwrap();
    let (mut noted, mut was_changed) = (Vec::new(), false);
    for step in 0..4000_usize {
        // As good as random.
        let [number, what, is_put, ..] = *Address::of(&step.to_le_bytes()).as_bytes();
        let number = usize::from(number) % KEYS;
        match what % 10 {
            0 => index.freeze_all(|| note(step)),
            1 => _ = index.work().unwrap(),
            2..5 => {
                let (value, generation) = index.get_noting(&key(number), Wait::Yes).unwrap();
                if value.is_none() && noted.len() < 60 {
                    noted.push((number, generation));
                }
            }
            _ => {
                let change = (is_put % 5 < 3).then(|| value(step, 20));
                index.apply([(key(number), change)], at(step as u64), || note(step));
            }
        }
        for (number, generation) in &noted {
            let found = index.view().get_since(&key(*number), *generation, Wait::Yes).unwrap();
            assert_eq!(found, index.get(&key(*number), Wait::Yes).unwrap(), "step {step}");
            was_changed |= found.is_some();
        }
        if step % 100 == 0 {
            noted.clear();
        }
    }
    assert!(was_changed && index.stats().runs > 0);
}
