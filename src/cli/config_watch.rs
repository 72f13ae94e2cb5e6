//! Detects changes of the configuration file by its contents, whether it is written, renamed, or reached through links that
//! change, as in a mounted `ConfigMap`.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval between readings.
pub(super) const READ_EVERY: Duration = Duration::from_secs(1);

/// A configuration file and its last contents.
pub(super) struct ConfigWatch {
    file: PathBuf,
    contents: Option<Vec<u8>>,
}

impl ConfigWatch {
    /// Watches a file from now on. To miss no change, it is created before the settings are read.
    pub(super) fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            contents: std::fs::read(file).ok(),
        }
    }

    /// Reads the file again. Returns whether its contents have changed; a missing file has not changed.
    pub(super) async fn has_changed(&mut self) -> bool {
        let contents = tokio::fs::read(&self.file).await.ok();
        let has_changed = contents.is_some() && contents != self.contents;
        if has_changed {
            self.contents = contents;
        }
        has_changed
    }
}
