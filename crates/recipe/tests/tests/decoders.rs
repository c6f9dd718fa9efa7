//! Every reader on any bytes: what the fuzzers in `fuzz/` do, without a fuzzer.

use std::path::Path;

use anabranch_content::Import;
use anabranch_recipe::{Executor, Functions, decoders};
use anabranch_testkit::Rng;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (_, decode) in decoders::ALL {
            decode(&bytes);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[ -~\n]{0,60}") {
        for (_, decode) in decoders::ALL {
            decode(text.as_bytes());
        }
    }
}

/// The kept inputs of each fuzz target, as they are and changed.
#[test]
fn kept_inputs_of_the_fuzzers_are_read_or_refused() {
    let mut rng = Rng::new(5);
    for (name, decode) in decoders::ALL {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
        let mut kept: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        kept.sort();
        assert!(kept.len() > 1, "{name} has no inputs");
        for path in kept {
            let bytes = std::fs::read(path).unwrap();
            decode(&bytes);
            for _ in 0..50 {
                let mut bytes = bytes.clone();
                mutate(&mut bytes, &mut rng);
                decode(&bytes);
            }
        }
    }
}

/// The kept archives are whole, so that a fuzzer starts from ones that are taken.
#[tokio::test]
async fn kept_archives_are_taken() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/archive");
    for file in std::fs::read_dir(folder).unwrap() {
        let records = std::fs::read(file.unwrap().path()).unwrap();
        let archive = [&b"anabranch archive 2\n"[..], &records].concat();
        let executor = Executor::in_memory(Functions::builtin()).unwrap();
        let imported = executor.import(std::io::Cursor::new(archive), Import::default()).await.unwrap();
        assert!(imported.new > 0 && imported.names.len() == 1);
    }
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
