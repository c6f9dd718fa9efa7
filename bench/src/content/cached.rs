//! A get of what is in memory, beside other maps.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::time::Instant;

use anabranch_content::{Address, Cache, CacheSettings, Class, VerifiedBytes};
use bytes::Bytes;
use futures_util::FutureExt;

use super::callers::{blob, median, mix, put, serve_all};
use super::ground::Ground;
use super::{digits, verdict};
use crate::report::{Report, row};

const KEYS: u64 = 10_000;
const GETS: u64 = 500_000;

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("A cached get");
    report.say(format_args!(
        "Nanoseconds a get of one of {} blobs of 1 KiB, in random order; on two threads each has half of the keys. \
        `arithmetic` shows what two threads gain here when they share nothing.\n",
        digits(KEYS as f64)
    ));
    let folder = ground.folder("cached");
    let store = folder.open();
    let to = store.clone();
    serve_all(&ground.runtime, 64, 0..KEYS, move |number| {
        let store = to.clone();
        async move { put(&store, number, Class::Derivable).await }
    });
    let values: Vec<(Address, Bytes)> =
        (0..KEYS).map(|number| (Address::of(&blob(number)), blob(number).into())).collect();
    let keys: Vec<Address> = values.iter().map(|(address, _)| *address).collect();
    let cache = Cache::new(CacheSettings { bytes: 64 << 20 });
    let quick = quick_cache::sync::Cache::new(2 * KEYS as usize);
    for (address, bytes) in &values {
        let value = VerifiedBytes::check(*address, bytes.clone()).expect("it is the blob's address");
        cache.admit(value, 20_000);
        quick.insert(*address, bytes.clone());
    }
    let map: Mutex<HashMap<Address, Bytes>> = Mutex::new(values.into_iter().collect());
    let contenders: [(&str, &Get<'_>); 5] = [
        ("store", &|key| store.get(key).now_or_never()?.ok()?),
        ("its cache alone", &|key| cache.get(key)),
        ("quick_cache 0.7", &|key| quick.get(key)),
        ("Mutex<HashMap>", &|key| map.lock().ok()?.get(key).cloned()),
        ("arithmetic", &|key| Some(Bytes::from_static(&[0; 64][..spin(key)]))),
    ];
    let measured = measure(ground, &contenders, &keys);
    let ceiling = measured[4].gain();
    let mut rows = vec![row(["what", "1 thread, ns", "2 threads, ns", "gain", "aim", "met?"])];
    for ((name, _), Figures { one, two }) in contenders.iter().zip(&measured) {
        let gain = one / two;
        let (aim, met) = match *name {
            "store" => {
                ("<= 300 ns; >= 80% of the gain there is", verdict(*one <= 300.0 && gain >= 0.8 * ceiling))
            }
            _ => ("", "-"),
        };
        rows.push(row([name, &digits(*one), &digits(*two), &format!("{gain:.2}x"), aim, met]));
    }
    report.table(&rows);
    ground.close(store);
    Ok(())
}

type Get<'a> = dyn Fn(&Address) -> Option<Bytes> + Sync + 'a;

/// Nanoseconds a get: on one thread, and on two at once (of both threads' gets together).
struct Figures {
    one: f64,
    two: f64,
}

impl Figures {
    fn gain(&self) -> f64 {
        self.one / self.two
    }
}

fn measure(ground: &Ground, contenders: &[(&str, &Get<'_>)], keys: &[Address]) -> Vec<Figures> {
    let mut turns: Vec<Vec<[f64; 2]>> = vec![Vec::new(); contenders.len()];
    let (first, second) = keys.split_at(keys.len() / 2);
    // The first turn is for warming up.
    for turn in 0..=ground.sizes.turns {
        for ((_, get), turns) in contenders.iter().zip(&mut turns) {
            let one = time(&[keys], *get);
            let two = time(&[first, second], *get);
            turns.extend((turn > 0).then_some([one, two]));
        }
    }
    let figure = |turns: &[[f64; 2]], place: usize| median(turns.iter().map(|turn| turn[place]));
    turns.iter().map(|turns| Figures { one: figure(turns, 0), two: figure(turns, 1) }).collect()
}

/// Nanoseconds a get, with a thread for each of the key sets.
fn time(key_sets: &[&[Address]], get: &Get<'_>) -> f64 {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for keys in key_sets {
            scope.spawn(|| {
                for number in 0..GETS {
                    let key = &keys[(mix(number) % keys.len() as u64) as usize];
                    assert!(std::hint::black_box(get(key)).is_some(), "a blob is not in memory");
                }
            });
        }
    });
    began.elapsed().as_nanos() as f64 / (GETS * key_sets.len() as u64) as f64
}

/// Some work of the size of a get.
fn spin(key: &Address) -> usize {
    let begin = u64::from(key.as_bytes()[0]);
    (0..20).fold(begin, |number, _| mix(std::hint::black_box(number))) as usize % 64
}
