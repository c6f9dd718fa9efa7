//! AES. The key is part of the recipe, so whoever can read the recipe can read what it hides.

use aes_gcm::aead::{Aead, KeyInit};
use aes_gcm::{Aes256Gcm, Key, Nonce};
use bytes::Bytes;
use ctr::cipher::{KeyIvInit, StreamCipher};

use crate::function::{Call, Fault, Kernel, Signature};
use crate::functions::support::{Begin, Body, add_streamed, changed, signature, whole};
use crate::registry::Functions;

pub(super) fn add(functions: &mut Functions) {
    let counted = "The input with AES-256 in counter mode over it, which is its own inverse: 64 bits of counter in the \
                   last 8 bytes of the nonce. Changes go unnoticed; prefer aead_encrypt. The key is as secret as the \
                   recipe.";
    let rows: [(Signature, Begin); 2] = [
        (with_key("encrypt/1.0.0", counted, NONCE_16), ctr),
        (with_key("decrypt/1.0.0", counted, NONCE_16), ctr),
    ];
    add_streamed(functions, rows);
    let sealed = "The input in AES-256-GCM, then a tag of 16 bytes. The nonce is not in it, and must not serve another \
                  input. The key is as secret as the recipe.";
    functions.add(whole(with_key("aead_encrypt/1.0.0", sealed, NONCE_12), |call| {
        gcm(call, |cipher, nonce, plain| {
            let most = "is longer than AES-GCM allows";
            cipher.encrypt(nonce, plain).map_err(|_| Fault::input(0, most))
        })
    }));
    let opened = "What aead_encrypt was given; another key, nonce or input is an error.";
    functions.add(whole(with_key("aead_decrypt/1.0.0", opened, NONCE_12), |call| {
        gcm(call, |cipher, nonce, sealed| {
            let unlike = "its tag is not that of its bytes with this key and nonce";
            cipher.decrypt(nonce, sealed).map_err(|_| Fault::input(0, unlike))
        })
    }));
}

const NONCE_16: &str = "16 bytes, or 32 hex digits";
const NONCE_12: &str = "12 bytes, or 24 hex digits";

fn with_key(id: &'static str, about: &'static str, nonce: &'static str) -> Signature {
    signature(id, about).needs("key", "32 bytes, or 64 hex digits").needs("nonce", nonce).nanos_per_kib(800)
}

fn ctr(call: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
    let (key, nonce) = (call.array::<32>("key")?, call.array::<16>("nonce")?);
    let mut cipher = ctr::Ctr64BE::<aes_gcm::aes::Aes256>::new(&key.into(), &nonce.into());
    Ok(changed(move |bytes| cipher.apply_keystream(bytes)))
}

type Crypt = fn(&Aes256Gcm, &Nonce<aes_gcm::aead::consts::U12>, &[u8]) -> Result<Vec<u8>, Fault>;

fn gcm(call: &Call<'_>, crypt: Crypt) -> Result<Body, Fault> {
    let (key, nonce) = (call.array::<32>("key")?, call.array::<12>("nonce")?);
    let cipher = Aes256Gcm::new(&Key::<Aes256Gcm>::from(key));
    Ok(Box::new(move |inputs, _| crypt(&cipher, &Nonce::from(nonce), &inputs[0]).map(Bytes::from)))
}
