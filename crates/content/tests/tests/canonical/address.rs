//! Addresses against BLAKE3's published vectors, and as texts.

use anabranch_content::{Address, Context, ParseError};
use proptest::prelude::*;

/// Of the first bytes of 0, 1, .. 250, 0, 1, ..: how many, their hash, and the key derived from them.
const PUBLISHED: [(usize, &str, &str); 6] = [
    (
        0,
        "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        "2cc39783c223154fea8dfb7c1b1660f2ac2dcbd1c1de8277b0b0dd39b7e50d7d",
    ),
    (
        1,
        "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
        "b3e2e340a117a499c6cf2398a19ee0d29cca2bb7404c73063382693bf66cb06c",
    ),
    (
        1023,
        "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11",
        "74a16c1c3d44368a86e1ca6df64be6a2f64cce8f09220787450722d85725dea5",
    ),
    (
        1024,
        "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
        "7356cd7720d5b66b6d0697eb3177d9f8d73a4a5c5e968896eb6a689684302706",
    ),
    (
        1025,
        "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
        "effaa245f065fbf82ac186839a249707c3bddf6d3fdda22d1b95a3c970379bcb",
    ),
    (
        2048,
        "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a",
        "7b2945cb4fef70885cc5d78a87bf6f6207dd901ff239201351ffac04e1088a23",
    ),
];

#[test]
fn addresses_are_what_blake3_publishes() {
    for (length, hash, derived) in PUBLISHED {
        let input: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
        assert_eq!(Address::of(&input).to_string(), hash, "{length} bytes");
        let context = Context("BLAKE3 2019-12-27 16:29:52 test vectors context");
        assert_eq!(Address::derive(context, &input).to_string(), derived, "{length} bytes");
    }
}

#[test]
fn an_address_does_not_depend_on_the_one_derived_before() {
    let derive = |context: &'static str, bytes: &'static [u8]| Address::derive(Context(context), bytes);
    let inputs = ["", "one", "one more"].map(|context| [(context, &b""[..]), (context, &[7; 3000][..])]);
    // A thread remembers the last context.
    let alone = |(context, bytes)| {
        std::thread::scope(|scope| scope.spawn(move || derive(context, bytes)).join().unwrap())
    };
    let all: Vec<_> = inputs.concat().into_iter().map(|input| (input, alone(input))).collect();
    for (before, _) in &all {
        for ((context, bytes), address) in &all {
            derive(before.0, before.1);
            assert_eq!(derive(context, bytes), *address, "{context:?} after {before:?}");
        }
    }
}

#[test]
fn what_is_not_an_address_says_why() {
    let digits = "0123456789abcdef".repeat(4);
    assert!(digits.parse::<Address>().is_ok());
    for length in [0, 1, 63] {
        assert_eq!(digits[..length].parse::<Address>(), Err(ParseError::Length(length)));
    }
    assert_eq!(format!("{digits}0").parse::<Address>(), Err(ParseError::Length(65)));
    for (place, found) in [(1, 'g'), (32, ' '), (64, 'é'), (65, '\n')] {
        let text = format!("{}{found}", &digits[..place - 1]);
        assert_eq!(text.parse::<Address>(), Err(ParseError::Digit { place, found }), "{text:?}");
    }
}

proptest! {
    #[test]
    fn an_address_is_its_text(bytes in any::<[u8; 32]>()) {
        let address = Address::from_bytes(bytes);
        prop_assert_eq!(address.as_bytes(), &bytes);
        prop_assert_eq!(address.to_string().parse(), Ok(address));
    }
}
