//! The limits and permissions of dataset jobs.

use std::path::PathBuf;

/// The settings of dataset jobs.
#[derive(Clone, Debug)]
pub struct DatasetSettings {
    /// The folder of the jobs.
    pub folder: PathBuf,
    /// The operator's file with `model_configs` and `providers`. Without it, only the demo model is available.
    pub models: Option<PathBuf>,
    /// The folders that seeds may be read from. Default: none.
    pub files: Vec<PathBuf>,
    /// Whether configurations may have their own custom columns, remote validators, models and providers. These run
    /// commands and contact servers with the rights of this server. Default: no.
    pub allow_custom: bool,
    /// The most concurrent builds. Further jobs wait in order of arrival. Default: 2.
    pub builds_most: usize,
    /// The most jobs that are queued or being built, at most half of them of one client. Default: 100.
    pub open_most: usize,
    /// The most jobs that are kept, at most half of them of one client. Default: 1,000.
    pub kept_most: usize,
    /// The most rows per job. Default: 10,000,000.
    pub rows_most: u64,
    /// The most bytes of a configuration. Default: 1 MiB.
    pub config_most: usize,
    /// The most cells of the row groups that one build has in progress: rows of a group, times groups, times columns.
    /// Default: 4,000,000.
    pub cells_most: u64,
    /// About the most bytes of the values of these cells. A build that would have more is stopped. Default: 256 MiB.
    pub memory_most: usize,
    /// The disk limit in bytes. No job is accepted while the files of all jobs exceed it. Default: 64 GiB.
    pub disk_most: u64,
}

impl DatasetSettings {
    /// The defaults, with the jobs in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> DatasetSettings {
        DatasetSettings {
            folder: folder.into(),
            models: None,
            files: Vec::new(),
            allow_custom: false,
            builds_most: 2,
            open_most: 100,
            kept_most: 1_000,
            rows_most: 10_000_000,
            config_most: 1 << 20,
            cells_most: 4_000_000,
            memory_most: 256 << 20,
            disk_most: 64 << 30,
        }
    }
}
