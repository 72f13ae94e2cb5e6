//! Writes each email to a file, for testing without a mail server.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::{
    failure::{FailureScope, MailFailure},
    message::OutgoingMail,
};

#[derive(Clone, Debug)]
pub struct MailDirectory {
    path: PathBuf,
    print: fn(&str),
}

impl MailDirectory {
    /// Creates the directory if it is missing.
    pub fn open(path: &Path, print: fn(&str)) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Ok(Self {
            path: path.to_owned(),
            print,
        })
    }

    /// Writes an email and prints its text. The file is renamed to its final name only when it is complete. Writing the
    /// same email again replaces the file.
    pub async fn write(&self, mail: OutgoingMail) -> Result<(), MailFailure> {
        let directory = self.path.clone();
        let text = format!("mail to {}:\n\n{}", mail.recipient, mail.text.trim_end());
        let written = tokio::task::spawn_blocking(move || write(&directory, &mail)).await;
        written
            .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
            .map_err(|error| {
                let reason = format!("the file cannot be written: {}", error.kind());
                MailFailure::new(FailureScope::AllMail, reason)
            })?;
        (self.print)(&text);
        Ok(())
    }
}

fn write(directory: &Path, mail: &OutgoingMail) -> io::Result<()> {
    let name = file_name(mail);
    let path = directory.join(&name);
    let draft = directory.join(format!(".{name}.tmp"));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(&mail.content)?;
    fs::rename(draft, path)
}

/// The name contains time and message id, so that a sorted directory listing is in the order of the queue.
fn file_name(mail: &OutgoingMail) -> String {
    let is_plain =
        |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_' | '@');
    let id: String = mail
        .message_id
        .chars()
        .map(|char| if is_plain(char) { char } else { '_' })
        .collect();
    format!("{}-{id}.eml", mail.queued_at.rfc3339().replace(':', ""))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use scoregate_base::clock::Wall;

    use super::*;

    fn mail(message_id: &str) -> OutgoingMail {
        OutgoingMail {
            message_id: message_id.into(),
            queued_at: Wall::from_seconds(1_795_608_000),
            sender: "noreply@example.org".parse().unwrap(),
            recipient: "ann@example.org".parse().unwrap(),
            text: "text".into(),
            content: b"Subject: x\r\n\r\ntext".to_vec(),
        }
    }

    #[test]
    fn a_mail_becomes_one_file_that_only_its_owner_can_read() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("mail");
        let directory = MailDirectory::open(&path, |_| {}).unwrap();
        MailDirectory::open(&path, |_| {}).unwrap();
        for _ in 0..2 {
            write(&directory.path, &mail("5f3a@example.org")).unwrap();
        }
        let files: Vec<_> = fs::read_dir(&path)
            .unwrap()
            .map(|file| file.unwrap())
            .collect();
        let [file] = files.as_slice() else {
            panic!("{files:?}")
        };
        assert_eq!(file.file_name(), "2026-11-25T120000Z-5f3a@example.org.eml");
        assert_eq!(fs::read(file.path()).unwrap(), b"Subject: x\r\n\r\ntext");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn no_message_id_leads_out_of_the_directory() {
        for message_id in ["../../etc/passwd", "/etc/passwd", ".."] {
            let name = file_name(&mail(message_id));
            assert!(!name.contains('/') && name.starts_with("2026-"), "{name}");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_reported_by_the_kind_of_its_error() {
        let place = tempfile::tempdir().unwrap();
        let directory = MailDirectory::open(&place.path().join("mail"), |_| {}).unwrap();
        fs::remove_dir(&directory.path).unwrap();
        let failed = write(&directory.path, &mail("id@example.org")).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::NotFound);
    }
}
