//! Detects changes to the configuration file by comparing its contents. The file may be rewritten, replaced, or reached through
//! links that change, as in a mounted `ConfigMap`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Interval between readings.
pub const READ_EVERY: Duration = Duration::from_secs(1);

/// A configuration file and its last contents.
pub struct ConfigWatch {
    file: PathBuf,
    contents: Option<Vec<u8>>,
}

impl ConfigWatch {
    /// Starts watching a file. Call this before the settings are read, so that no change is missed.
    pub fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            contents: std::fs::read(file).ok(),
        }
    }

    /// Reads the file again. Returns whether its contents have changed. A missing file counts as unchanged.
    pub async fn has_changed(&mut self) -> bool {
        let contents = tokio::fs::read(&self.file).await.ok();
        let has_changed = contents.is_some() && contents != self.contents;
        if has_changed {
            self.contents = contents;
        }
        has_changed
    }
}
