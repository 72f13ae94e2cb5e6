//! The archive that a command works on, and the running server that uses it.

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;
use serde_json::Value;

use crate::{
    admin::{LiveCommand, SnapshotCommand},
    cli::{
        command_error::{CommandError, CommandOutcome},
        control::request_if_running,
        printer,
    },
};
use scoregate_base::clock::Clock;
use scoregate_scoring::Archive;

/// Maximum wait for a notified server to publish the new scores, so that an import ends even if the server hangs.
const REFRESH_TIMEOUT: Duration = Duration::from_mins(2);

/// The path of an archive, and the data directory of its server, if known.
pub struct ArchivePlace {
    pub path: PathBuf,
    pub data_dir: Option<PathBuf>,
}

impl ArchivePlace {
    /// Opens the archive, which must exist.
    pub fn open(&self) -> CommandOutcome<Archive> {
        if !self.path.exists() {
            return Err(CommandError::Input(format!(
                "there is no archive {}",
                self.path.display()
            )));
        }
        Ok(Archive::open(&self.path)?)
    }

    /// Opens the archive, which is created if it is missing.
    pub fn open_or_create(&self) -> CommandOutcome<Archive> {
        if let Some(directory) = self
            .path
            .parent()
            .filter(|directory| !directory.as_os_str().is_empty())
        {
            let created = std::fs::create_dir_all(directory);
            created.with_context(|| {
                format!("the directory {} cannot be created", directory.display())
            })?;
        }
        Ok(Archive::open(&self.path)?)
    }

    /// Notifies the server that uses the archive. Without a notification, the server finds new runs within a minute.
    pub async fn notify_server(&self) {
        let clock = Clock::system();
        for data_dir in self
            .data_dir
            .as_deref()
            .into_iter()
            .chain(self.path.parent())
        {
            let command = LiveCommand::Scoring(SnapshotCommand::Refresh {});
            let response = clock
                .within(REFRESH_TIMEOUT, request_if_running(data_dir, &command))
                .await;
            let reason = match response {
                Ok(None) => continue,
                Ok(Some(Ok(response))) => {
                    let is_new = response
                        .get("refreshed")
                        .and_then(Value::as_bool)
                        .unwrap_or_default();
                    let what = if is_new {
                        "publishes the new scores"
                    } else {
                        "has no new scores"
                    };
                    return printer::message(&format!("the running server {what}"));
                }
                Ok(Some(Err(error))) => error.to_string(),
                Err(_) => "timed out".into(),
            };
            return printer::message(&format!(
                "the running server could not be notified ({reason}); it publishes new runs within a minute"
            ));
        }
    }
}
