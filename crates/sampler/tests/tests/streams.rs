//! A value depends on (seed, column, row, round) alone.

use anabranch_sampler::{ColumnKey, Sampler, Uuid};
use proptest::prelude::{any, proptest};

use crate::support::compile;

proptest! {
    #[test]
    fn a_value_is_a_function_of_its_place(seed in any::<u64>(), row in any::<u64>(), round in any::<u32>()) {
        let compiled = compile(&Sampler::Uuid(Uuid::default()));
        let at = |seed, column: &str, row, round| {
            compiled.sample(&mut ColumnKey::new(seed, column).stream(row, round), None).unwrap()
        };
        let value = at(seed, "a", row, round);
        // Another draw in between changes nothing.
        let key = ColumnKey::new(seed, "a");
        compiled.sample(&mut key.stream(row ^ 1, round), None).unwrap();
        assert_eq!(value, compiled.sample(&mut key.stream(row, round), None).unwrap());
        for other in [
            at(seed ^ 1, "a", row, round),
            at(seed, "b", row, round),
            at(seed, "a", row ^ 1, round),
            at(seed, "a", row, round ^ 1),
        ] {
            assert_ne!(value, other);
        }
    }

    #[test]
    fn bounds_hold(bound in 1u64.., row in any::<u64>()) {
        let mut stream = ColumnKey::new(1, "bounds").stream(row, 0);
        assert!(stream.below(bound) < bound);
        assert!((0.0..1.0).contains(&stream.unit()));
        let open = stream.open_unit();
        assert!(open > 0.0 && open < 1.0);
    }
}

#[test]
fn small_bounds_are_even() {
    let mut counts = [0u32; 6];
    let key = ColumnKey::new(3, "dice");
    for row in 0..60_000 {
        counts[key.stream(row, 0).below(6) as usize] += 1;
    }
    let chi_square: f64 = counts.iter().map(|count| (f64::from(*count) - 10_000.0).powi(2) / 10_000.0).sum();
    assert!(chi_square < 20.0, "{counts:?}");
    assert_eq!(key.stream(0, 0).below(0), 0);
}
