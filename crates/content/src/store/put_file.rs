//! Putting files of the file system.

use std::sync::atomic::Ordering;

use super::{Put, Store};
use crate::Error;
use crate::facts::Class;
use crate::files::{self, SourceFile};

/// A file up to this length is read as a whole: it is not worth several threads.
const SMALL: u64 = 1 << 20;

impl Store {
    /// Stores the bytes of a regular file, on several threads: faster than [`Store::put_stream`]. Where the file system
    /// can, the blob shares the file's bytes until one of the two changes. `copied` is called with the number of
    /// bytes that were copied since it was called last.
    ///
    /// A file that is not regular, or that has more or fewer bytes than its length says, ends the put with
    /// [`Error::Source`], and leaves nothing behind: a pipe, a file below `/proc`, or one that changes meanwhile.
    pub async fn put_file(
        &self,
        file: std::fs::File,
        class: Class,
        copied: impl Fn(u64),
    ) -> Result<Put, Error> {
        let core = &self.inner.core;
        let measure = move || -> std::io::Result<SourceFile> {
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                let why = "not a regular file: its length is not known; put its bytes as a stream";
                return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, why));
            }
            Ok(SourceFile { file, len: metadata.len() })
        };
        let source = self
            .blocking(move |_| measure().map_err(|cause| Error::Source(std::sync::Arc::new(cause))))
            .await?;
        let len = source.len;
        if len <= SMALL.max(core.config.packed_most as u64) {
            let bytes = self.blocking(move |_| read_whole(&source)).await?;
            let put = self.put(bytes, class).await?;
            copied(len);
            return Ok(put);
        }
        let result = async {
            let claim = core.claim(len).await?;
            let number = core.next_file.fetch_add(1, Ordering::Relaxed);
            let copying = files::copy_file(&self.inner.pool, &core.files, (number, source), copied);
            self.keep_file(copying.await?, class, (len, claim)).await
        };
        let result = result.await;
        self.count_put(result)
    }
}

fn read_whole(source: &SourceFile) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; source.len as usize];
    source.read(&mut bytes, 0)?;
    source.check_end()?;
    Ok(bytes)
}
