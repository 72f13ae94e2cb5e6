//! Messages of the status page, posted by operators.

use std::sync::Arc;

use crate::instruments::{StoreInstruments, StoreWork};
use scoregate_base::{
    clock::Clock,
    keys::{BadText, check_text, checked_message},
};
use scoregate_store::{
    IncidentState, MessageSubject, NewStatusMessage, StatusMessage, Store, StoreError,
};

/// Maximum number of messages listed, not counting the messages of open incidents.
const LIST: usize = 1_000;

/// Posts and lists messages.
pub struct StatusMessages {
    store: Store,
    clock: Clock,
    instruments: Arc<StoreInstruments>,
}

/// The reason why a message was not posted.
#[derive(Debug, thiserror::Error)]
pub enum StatusMessageError {
    /// The title or the text is invalid.
    #[error(transparent)]
    BadText(#[from] BadText),
    /// The store refused the message or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl StatusMessages {
    /// Access to the messages in `store`.
    pub fn new(store: Store, clock: Clock, instruments: Arc<StoreInstruments>) -> Self {
        Self {
            store,
            clock,
            instruments,
        }
    }

    /// Posts a message about an incident. If no state is given, the state of the incident does not change.
    pub async fn post(
        &self,
        who: &str,
        subject: MessageSubject,
        state: Option<IncidentState>,
        message: &str,
    ) -> Result<StatusMessage, StatusMessageError> {
        let message = checked_message(message)?;
        if let MessageSubject::New(title) = &subject {
            check_text("title", Some(title))?;
        }
        let at = self.clock.now().wall;
        let new = NewStatusMessage {
            at,
            who: who.to_owned(),
            subject,
            state,
            message,
        };
        let posting = self.store.post_status(new);
        Ok(self
            .instruments
            .measured(&self.clock, StoreWork::Change, posting)
            .await?)
    }

    /// The newest messages and all messages of open incidents, newest first.
    pub async fn list(&self, limit: usize) -> Result<Vec<StatusMessage>, StoreError> {
        self.store.status_messages(limit.clamp(1, LIST)).await
    }
}
