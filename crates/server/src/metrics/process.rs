//! The process: memory, open files, uptime.

use anabranch_engine::metrics::MetricsPage;

use super::gauge;
use crate::service::Shared;

pub(super) fn write(shared: &Shared, page: &mut MetricsPage<'_>) {
    let uptime = shared.clock.now().saturating_duration_since(shared.began).as_secs();
    gauge(page, "uptime_seconds", "Seconds since the server was made.", uptime);
    if let Some(bytes) = resident_bytes() {
        gauge(page, "resident_bytes", "Memory that the process has in use.", bytes);
    }
    if let Some(files) = open_files() {
        gauge(page, "open_files", "File descriptors that the process has open.", files);
    }
}

/// The resident memory, from `/proc`. `None` on systems without it.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

fn open_files() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}
