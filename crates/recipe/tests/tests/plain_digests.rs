//! Digests, inputs that must have them, and ciphers.

use anabranch_recipe::{Functions, Params};
use bytes::Bytes;

use crate::kit::{given, golden};

const ABC_SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const ABC_BLAKE3: &str = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";

#[test]
fn digests() {
    let behind_0x = |digits: &str| format!("0x{digits}");
    golden(&[
        ("sha256/1.0.0", &[b"abc"], &[], &behind_0x(ABC_SHA256)),
        (
            "sha384/1.0.0",
            &[b"abc"],
            &[],
            "0xcb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
        ),
        (
            "sha512/1.0.0",
            &[b"abc"],
            &[],
            "0xddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423\
             643ce80e2a9ac94fa54ca49f",
        ),
        ("md5/1.0.0", &[b"abc"], &[], "0x900150983cd24fb0d6963f7d28e17f72"),
        ("blake3/1.0.0", &[b"abc"], &[], &behind_0x(ABC_BLAKE3)),
        ("caddr_compute/1.0.0", &[b"abc"], &[], &behind_0x(ABC_BLAKE3)),
        ("caddr_embed/1.0.0", &[b"abc"], &[], &format!("0x616263{ABC_BLAKE3}")),
        ("crc32/1.0.0", &[b"123456789"], &[], "0xcbf43926"),
        (
            "hmac_sha256/1.0.0",
            &[b"what do ya want for nothing?"],
            &[("key", "4A656665")],
            "0x5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            "hmac_sha256/1.0.0",
            &[b""],
            &[("key", "\u{e9}")],
            "! parameter `key`: \"\u{e9}\" is not bytes, or hex digits",
        ),
        (
            "chunk_hash/1.0.0",
            &[b"abc"],
            &[("block_size", "2")],
            "0xfb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b850556206032e7d2c03a9507ae265ecf5b5356885a53393a2029d\
             241394997265a1a25aefc6",
        ),
        ("chunk_hash/1.0.0", &[b"abc"], &[], &behind_0x(ABC_SHA256)),
        ("chunk_hash/1.0.0", &[b"abc"], &[("block_size", "3")], &behind_0x(ABC_SHA256)),
        ("chunk_hash/1.0.0", &[b""], &[], ""),
    ]);
}

#[test]
fn what_is_as_it_should_be_passes() {
    let zero = "0".repeat(64);
    golden(&[
        ("sha256_verify/1.0.0", &[b"abc"], &[("expected_hash", ABC_SHA256)], "abc"),
        ("sha256_verify/1.0.0", &[b"abc"], &[("expected_hash", &ABC_SHA256.to_uppercase())], "abc"),
        (
            "sha256_verify/1.0.0",
            &[b"abc"],
            &[("expected_hash", &zero)],
            &format!("! input 1: its SHA-256 is {ABC_SHA256}, not {zero}"),
        ),
        (
            "sha256_verify/1.0.0",
            &[b"abc"],
            &[("expected_hash", "00")],
            "! parameter `expected_hash`: \"00\" is not 32 bytes, or 64 hex digits",
        ),
        ("crc32_verify/1.0.0", &[b"123456789"], &[("expected_crc32", "CBF43926")], "123456789"),
        (
            "crc32_verify/1.0.0",
            &[b"12345678"],
            &[("expected_crc32", "cbf43926")],
            "! input 1: its CRC-32 is 9ae0daaf, not cbf43926",
        ),
        ("caddr_verify/1.0.0", &[b"abc"], &[("expected_caddr", ABC_BLAKE3)], "abc"),
        (
            "caddr_verify/1.0.0",
            &[b"abc"],
            &[("expected_caddr", &zero)],
            &format!("! input 1: its address is {ABC_BLAKE3}, not {zero}"),
        ),
        ("size_limit/1.0.0", &[b"abc"], &[("max_bytes", "3")], "abc"),
        ("size_limit/1.0.0", &[b""], &[("max_bytes", "0")], ""),
        ("size_limit/1.0.0", &[b"abc"], &[("max_bytes", "2")], "! input 1: has more than 2 bytes"),
        ("non_empty/1.0.0", &[b"a"], &[], "a"),
        ("non_empty/1.0.0", &[b""], &[], "! input 1: is empty"),
        ("magic_bytes/1.0.0", &[b"%PDF-1"], &[("expected", "25504446")], "%PDF-1"),
        (
            "magic_bytes/1.0.0",
            &[b"%PDG-1"],
            &[("expected", "25504446")],
            "! input 1: does not begin with 25504446",
        ),
        (
            "magic_bytes/1.0.0",
            &[b"%PD"],
            &[("expected", "25504446")],
            "! input 1: does not begin with 25504446",
        ),
        (
            "magic_bytes/1.0.0",
            &[b"%PD"],
            &[("expected", "")],
            "! parameter `expected`: \"\" is not bytes, or hex digits, not empty",
        ),
    ]);
}

