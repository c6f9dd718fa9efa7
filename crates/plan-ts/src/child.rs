//! stub
use crate::job::{Files, Job, Made};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
/// stub
#[derive(Clone, Debug)]
pub struct Worker {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub wall: Duration,
}
impl Worker {
    pub(crate) fn make(&self, _: &Job, _: &mut dyn Files) -> Result<Made, String> {
        Err(String::new())
    }
}
