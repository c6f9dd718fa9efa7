//! The queue of waiting nodes beside a sorted list.

use proptest::prelude::*;

#[path = "../../src/run/queue.rs"]
mod ascending;

proptest! {
    #[test]
    fn items_come_out_as_from_a_sorted_list(
        steps in prop::collection::vec(prop::option::weighted(0.6, 0..50u32), 0..200),
    ) {
        let (mut queue, mut model) = (ascending::AscendingQueue::default(), Vec::new());
        for step in steps {
            match step {
                Some(item) => {
                    queue.push(item);
                    model.push(item);
                    model.sort_unstable();
                }
                None => {
                    prop_assert_eq!(queue.peek(), model.first().copied());
                    let least = (!model.is_empty()).then(|| model.remove(0));
                    prop_assert_eq!(queue.pop(), least);
                }
            }
        }
    }
}
