//! Every decoder on any bytes: what the fuzzers in `fuzz/` do, without a fuzzer.

use anabranch_content::{Address, Class, Config, Context, Cost, Error, NewMemo, Store, decoders};
use anabranch_testkit::Rng;
use proptest::prelude::*;

use crate::kit::{description, put_derivation};

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_decode_or_do_not(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (_, decode) in decoders::ALL {
            decode(&bytes);
        }
    }

    #[test]
    fn few_values_decode_or_do_not(bytes in prop::collection::vec(0u8..10, 0..100)) {
        for (_, decode) in decoders::ALL {
            decode(&bytes);
        }
    }
}

/// An input that a fuzzer found: a derivation in the form of format 1, which is not written any more.
#[test]
fn records_of_format_1_decode() {
    let found = include_bytes!("../../../../fuzz/seeds/decoders/old_derivation");
    for (_, decode) in decoders::ALL {
        decode(&found[1..]);
    }
}

/// Real files of a store, with bytes changed, cut out and doubled.
#[tokio::test]
async fn changed_files_decode_or_do_not() {
    let disk = anabranch_testkit::CrashDisk::new(1);
    let store = Store::open_on(std::sync::Arc::new(disk.clone()), Config::default()).unwrap();
    fill(&store).await;
    store.close().await.unwrap();
    let mut rng = Rng::new(7);
    for (path, _) in disk.files() {
        let bytes = disk.bytes(&path).unwrap();
        for _ in 0..300 {
            let mut bytes = bytes.clone();
            mutate(&mut bytes, &mut rng);
            for (_, decode) in decoders::ALL {
                decode(&bytes);
                // Records and blocks stand behind one another in their files.
                decode(&bytes[rng.within(0..bytes.len() as u64 + 1) as usize..]);
            }
        }
    }
}

/// An archive from a stranger: refused at a place, or taken in and right.
#[tokio::test]
async fn changed_archives_are_refused_or_right() {
    let store = Store::in_memory(Config::default()).unwrap();
    let top = fill(&store).await;
    let path = std::env::temp_dir().join(format!("anabranch-strange-{}", std::process::id()));
    store.export(&[top], std::fs::File::create(&path).unwrap()).await.unwrap();
    let whole = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut rng = Rng::new(9);
    let other = Store::in_memory(Config { cache_bytes: 0, ..Config::default() }).unwrap();
    let mut refused = 0;
    for _ in 0..300 {
        let mut bytes = whole.clone();
        mutate(&mut bytes, &mut rng);
        match other.import(std::io::Cursor::new(bytes.clone()), anabranch_content::Import::default()).await {
            Ok(_) => assert_eq!(bytes, whole),
            Err(Error::Archive { at, .. }) => {
                assert!(at <= bytes.len() as u64);
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 250);
    let claim = b"anabranch archive 1\n\xa7\x02\x01\x00".to_vec();
    assert!(matches!(
        other.import(std::io::Cursor::new(claim), anabranch_content::Import::default()).await,
        Err(Error::Archive { .. })
    ));
    assert!(matches!(
        other.import(std::io::empty(), anabranch_content::Import::default()).await,
        Err(Error::Archive { at: 0, .. })
    ));
}

async fn fill(store: &Store) -> Address {
    let input = store.put(vec![7; 100], Class::Acknowledged).await.unwrap().address;
    store.put(vec![9; 70_000], Class::Acknowledged).await.unwrap();
    store.name("name", Some(input)).await.unwrap();
    store.pin(&input).await.unwrap();
    let described = description([1, 2, 3], &[input]);
    let derivation = put_derivation(store, Context("anabranch tests"), described).await.unwrap();
    let output = store.put(vec![8; 50], Class::Derivable).await.unwrap().address;
    let made = NewMemo { derivation, output, size: 50, cost: Cost::default(), inputs: &[input] };
    store.remember(made, Class::Acknowledged).await.unwrap();
    derivation
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..rng.within(1..4) {
        let at = rng.within(0..bytes.len() as u64 + 1) as usize;
        match rng.within(0..4) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, rng.bits() as u8),
            2 if at < bytes.len() => _ = bytes.remove(at),
            _ if at < bytes.len() => bytes[at] ^= 1 << rng.within(0..8),
            _ => {}
        }
    }
}
