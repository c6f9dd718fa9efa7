//! A disk that fails once.

use std::io::ErrorKind;

use anabranch_testkit::{Crash, CrashDisk};

use crate::crash::boundaries::work;
use crate::crash::driver::Driver;
use crate::crash::times;

async fn fail_at(call: u64, error: ErrorKind) {
    let mut driver = Driver::new(CrashDisk::new(call));
    if call % 2 == 1 {
        // The log alone has it all.
        driver.config.recent_bytes = 1 << 20;
    }
    driver.disk.fail_once(call, error);
    // What fails is in the model.
    let _ = work(&mut driver).await;
    driver.stop();
    for crash in [Crash::Kill, Crash::Total] {
        driver.crashed(call, crash).recover(crash).await;
    }
}

#[tokio::test]
async fn any_call_may_fail_once() {
    let mut driver = Driver::new(CrashDisk::new(0));
    work(&mut driver).await.unwrap();
    let step = 3u64.saturating_sub(times() - 1).max(1);
    for call in (1..=driver.disk.calls()).step_by(step as usize) {
        fail_at(call, ErrorKind::Other).await;
        fail_at(call + 1, ErrorKind::StorageFull).await;
    }
}
