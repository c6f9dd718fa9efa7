//! Functions of any bytes.

use crate::kit::golden;

#[test]
fn bytes() {
    golden(&[
        ("identity/1.0.0", &[b"abc"], &[], "abc"),
        ("concat/1.0.0", &[], &[], ""),
        ("concat/1.0.0", &[b"a", b"", b"bc"], &[], "abc"),
    ]);
}
