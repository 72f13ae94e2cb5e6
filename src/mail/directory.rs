//! Writes each mail to a file, for a demo without a mail server.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::failure::MailFailure;
use super::message::OutgoingMail;

/// A directory of mail.
#[derive(Clone, Debug)]
pub(super) struct MailDirectory(PathBuf);

impl MailDirectory {
    /// Creates the directory if it is missing.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Ok(Self(path.to_owned()))
    }

    /// Writes a mail. It appears under its name only once complete; the same mail replaces its file.
    pub(super) async fn write(&self, mail: OutgoingMail) -> Result<(), MailFailure> {
        let directory = self.0.clone();
        let written = tokio::task::spawn_blocking(move || write(&directory, &mail)).await;
        let failed = |error: io::Error| MailFailure::File(error.kind());
        written.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map_err(failed)
    }
}

fn write(directory: &Path, mail: &OutgoingMail) -> io::Result<()> {
    let name = file_name(mail);
    let (path, draft) = (directory.join(&name), directory.join(format!(".{name}.tmp")));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(&mail.content)?;
    fs::rename(draft, path)
}

/// Its time and message id, so that a list is in the order of the queue.
fn file_name(mail: &OutgoingMail) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_' | '@');
    let id: String = mail.message_id.chars().map(|char| if is_plain(char) { char } else { '_' }).collect();
    format!("{}-{id}.eml", mail.queued_at.rfc3339().replace(':', ""))
}
