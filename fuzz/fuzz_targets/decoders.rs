//! Every decoder of the content crate on any bytes. The first byte chooses which; `FUZZ_DECODER=name` fixes one.

#![no_main]

use anabranch_content::decoders;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let named = std::env::var("FUZZ_DECODER");
    let chosen = match (&named, bytes.split_first()) {
        (Ok(name), _) => decoders::ALL.iter().find(|(known, _)| known == name).map(|chosen| (chosen, bytes)),
        (Err(_), Some((first, rest))) => Some((&decoders::ALL[usize::from(*first) % decoders::ALL.len()], rest)),
        (Err(_), None) => None,
    };
    if let Some(((_, decode), bytes)) = chosen {
        decode(bytes);
    }
});
