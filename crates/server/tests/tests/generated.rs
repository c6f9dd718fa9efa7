//! The Rust that is kept of the .proto files is what they give. `UPDATE_EXPECT=1` writes it anew.

use std::collections::BTreeSet;
use std::path::Path;

use expect_test::expect_file;
use prost::Message as _;

const FILES: [&str; 3] =
    ["deriva/deriva.proto", "anabranch/recipe/v1/recipes.proto", "anabranch/plan/v1/plans.proto"];

/// All calls of the .proto files, as `package.Service/Method`.
pub(crate) fn calls() -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for file in protox::compile(FILES, [here("proto")]).unwrap().file {
        for service in &file.service {
            let name = format!("{}.{}", file.package(), service.name());
            calls.extend(service.method.iter().map(|method| format!("{name}/{}", method.name())));
        }
    }
    calls
}

fn here(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn generated_code_is_that_of_the_proto_files() {
    let descriptors = protox::compile(FILES, [here("proto")]).unwrap();
    let bytes = descriptors.encode_to_vec();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated");
    std::fs::create_dir_all(&out).unwrap();
    let generator = tonic_prost_build::configure()
        .out_dir(&out)
        .bytes(".")
        .btree_map(".")
        .codec_path("crate::codec::MeasuredCodec");
    generator.compile_fds(descriptors).unwrap();

    let made = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    expect_file!["../../src/generated/deriva.rs"].assert_eq(&made("deriva.rs"));
    expect_file!["../../src/generated/anabranch.recipe.v1.rs"].assert_eq(&made("anabranch.recipe.v1.rs"));
    expect_file!["../../src/generated/anabranch.plan.v1.rs"].assert_eq(&made("anabranch.plan.v1.rs"));
    let kept = here("src/generated/descriptors.bin");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&kept, &bytes).unwrap();
    }
    assert!(std::fs::read(kept).unwrap() == bytes, "descriptors.bin is stale");
}
