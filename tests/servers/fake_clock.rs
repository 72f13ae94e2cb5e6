//! A wall clock that a test sets while programs run: libfaketime, and a file with the difference from the machine's
//! clock.

use std::{fs, os::unix::fs::PermissionsExt as _};

use tempfile::TempDir;

/// A clock that several programs can share.
pub struct FakeClock {
    directory: TempDir,
}

impl FakeClock {
    /// A clock that is off by this many seconds.
    pub fn new(seconds: i64) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))
            .expect("permissions");
        let clock = Self { directory };
        clock.set(seconds);
        clock
    }

    /// The environment of a program with this clock. The program reads the file once a second.
    pub fn environment(&self) -> Vec<(String, String)> {
        let file = self.directory.path().join("offset").display().to_string();
        [
            ("LD_PRELOAD", library().as_str()),
            ("FAKETIME_TIMESTAMP_FILE", file.as_str()),
            ("FAKETIME_CACHE_DURATION", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// Sets the difference from the machine's clock, in seconds.
    pub fn set(&self, seconds: i64) {
        let [new, file] = ["new", "offset"].map(|name| self.directory.path().join(name));
        fs::write(&new, format!("{seconds:+}\n")).expect("the file is written");
        fs::set_permissions(&new, fs::Permissions::from_mode(0o644)).expect("permissions");
        // The file is replaced in one step, so a program reads either the old or the new content.
        fs::rename(new, file).expect("the file is renamed");
    }
}

/// Removes the files that a killed process with such a clock leaves behind.
pub fn remove_shared_memory(process: u32) {
    for name in ["sem.faketime_sem_", "faketime_shm_"] {
        drop(fs::remove_file(format!("/dev/shm/{name}{process}")));
    }
}

/// The library that is preloaded.
pub fn library() -> String {
    let found = fs::read_dir("/usr/lib")
        .expect("libraries")
        .find_map(|entry| {
            let library = entry.ok()?.path().join("faketime/libfaketime.so.1");
            library.exists().then_some(library)
        });
    let found =
        found.expect("libfaketime is not installed; on Debian: apt-get install libfaketime");
    found.display().to_string()
}