#[test]
fn a_tree_is_as_built_level_by_level() {
    let functions = Functions::builtin();
    for (id, leaf, node) in [("merkle_root/1.0.0", &b""[..], &b""[..]), ("merkle_root/2.0.0", &[0], &[1])] {
        for count in 2..=17_u8 {
            let inputs: Vec<Vec<Bytes>> = (0..count).map(|at| vec![Bytes::from(vec![at; 3])]).collect();
            let hash = |parts: [&[u8]; 3]| blake3::hash(&parts.concat()).as_bytes().to_vec();
            let mut level: Vec<Vec<u8>> = inputs.iter().map(|input| hash([leaf, &input[0], b""])).collect();
            while level.len() > 1 {
                level = level
                    .chunks(2)
                    .map(|pair| match pair {
                        [left, right] => hash([node, left, right]),
                        _ => pair[0].clone(),
                    })
                    .collect();
            }
            assert_eq!(given(&functions, id, &inputs, &Params::new()).unwrap(), level[0], "{id} of {count}");
        }
    }
}

#[test]
fn ciphers() {
    let key = ("key", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
    let counted = [key, ("nonce", "000102030405060708090a0b0c0d0e0f")];
    let wraps = [key, ("nonce", "0001020304050607ffffffffffffffff")];
    let zeros = [("key", "00".repeat(32)), ("nonce", "00".repeat(12))];
    let zeros = [("key", &*zeros[0].1), ("nonce", &*zeros[1].1)];
    let sealed = b"\xce\xa7\x40\x3d\x4d\x60\x6b\x6e\x07\x4e\xc5\xd3\xba\xf3\x9d\x18\xd0\xd1\xc8\xa7\x99\x99\x6b\xf0\x26\
                   \x5b\x98\xb5\xd4\x8a\xb9\x19";
    let unlike = "! input 1: its tag does not fit its bytes, the key and the nonce";
    golden(&[
        (
            "encrypt/1.0.0",
            &[b"all at sea, and no ship"],
            &counted,
            "0x3b026877698f51e5954f791d63adc2b20e9c30a6abec28",
        ),
        ("decrypt/1.0.0", &[b"\x3b\x02\x68\x77\x69\x8f"], &counted, "all at"),
        (
            "encrypt/1.0.0",
            &[&[0; 32]],
            &wraps,
            "0x2270807a14280a165c7f692ef2ab529215a77748ec643a1a2a351261464309a7",
        ),
        (
            "encrypt/1.0.0",
            &[b""],
            &[key, ("nonce", "00")],
            "! parameter `nonce`: \"00\" is not 16 bytes, or 32 hex digits",
        ),
        (
            "aead_encrypt/1.0.0",
            &[&[0; 16]],
            &zeros,
            "0xcea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919",
        ),
        ("aead_decrypt/1.0.0", &[sealed], &zeros, "0x00000000000000000000000000000000"),
        ("aead_decrypt/1.0.0", &[&sealed[..31]], &zeros, unlike),
        ("aead_decrypt/1.0.0", &[b"short"], &zeros, unlike),
    ]);
}
