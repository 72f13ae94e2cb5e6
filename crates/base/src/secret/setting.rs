//! Secrets in the settings. A secret in a file is read again while the program runs, so that it can be rotated without
//! a restart. A rejected file never replaces the value in use.

use std::{path::Path, sync::Arc};

use parking_lot::Mutex;

use crate::watched_file::WatchedFile;

use super::{BadSecretFile, Secret, read_secret_file};

/// A secret that is fixed or in a file. All clones share one value.
#[derive(Clone, Debug)]
pub struct SecretSetting {
    held: Arc<Mutex<Secret>>,
    file: Option<Arc<WatchedFile>>,
}

impl SecretSetting {
    /// A secret that does not change.
    pub fn fixed(secret: Secret) -> Self {
        Self {
            held: Arc::new(Mutex::new(secret)),
            file: None,
        }
    }

    /// A secret that was read from this file. When the file is read again, the secret must have at least `min_length`
    /// characters.
    pub fn in_file(setting: &str, file: &Path, min_length: usize, secret: Secret) -> Self {
        let fixed = Self::fixed(secret);
        let held = Arc::clone(&fixed.held);
        let path = file.to_owned();
        let watched = WatchedFile::new(setting, move || {
            let secret = read(&path, min_length);
            let secret = secret.map_err(|error| format!("{}: {error}", path.display()))?;
            // The lock is taken after the file has been read, because a user of the secret must not wait for the disk.
            let before = std::mem::replace(&mut *held.lock(), secret.clone());
            Ok(before.expose() != secret.expose())
        });
        Self {
            file: Some(Arc::new(watched)),
            ..fixed
        }
    }

    /// The secret in use.
    pub fn current(&self) -> Secret {
        self.held.lock().clone()
    }

    /// The secret for a new connection. The file is read first.
    pub async fn latest(&self) -> Secret {
        if let Some(file) = &self.file {
            file.refresh_elsewhere().await;
        }
        self.current()
    }

    /// The file of the secret, if any.
    pub fn file(&self) -> Option<&Arc<WatchedFile>> {
        self.file.as_ref()
    }
}

