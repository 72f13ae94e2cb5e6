//! Messages of the status page. Unlike other changes they concern no application.

use crate::instruments::StoreWork;
use crate::store::{IncidentState, MessageSubject, NewStatusMessage, StatusMessage};

use super::validation::{check_message, check_text};
use super::{Registrar, RegistrarError};

/// Maximum number of messages listed, besides those of open incidents.
const LIST: usize = 1_000;

impl Registrar {
    /// Posts a message about an incident. Without a state the incident keeps its own.
    pub async fn post_status(
        &self,
        who: &str,
        subject: MessageSubject,
        state: Option<IncidentState>,
        message: &str,
    ) -> Result<StatusMessage, RegistrarError> {
        let message = message.replace("\r\n", "\n").trim().to_owned();
        check_message(&message)?;
        if let MessageSubject::New(title) = &subject {
            check_text("title", Some(title))?;
        }
        let at = self.clock.now().wall;
        let new = NewStatusMessage { at, who: who.to_owned(), subject, state, message };
        let posted = self.timed(StoreWork::Change, self.store.post_status(new)).await;
        Ok(posted.inspect_err(|error| {
            if error.is_failure() {
                self.instruments.store_failed(StoreWork::Change);
            }
        })?)
    }

    /// The newest messages and those of open incidents, newest first.
    pub async fn status_messages(&self, limit: usize) -> Result<Vec<StatusMessage>, RegistrarError> {
        Ok(self.store.status_messages(limit.clamp(1, LIST)).await?)
    }
}
