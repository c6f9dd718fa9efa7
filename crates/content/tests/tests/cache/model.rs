//! The cache against a naive one that looks at all its values each time.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use anabranch_content::{Address, Admission, Cache, CacheSettings, CacheStats, Refusal};
use proptest::prelude::*;

use super::{address, value};

#[derive(Clone, Copy, Debug)]
enum Step {
    Get(u64),
    Admit(u64, u64),
    Remove(u64),
    Pin(u64),
    Unpin(u64),
}

const VALUES: u64 = 16;

/// Values that take from 264 bytes to 5776, with some of the same size.
fn length(number: u64) -> usize {
    8 + 920 * (number as usize % 7)
}

fn size(number: u64) -> u64 {
    length(number) as u64 + Cache::ENTRY_BYTES
}

struct Naive {
    bound: u64,
    age: f64,
    held: Vec<NaiveValue>,
    pins: BTreeMap<u64, u64>,
    stats: CacheStats,
}

struct NaiveValue {
    number: u64,
    worth: u64,
    uses: u64,
    age: f64,
}

impl NaiveValue {
    fn priority(&self) -> f64 {
        let density = self.worth as f64 / size(self.number) as f64;
        (self.age + density * self.uses.min(16) as f64).max(self.age.next_up())
    }
}

impl Naive {
    fn get(&mut self, number: u64) -> bool {
        let age = self.age;
        let found = self.held.iter_mut().find(|held| held.number == number);
        let hit = found.map(|held| (held.uses, held.age) = (held.uses + 1, age)).is_some();
        *(if hit { &mut self.stats.hits } else { &mut self.stats.misses }) += 1;
        hit
    }

    fn admit(&mut self, number: u64, worth: u64) -> Admission {
        if self.held.iter().any(|held| held.number == number) {
            return Admission::Present;
        }
        if size(number) > self.bound {
            self.stats.refused_too_large += 1;
            return Admission::Refused(Refusal::TooLarge);
        }
        if size(number) > self.bound - self.taken(|held| self.pins.contains_key(&held.number)) {
            self.stats.refused_all_pinned += 1;
            return Admission::Refused(Refusal::AllPinned);
        }
        let mut newcomer = NaiveValue { number, worth, uses: 1, age: self.age };
        let leaving = self.leaving(size(number));
        let outranked = leaving.iter().any(|held| held.priority() > newcomer.priority());
        if outranked && !self.pins.contains_key(&number) {
            self.stats.refused_worth_less += 1;
            self.age = (self.age + worth as f64 / self.bound as f64).max(self.age.next_up());
            return Admission::Refused(Refusal::WorthLess);
        }
        let highest = leaving.iter().map(|held| held.priority()).fold(self.age, f64::max);
        let leaving: Vec<u64> = leaving.iter().map(|held| held.number).collect();
        self.held.retain(|held| !leaving.contains(&held.number));
        self.stats.evicted += leaving.len() as u64;
        self.stats.admitted += 1;
        self.age = highest;
        newcomer.age = highest;
        self.held.push(newcomer);
        Admission::Admitted
    }

    /// The lowest that make room together; values are held in the order of their arrival.
    fn leaving(&self, size_needed: u64) -> Vec<&NaiveValue> {
        let mut loose: Vec<&NaiveValue> =
            self.held.iter().filter(|held| !self.pins.contains_key(&held.number)).collect();
        loose.sort_by(|one, other| one.priority().total_cmp(&other.priority()));
        let mut taken = self.taken(|_| true);
        let fits = |held: &&&NaiveValue| {
            let excess = taken + size_needed > self.bound;
            taken -= size(held.number);
            excess
        };
        loose.iter().take_while(fits).copied().collect()
    }

    fn taken(&self, which: impl Fn(&NaiveValue) -> bool) -> u64 {
        self.held.iter().filter(|held| which(held)).map(|held| size(held.number)).sum()
    }

    fn remove(&mut self, number: u64) -> bool {
        let before = self.held.len();
        self.held.retain(|held| held.number != number);
        self.stats.removed += (before - self.held.len()) as u64;
        self.held.len() < before
    }

    fn unpin(&mut self, number: u64) -> bool {
        let Some(pins) = self.pins.get_mut(&number) else { return false };
        *pins -= 1;
        if *pins == 0 {
            self.pins.remove(&number);
        }
        true
    }

    fn stats(&self) -> CacheStats {
        CacheStats {
            entries: self.held.len() as u64,
            bytes: self.taken(|_| true),
            pinned_bytes: self.taken(|held| self.pins.contains_key(&held.number)),
            ..self.stats
        }
    }
}

/// The values' addresses, hashed once.
static NAMES: LazyLock<Vec<Address>> =
    LazyLock::new(|| (0..VALUES).map(|number| address(number, length(number))).collect());

fn name(number: u64) -> &'static Address {
    &NAMES[number as usize]
}

fn play(cache: &Cache, naive: &mut Naive, step: Step) -> Result<(), TestCaseError> {
    match step {
        Step::Get(number) => {
            prop_assert_eq!(cache.get(name(number)).is_some(), naive.get(number));
        }
        Step::Admit(number, worth) => {
            let admission = cache.admit(value(number, length(number)), worth);
            prop_assert_eq!(admission, naive.admit(number, worth));
        }
        Step::Remove(number) => {
            prop_assert_eq!(cache.remove(name(number)), naive.remove(number));
        }
        Step::Pin(number) => {
            cache.pin(*name(number));
            *naive.pins.entry(number).or_default() += 1;
        }
        Step::Unpin(number) => {
            prop_assert_eq!(cache.unpin(name(number)), naive.unpin(number));
        }
    }
    Ok(())
}

fn any_step() -> impl Strategy<Value = Step> {
    let worth = prop_oneof![6 => 0..5000u64, 2 => Just(1000), 1 => any::<u64>()];
    prop_oneof![
        8 => (0..VALUES).prop_map(Step::Get),
        8 => (0..VALUES, worth).prop_map(|(number, worth)| Step::Admit(number, worth)),
        1 => (0..VALUES).prop_map(Step::Remove),
        1 => (0..VALUES).prop_map(Step::Pin),
        1 => (0..VALUES).prop_map(Step::Unpin),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_cache_does_what_a_naive_one_does(
        bound in prop_oneof![5000..20_000u64, Just(5776u64)],
        steps in prop::collection::vec(any_step(), 1..200),
    ) {
        let cache = Cache::new(CacheSettings { bytes: bound });
        let (held, pins, stats) = Default::default();
        let mut naive = Naive { bound, age: 0.0, held, pins, stats };
        for step in steps {
            play(&cache, &mut naive, step)?;
            prop_assert_eq!(cache.stats(), naive.stats(), "{:?}", step);
            for number in 0..VALUES {
                let held = naive.held.iter().any(|held| held.number == number);
                prop_assert_eq!(cache.contains(name(number)), held, "{} {:?}", number, step);
            }
        }
    }
}
