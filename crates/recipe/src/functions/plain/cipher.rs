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
    let counted = "The input, encrypted or decrypted with AES-256 in counter mode, which is its own \
        inverse. The counter is the last 8 bytes of the nonce. Changes are not detected; prefer \
        `aead_encrypt`. The key is stored in the recipe in plain text; everyone who can read the recipe \
        can read the key.";
    let rows: [(Signature, Begin); 2] =
        [(with_key("encrypt/1.0.0", counted, 16), ctr), (with_key("decrypt/1.0.0", counted, 16), ctr)];
    add_streamed(functions, rows);
    let sealed = "The input, encrypted with AES-256-GCM, then a tag of 16 bytes. The output does not \
        contain the nonce. Never use a nonce for two inputs. The key is stored in the recipe in plain \
        text; everyone who can read the recipe can read the key.";
    functions.add(whole(with_key("aead_encrypt/1.0.0", sealed, 12), |call| {
        gcm(call, |cipher, nonce, plain| {
            let most = "is longer than AES-GCM allows";
            cipher.encrypt(nonce, plain).map_err(|_| Fault::input(0, most))
        })
    }));
    let opened = "The input of `aead_encrypt`, decrypted. A wrong key, a wrong nonce and a changed input \
        are errors.";
    functions.add(whole(with_key("aead_decrypt/1.0.0", opened, 12), |call| {
        gcm(call, |cipher, nonce, sealed| {
            let unlike = "its tag does not fit its bytes, the key and the nonce";
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
