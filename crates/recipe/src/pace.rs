//! Long loops that hardly ever wait: others have their turn all the same.

/// So many steps are done in one go: less than a millisecond of looks at a store.
const STEPS: u32 = 256;

/// Counts the steps of a loop.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    steps: u32,
}

impl Pace {
    /// A step is done. Now and then others get their turn first, and it says so: time to see whether to go on.
    pub(crate) async fn step(&mut self) -> bool {
        self.steps += 1;
        if self.steps < STEPS {
            return false;
        }
        self.steps = 0;
        tokio::task::yield_now().await;
        true
    }
}
