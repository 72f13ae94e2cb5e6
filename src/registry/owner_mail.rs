//! Mail from an operator to the owners of applications. It is queued here and sent by a gateway.

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};

use scoregate_base::keys::{ApplicationId, OwnerId, check_text, checked_message};
use scoregate_store::{MailKind, NewMail, NewNotice, OwnerQuery, StoredOwner};

use crate::registry::{
    key_changes::KeyChanges,
    letter::{letter, random_id},
    owner_administration::OwnerAdministration,
    registrar::Registrar,
    registrar_error::RegistrarResult,
};

/// Maximum number of owners read, and of emails stored, in one step, so that leases do not wait long.
const BATCH: usize = 500;
/// Maximum length of the list of applications and accounts that get no mail.
const MOST_UNREACHED: usize = 1_000;

/// The settings of mail to owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeSettings {
    /// The domain of message ids.
    pub domain: String,
    /// Whether queued mail is sent.
    pub is_sent: bool,
    /// The public address of the account pages, without a trailing slash; empty if there are no pages.
    pub root: String,
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
    /// Number of queued emails.
    pub queued: usize,
    /// The selected owners who get no mail, at most 1,000.
    pub unreached: Vec<UnreachedOwner>,
    /// Whether queued mail is sent.
    pub mail_is_sent: bool,
}

/// A selected owner who gets no mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreachedOwner {
    /// The application or the account.
    pub id: String,
    /// The reason.
    pub reason: String,
}

/// The recipients of a selection.
#[derive(Default)]
struct Recipients {
    /// The addresses.
    addresses: Vec<String>,
    unreached: Vec<UnreachedOwner>,
}

/// Queues mail to owners.
pub struct OwnerMail {
    registrar: Arc<Registrar>,
    owners: Arc<OwnerAdministration>,
    changes: Arc<KeyChanges>,
    settings: NoticeSettings,
}

impl OwnerMail {
    /// Queues mail in the store of `changes`. `registrar` finds the owners of selected applications, and `owners` finds
    /// all other recipients.
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

    /// Queues one email for each selected owner. If the store fails, some emails may have been queued.
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
        let Recipients {
            addresses: recipients,
            unreached,
        } = self.recipients(selection).await?;
        let accounts = recipients.len();
        let mail_is_sent = self.settings.is_sent;
        let mut outcome = ContactOutcome {
            accounts,
            queued: 0,
            unreached,
            mail_is_sent,
        };
        if is_dry_run {
            return Ok(outcome);
        }
        let id = random_id()?;
        let NoticeSettings { domain, root, .. } = &self.settings;
        let at = self.changes.now().wall;
        let letter = letter(MailKind::Notice, String::new(), subject, message, root, at);
        for some in recipients.chunks(BATCH) {
            let mails = (outcome.queued..)
                .zip(some)
                .map(|(number, to)| {
                    let message_id = format!("{id}.{number}@{domain}");
                    NewMail {
                        recipient: to.clone(),
                        message_id,
                        ..letter.clone()
                    }
                })
                .collect();
            // The audit record contains the total number of recipients, so it is written only once, with the first batch.
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

    async fn recipients(&self, selection: ContactSelection) -> RegistrarResult<Recipients> {
        let mut found = Recipients::default();
        match selection {
            ContactSelection::Accounts(ids) => {
                // Each owner gets one email, however often the selection names the owner.
                for id in BTreeSet::from_iter(ids) {
                    found.add(self.owners.show(id).await?);
                }
            }
            ContactSelection::Applications(ids) => {
                let mut owners = BTreeSet::new();
                for id in BTreeSet::from_iter(ids) {
                    self.registrar.show(id).await?;
                    match self.registrar.owner_of(id).await? {
                        Some(owner) if owners.insert(owner.id) => found.add(owner),
                        Some(_) => {}
                        None => found.add_unowned(id),
                    }
                }
            }
            ContactSelection::Tier(tier) => {
                self.changes.check_tier(&tier)?;
                self.each_page(&mut found, Some(&tier)).await?;
            }
            ContactSelection::All => self.each_page(&mut found, None).await?,
        }
        Ok(found)
    }

    /// Adds all owners, or the owners of applications in `tier`, and the matching applications that have no owner.
    async fn each_page(&self, found: &mut Recipients, tier: Option<&str>) -> RegistrarResult<()> {
        let mut query = OwnerQuery {
            limit: BATCH,
            ..OwnerQuery::default()
        };
        let mut owned = BTreeSet::new();
        loop {
            let (owners, next) = self.owners.list(query.clone()).await?;
            let in_tier = match tier {
                Some(tier) => Some(self.applications_in(&owners, tier).await?),
                None => None,
            };
            for owner in owners {
                owned.extend(owner.applications.iter().copied());
                let in_tier = in_tier.as_ref();
                if in_tier.is_none_or(|ids| owner.applications.iter().any(|id| ids.contains(id))) {
                    found.add(owner);
                }
            }
            match next {
                Some(next) => query.after = Some(next),
                None => return self.add_unowned(found, tier, &owned).await,
            }
        }
    }

    /// Adds applications that have a valid key but no owner. If `tier` is given, they must be in this tier.
    async fn add_unowned(
        &self,
        found: &mut Recipients,
        tier: Option<&str>,
        owned: &BTreeSet<ApplicationId>,
    ) -> RegistrarResult<()> {
        let now = self.changes.now().wall;
        let mut after = None;
        loop {
            let page = self.registrar.list(after, BATCH).await?;
            let unowned = page.applications.iter().filter(|application| {
                tier.is_none_or(|tier| application.tier == tier)
                    && !owned.contains(&application.id)
                    && application.keys.iter().any(|key| key.is_active(now))
            });
            for application in unowned {
                found.add_unowned(application.id);
            }
            after = page.next;
            if after.is_none() || found.unreached.len() >= MOST_UNREACHED {
                found.unreached.truncate(MOST_UNREACHED);
                return Ok(());
            }
        }
    }

    /// The applications in a tier that belong to these owners.
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

impl Recipients {
    fn add(&mut self, owner: StoredOwner) {
        if owner.refuses_mail() {
            self.unreached.push(UnreachedOwner {
                id: owner.id.to_string(),
                reason: "the invited address has unsubscribed".into(),
            });
        } else {
            self.addresses.push(owner.email);
        }
    }

    fn add_unowned(&mut self, id: ApplicationId) {
        self.unreached.push(UnreachedOwner {
            id: id.to_string(),
            reason: "no account owns it".into(),
        });
    }
}