fn read(file: &Path, min_length: usize) -> Result<Secret, BadSecretFile> {
    let secret = read_secret_file(file)?;
    if secret.expose().len() >= min_length {
        Ok(secret)
    } else {
        Err(BadSecretFile::TooShort(min_length))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const FIRST: &str = "the first secret of sixteen";
    const SECOND: &str = "the second secret";

    #[test]
    fn a_rejected_file_keeps_the_secret_and_a_good_one_replaces_it() {
        let directory = tempfile::tempdir().unwrap();
        let open =
            |mode| fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
        open(0o755);
        let file = directory.path().join("secret");
        let write = |text: &str, mode: u32| {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        };
        let setting = SecretSetting::in_file("admin.token", &file, 16, Secret::new(FIRST.into()));
        let state = |setting: &SecretSetting| {
            let is_usable = setting.file().unwrap().refresh();
            (setting.current().expose().to_owned(), !is_usable)
        };
        assert_eq!(state(&setting), (FIRST.into(), true), "there is no file");
        let large = "x".repeat(20_000);
        for (text, mode) in [
            ("", 0o600),
            ("\n", 0o600),
            ("too short", 0o600),
            ("sixteen characters\nin two lines", 0o600),
            (&large, 0o600),
            (SECOND, 0o640),
            (SECOND, 0o604),
            (SECOND, 0o602),
        ] {
            write(text, mode);
            assert_eq!(state(&setting), (FIRST.into(), true), "{text} {mode:o}");
        }
        write(&format!("{SECOND}\n"), 0o600);
        assert_eq!(state(&setting.clone()), (SECOND.into(), false));
        assert_eq!(
            setting.current().expose(),
            SECOND,
            "all clones share the value"
        );
        open(0o700);
        write(FIRST, 0o644);
        assert_eq!(
            state(&setting),
            (FIRST.into(), false),
            "nobody else can enter the directory"
        );
        write(SECOND, 0o600);
        assert_eq!(state(&setting), (SECOND.into(), false));
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(state(&setting), (SECOND.into(), true), "a directory");
    }

    #[test]
    fn a_file_that_others_can_replace_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let outer = directory.path().join("outer");
        let inner = outer.join("inner");
        fs::create_dir_all(&inner).unwrap();
        let file = inner.join("secret");
        fs::write(&file, FIRST).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let read = |path: &Path, modes: [u32; 3]| {
            for (directory, mode) in [directory.path(), &outer, &inner].into_iter().zip(modes) {
                fs::set_permissions(directory, Permissions::from_mode(mode)).unwrap();
            }
            read_secret_file(path)
                .map(|secret| secret.expose().to_owned())
                .map_err(|error| error.to_string())
        };
        for (path, modes, writable) in [
            (&file, [0o755, 0o755, 0o755], None),
            (&file, [0o755, 0o755, 0o777], Some("outer/inner")),
            (&file, [0o755, 0o755, 0o775], Some("outer/inner")),
            (&file, [0o755, 0o755, 0o1777], None),
            (&file, [0o755, 0o777, 0o755], Some("outer")),
            (&file, [0o755, 0o1777, 0o755], None),
            (&link, [0o755, 0o755, 0o755], None),
            (&link, [0o755, 0o755, 0o777], Some("outer/inner")),
            (&link, [0o777, 0o755, 0o755], Some("")),
            (&link, [0o1777, 0o755, 0o755], None),
        ] {
            let found = read(path, modes);
            match writable {
                None => assert_eq!(found.as_deref(), Ok(FIRST), "{} {modes:?}", path.display()),
                Some(directory_name) => {
                    let error = found.expect_err(&format!("{} {modes:?}", path.display()));
                    let shown = directory.path().join(directory_name);
                    assert!(
                        error.contains(shown.to_str().unwrap().trim_end_matches('/')),
                        "{error}"
                    );
                }
            }
        }
        // Only root can change the owner of a file.
        if std::os::unix::fs::chown(&file, Some(65_534), None).is_ok() {
            fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
            assert_eq!(
                read(&file, [0o755; 3]).as_deref(),
                Ok(FIRST),
                "as in a container"
            );
            assert!(
                read(&file, [0o755, 0o755, 0o1777]).is_err(),
                "anyone could have created the file"
            );
            assert!(read(&file, [0o1777, 0o755, 0o755]).is_ok());
        }
    }

    #[test]
    fn a_secret_in_a_volume_of_a_pod_is_accepted() {
        let volume = tempfile::tempdir().unwrap();
        let version = volume.path().join("..2026_11_26");
        fs::create_dir(&version).unwrap();
        fs::write(version.join("token"), FIRST).unwrap();
        for (path, mode) in [
            (version.join("token"), 0o600),
            (version.clone(), 0o755),
            (volume.path().into(), 0o1777),
        ] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::symlink("..2026_11_26", volume.path().join("..data")).unwrap();
        std::os::unix::fs::symlink("..data/token", volume.path().join("token")).unwrap();
        assert_eq!(
            read_secret_file(&volume.path().join("token"))
                .unwrap()
                .expose(),
            FIRST
        );
    }

    #[test]
    fn a_pipe_is_rejected_without_waiting_for_its_writer() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo")
            .args(["-m", "600"])
            .arg(&pipe)
            .status()
            .unwrap();
        assert!(made.success());
        assert!(matches!(
            read_secret_file(&pipe),
            Err(BadSecretFile::NotAFile)
        ));
    }

    #[tokio::test]
    async fn a_fixed_secret_stays_and_one_in_a_file_is_read_for_each_connection() {
        assert_eq!(
            SecretSetting::fixed(Secret::new(FIRST.into()))
                .latest()
                .await
                .expose(),
            FIRST
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        let setting =
            SecretSetting::in_file("store.password", file.path(), 1, Secret::new(FIRST.into()));
        assert_eq!(setting.latest().await.expose(), FIRST);
        fs::write(file.path(), SECOND).unwrap();
        assert_eq!(
            (setting.current().expose(), setting.latest().await.expose()),
            (FIRST, SECOND)
        );
    }
}
