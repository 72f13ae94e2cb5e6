//! Mail of an operator to the owners of applications. It is queued here and sent by a gateway.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use scoregate_base::keys::{ApplicationId, OwnerId, check_text, checked_message};
use scoregate_store::{MailKind, NewMail, NewNotice, OwnerQuery, StoredOwner};

use crate::registry::key_changes::KeyChanges;
use crate::registry::letter::{letter, random_id};
use crate::registry::owner_administration::OwnerAdministration;
use crate::registry::registrar::Registrar;
use crate::registry::registrar_error::RegistrarResult;

/// Maximum number of owners read, and of mails stored, in one step, so that leases do not wait long.
const BATCH: usize = 500;

/// The settings of mail to owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeSettings {
    /// The domain of message ids.
    pub domain: String,
    /// Whether queued mail is sent.
    pub is_sent: bool,
}

/// A selection of owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContactSelection {
    /// The owners of these applications.
    Applications(Vec<ApplicationId>),
    /// The owners of applications in this tier.
    Tier(String),
    /// These owners.
    Accounts(Vec<OwnerId>),
    /// All owners.
    All,
}

/// An email to a selection of owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactRequest {
    /// The recipients.
    pub selection: ContactSelection,
    /// The subject.
    pub subject: String,
    /// The plain text.
    pub message: String,
    /// Only count the recipients.
    pub is_dry_run: bool,
}

/// The result of an email to owners, in the JSON form that docs/keys.md describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContactOutcome {
    /// Number of selected accounts.
    pub accounts: usize,
    /// Number of queued mails.
    pub queued: usize,
    /// Selected applications that no account owns.
    pub unowned: Vec<String>,
    /// Whether queued mail is sent.
    pub mail_is_sent: bool,
}

/// Queues mail to owners.
pub struct OwnerMail {
    registrar: Arc<Registrar>,
    owners: Arc<OwnerAdministration>,
    changes: Arc<KeyChanges>,
    settings: NoticeSettings,
}

impl OwnerMail {
    /// Queues mail in the store of `changes`. Recipients are found by `owners`, and by `registrar` for selections of applications.
    pub fn new(
        registrar: Arc<Registrar>,
        owners: Arc<OwnerAdministration>,
        changes: Arc<KeyChanges>,
        settings: NoticeSettings,
    ) -> Self {
        Self {
            registrar,
            owners,
            changes,
            settings,
        }
    }

    /// Queues one mail for each selected owner. If the store fails, some mails may have been queued.
    pub async fn send(
        &self,
        who: &str,
        request: ContactRequest,
    ) -> RegistrarResult<ContactOutcome> {
        let ContactRequest {
            selection,
            subject,
            message,
            is_dry_run,
        } = request;
        check_text("subject", Some(&subject))?;
        let message = checked_message(&message)?;
        let (recipients, unowned) = self.recipients(selection).await?;
        let accounts = recipients.len();
        let mail_is_sent = self.settings.is_sent;
        let mut outcome = ContactOutcome {
            accounts,
            queued: 0,
            unowned,
            mail_is_sent,
        };
        if is_dry_run {
            return Ok(outcome);
        }
        let id = random_id()?;
        let domain = &self.settings.domain;
        let at = self.changes.now().wall;
        let letter = letter(MailKind::Notice, String::new(), subject, message, at);
        let mail = |(number, to): (usize, &String)| {
            let message_id = format!("{id}.{number}@{domain}");
            NewMail {
                recipient: to.clone(),
                message_id,
                ..letter.clone()
            }
        };
        for some in recipients.chunks(BATCH) {
            let mails = (outcome.queued..).zip(some).map(mail).collect();
            // The audit record has the number of all recipients, so it is written once, with the first batch.
            let store = &self.changes.store;
            if outcome.queued == 0 {
                let notice = NewNotice {
                    at,
                    who: who.to_owned(),
                    recipients: accounts,
                    mails,
                };
                self.changes.measured(store.queue_notice(notice)).await?;
            } else {
                self.changes.measured(store.queue_mail(mails)).await?;
            }
            outcome.queued += some.len();
        }
        Ok(outcome)
    }

    /// The addresses of the selected owners, and the selected applications without an owner.
    async fn recipients(
        &self,
        selection: ContactSelection,
    ) -> RegistrarResult<(Vec<String>, Vec<String>)> {
        let mut addresses = Vec::new();
        let mut unowned = Vec::new();
        match selection {
            ContactSelection::Accounts(ids) => {
                // Each owner gets one mail, however often the selection names it.
                for id in BTreeSet::from_iter(ids) {
                    addresses.push(self.owners.show(id).await?.email);
                }
            }
            ContactSelection::Applications(ids) => {
                let mut owners = BTreeSet::new();
                for id in BTreeSet::from_iter(ids) {
                    self.registrar.show(id).await?;
                    let query = OwnerQuery {
                        application: Some(id),
                        limit: 1,
                        ..OwnerQuery::default()
                    };
                    match self.owners.list(query).await?.0.pop() {
                        Some(owner) if owners.insert(owner.id) => addresses.push(owner.email),
                        Some(_) => {}
                        None => unowned.push(id.to_string()),
                    }
                }
            }
            ContactSelection::Tier(tier) => {
                self.changes.check_tier(&tier)?;
                self.each_page(&mut addresses, Some(&tier)).await?;
            }
            ContactSelection::All => self.each_page(&mut addresses, None).await?,
        }
        Ok((addresses, unowned))
    }

    /// Adds the addresses of all owners, or of owners with an application in a tier.
    async fn each_page(
        &self,
        addresses: &mut Vec<String>,
        tier: Option<&str>,
    ) -> RegistrarResult<()> {
        let mut query = OwnerQuery {
            limit: BATCH,
            ..OwnerQuery::default()
        };
        loop {
            let (owners, next) = self.owners.list(query.clone()).await?;
            let in_tier = match tier {
                Some(tier) => Some(self.applications_in(&owners, tier).await?),
                None => None,
            };
            let is_selected = |owner: &StoredOwner| {
                in_tier
                    .as_ref()
                    .is_none_or(|ids| owner.applications.iter().any(|id| ids.contains(id)))
            };
            addresses.extend(
                owners
                    .into_iter()
                    .filter(is_selected)
                    .map(|owner| owner.email),
            );
            match next {
                Some(next) => query.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// The applications of these owners that are in a tier.
    async fn applications_in(
        &self,
        owners: &[StoredOwner],
        tier: &str,
    ) -> RegistrarResult<BTreeSet<ApplicationId>> {
        let ids = owners
            .iter()
            .flat_map(|owner| owner.applications.iter().copied())
            .collect();
        let found = self
            .registrar
            .find(ids, self.changes.now().wall.day())
            .await?;
        Ok(found
            .iter()
            .filter(|found| found.tier == tier)
            .map(|found| found.id)
            .collect())
    }
}
