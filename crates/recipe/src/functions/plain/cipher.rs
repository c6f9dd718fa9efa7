//! AES. The key is part of the recipe, so everyone who can read the recipe can decrypt its output.

use aes_gcm::aead::{Aead, KeyInit};
use aes_gcm::{Aes256Gcm, Key, Nonce};
use bytes::Bytes;
use ctr::cipher::{KeyIvInit, StreamCipher};

use crate::function::{Call, Fault, Kernel};
use crate::functions::kernels::{Begin, add_streamed, changed, signature};
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::signature::Signature;
use crate::whole::{Body, whole};

pub(super) fn add(functions: &mut Functions) {
    let counted = "The input with AES-256 in counter mode over it, which is its own inverse: 64 bits of counter in the \
                   last 8 bytes of the nonce. Changes go unnoticed; prefer aead_encrypt. The key is as secret as the \
                   recipe.";
    let rows: [(Signature, Begin); 2] =
        [(with_key("encrypt/1.0.0", counted, 16), ctr), (with_key("decrypt/1.0.0", counted, 16), ctr)];
    add_streamed(functions, rows);
    let sealed = "The input in AES-256-GCM, then a tag of 16 bytes. The nonce is not in it, and must not serve another \
                  input. The key is as secret as the recipe.";
    functions.add(whole(with_key("aead_encrypt/1.0.0", sealed, 12), |call| {
        gcm(call, |cipher, nonce, plain| {
            let most = "is longer than AES-GCM allows";
            cipher.encrypt(nonce, plain).map_err(|_| Fault::input(0, most))
        })
    }));
    let opened = "The input of `aead_encrypt`, decrypted. Another key, nonce or input is an error.";
    functions.add(whole(with_key("aead_decrypt/1.0.0", opened, 12), |call| {
        gcm(call, |cipher, nonce, sealed| {
            let unlike = "its tag is not that of its bytes with this key and nonce";
            cipher.decrypt(nonce, sealed).map_err(|_| Fault::input(0, unlike))
        })
    }));
}

fn with_key(id: &'static str, about: &'static str, nonce: u64) -> Signature {
    signature(id, about)
        .needs("key", ParamKind::bytes(32), "the key")
        .needs("nonce", ParamKind::bytes(nonce), "the nonce")
        .nanos_per_kib(800)
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
