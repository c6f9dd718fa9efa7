//! Makes Rust of the .proto files. Their compiler is a crate, so that a build needs no `protoc`.

use std::path::PathBuf;

use prost::Message;

const FILES: [&str; 2] = ["deriva/deriva.proto", "anabranch/recipe/v1/recipes.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    // Kept for the reflection service.
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().bytes(".").btree_map(".").compile_fds(descriptors)?;
    Ok(())
}
