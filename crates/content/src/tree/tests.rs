use proptest::prelude::*;

use super::*;

/// Spans of four groups of two chunks, so that a tree of many spans is small.
const SMALL: Shape = Shape { group_len: 2048, span_groups: 4 };

fn blob(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8 ^ (at / 1024) as u8).collect()
}

/// Builds a blob's tree from pieces of these sizes, in turn.
fn build(shape: Shape, blob: &[u8], sizes: &[usize]) -> (Address, Vec<u8>) {
    let (mut builder, mut file, mut rest) = (Builder::with(shape), Vec::new(), blob);
    let mut put = |part: Part| {
        let end = part.offset as usize + part.bytes.len();
        file.resize(end.max(file.len()), 0);
        file[part.offset as usize..end].copy_from_slice(&part.bytes);
    };
    for size in sizes.iter().cycle() {
        let (now, later) = rest.split_at((*size).min(rest.len()));
        builder.update(now);
        if let Some(part) = builder.ready() {
            put(part);
        }
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    let done = builder.finish();
    assert_eq!(done.len, blob.len() as u64);
    done.tree.into_iter().for_each(put);
    (done.address, file)
}

fn values(file: &[u8], range: Range<u64>) -> Vec<Value> {
    decode_values(&file[range.start as usize..range.end as usize])
}

/// Checks a blob from its top to each of its groups.
fn check(tree: Tree, address: &Address, file: &[u8], blob: &[u8]) -> bool {
    let spans = values(file, tree.span_values());
    let groups_hold = |span: u64| {
        let groups = values(file, tree.group_values(span));
        tree.groups_hold(span, &groups, &spans[span as usize])
            && groups.iter().zip(span * tree.shape.span_groups..).all(|(value, group)| {
                let range = tree.group(group);
                tree.group_holds(group, &blob[range.start as usize..range.end as usize], value)
            })
    };
    file[..HEADER_LEN] == tree.header()
        && file.len() as u64 == tree.file_len()
        && tree.spans_hold(&spans, address)
        && (0..tree.spans()).all(groups_hold)
}

fn check_built(shape: Shape, len: usize, sizes: &[usize]) {
    let blob = blob(len);
    let (address, file) = build(shape, &blob, sizes);
    assert_eq!(address, Address::of(&blob), "of {len} bytes in pieces of {sizes:?}");
    assert!(check(Tree { shape, len: len as u64 }, &address, &file, &blob), "of {len} bytes");
}

#[test]
fn lengths_around_all_edges_hold() {
    for parts in [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 17, 31, 32, 33, 64, 65] {
        for len in [parts * 1024, parts * 1024 + 1, (parts * 1024usize).saturating_sub(1)] {
            check_built(SMALL, len, &[len.max(1)]);
            check_built(SMALL, len, &[1000, 1, 5000]);
        }
    }
}

#[test]
fn the_real_shape_holds() {
    let group = GROUP_LEN;
    for len in [0, 1, 1023, 1024, 1025, group - 1, group, group + 1, 5 * group, 17 * group + 3] {
        check_built(SHAPE, len, &[256 << 10]);
    }
}

#[test]
fn the_real_shape_holds_at_the_edge_of_a_span() {
    let span = 1024 * GROUP_LEN;
    for len in [span, span + 1] {
        check_built(SHAPE, len, &[1 << 20]);
    }
}

#[test]
fn parts_that_are_not_there_do_not_hold() {
    for len in [0, 1, 5000, 20_000, u64::MAX] {
        let tree = Tree { shape: SMALL, len };
        for part in [tree.groups(), tree.groups() + 1, u64::MAX] {
            assert!(!tree.group_holds(part, &[], &[0; 32]) || len == 0);
            assert!(!tree.group_holds(part, &[0; 4000], &[0; 32]));
            assert!(!tree.groups_hold(part, &[], &[0; 32]));
            assert!(!tree.groups_hold(part, &[[0; 32]], &[0; 32]));
        }
        assert!(!tree.spans_hold(&[], &Address::of(b"")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_length_in_any_pieces_holds(len in 0usize..100_000, sizes in prop::collection::vec(1usize..9000, 1..5)) {
        check_built(SMALL, len, &sizes);
    }

    #[test]
    fn a_flipped_bit_never_holds(len in 1usize..40_000, at in any::<prop::sample::Index>(), bit in 0..8) {
        let mut blob = blob(len);
        let (address, mut file) = build(SMALL, &blob, &[4096]);
        let at = at.index(file.len() + len);
        match at.checked_sub(file.len()) {
            None => file[at] ^= 1u8 << bit,
            Some(at) => blob[at] ^= 1u8 << bit,
        }
        let tree = Tree { shape: SMALL, len: len as u64 };
        prop_assert!(!check(tree, &address, &file, &blob));
    }
}

/// Groups that were hashed elsewhere make the same tree as the bytes themselves.
#[test]
fn groups_can_come_with_their_values() {
    for len in [2, 8, 9, 1032].map(|groups| groups * GROUP_LEN) {
        for tail in [0, 1, GROUP_LEN] {
            let blob = blob(len + tail);
            let mut builder = Builder::new();
            let mut parts = Vec::new();
            for (at, piece) in blob[..len].chunks(8 * GROUP_LEN).enumerate() {
                // The last piece may be a single group, which is not the whole blob as another one is before it.
                builder.push_groups(&group_values((at * 8 * GROUP_LEN) as u64, piece));
                parts.extend(builder.ready());
            }
            builder.update(&blob[len..]);
            let done = builder.finish();
            let mut file = Vec::new();
            for part in parts.into_iter().chain(done.tree) {
                let end = part.offset as usize + part.bytes.len();
                file.resize(end.max(file.len()), 0);
                file[part.offset as usize..end].copy_from_slice(&part.bytes);
            }
            let expected = build(SHAPE, &blob, &[64 << 20]);
            assert!((done.address, file) == expected, "{len} and {tail} bytes");
        }
    }
}
