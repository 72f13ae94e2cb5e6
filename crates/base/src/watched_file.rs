//! Files that are read again while the program runs: certificates, secrets, lists of keys. Unusable contents never
//! replace the contents in use. `app` decides which files are read and how often.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

/// Reads the files and uses their contents. Returns whether the contents are new, or the reason why they cannot be
/// used.
type Renew = Box<dyn Fn() -> Result<bool, String> + Send + Sync>;

/// One or more files that belong together.
pub struct WatchedFile {
    /// The setting that names the files.
    setting: String,
    renew: Renew,
    /// The reason why the files are rejected. The lock is held while the files are read, so that older contents never
    /// replace newer ones.
    rejected: Mutex<Option<String>>,
}

impl WatchedFile {
    /// Files whose contents are already in use.
    pub fn new(
        setting: &str,
        renew: impl Fn() -> Result<bool, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            setting: setting.to_owned(),
            renew: Box::new(renew),
            rejected: Mutex::default(),
        }
    }

    /// Reads the files. Returns whether they are usable. Blocks. Each reason for a rejection is logged once.
    pub fn refresh(&self) -> bool {
        let setting = &self.setting;
        let mut rejected = self.rejected.lock();
        match (self.renew)() {
            Ok(is_new) => {
                if is_new {
                    tracing::info!(setting, "file reloaded");
                }
                *rejected = None;
                true
            }
            Err(reason) => {
                if rejected.as_ref() != Some(&reason) {
                    tracing::error!(
                        setting,
                        reason,
                        "file rejected; the previous contents stay in use"
                    );
                }
                *rejected = Some(reason);
                false
            }
        }
    }

    /// Reads the files on another thread, because they may be on a slow disk.
    pub async fn refresh_elsewhere(self: &Arc<Self>) {
        let file = Arc::clone(self);
        if tokio::task::spawn_blocking(move || file.refresh())
            .await
            .is_err()
        {
            tracing::error!(setting = self.setting, "reading a file panicked");
        }
    }
}

impl fmt::Debug for WatchedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WatchedFile").field(&self.setting).finish()
    }
}
