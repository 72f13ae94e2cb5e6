//! Assigns operator-created applications to owners, who are identified by email address. An address without an account
//! gets an invitation.

use std::time::Duration;

use scoregate_base::{
    clock::Wall,
    keys::{ApplicationId, Digest, OwnerId},
    secret::Secret,
};
use scoregate_store::{
    Attachment, ChangeKind, MailKind, NewMail, OwnerQuery, StoredApplication, StoredOwner,
};

use crate::registry::{
    letter::{letter, random_id},
    new_application::OwnerAddress,
    notice_texts::NoticeTexts,
    registrar::Registrar,
    registrar_error::{RegistrarError, RegistrarResult},
};

/// The validity of the link in an invitation.
const INVITATION_VALID: Duration = Duration::from_hours(7 * 24);

impl Registrar {
    /// Assigns an application to the owner of an address.
    pub async fn attach(
        &self,
        who: &str,
        id: ApplicationId,
        address: OwnerAddress,
    ) -> RegistrarResult<StoredApplication> {
        let what = ChangeKind::Attach(self.attachment(id, address)?);
        self.changes.change(who, id, what).await
    }

    /// Takes an application from its owner.
    pub async fn detach(&self, who: &str, id: ApplicationId) -> RegistrarResult<StoredApplication> {
        let mail = self.texts()?.detached(id, self.changes.now().wall)?;
        self.changes
            .change(who, id, ChangeKind::Detach(Box::new(mail)))
            .await
    }

    /// The owner of an application.
    pub async fn owner_of(&self, id: ApplicationId) -> RegistrarResult<Option<StoredOwner>> {
        let query = OwnerQuery {
            application: Some(id),
            limit: 1,
            ..OwnerQuery::default()
        };
        Ok(self.changes.store.owners(query).await?.pop())
    }

    /// The attachment of an application to an address, with all emails that may result.
    pub(crate) fn attachment(
        &self,
        id: ApplicationId,
        address: OwnerAddress,
    ) -> RegistrarResult<Box<Attachment>> {
        let texts = self.texts()?;
        let at = self.changes.now().wall;
        let token = Secret::mint()?;
        let OwnerAddress {
            email,
            mailbox,
            moves,
        } = address;
        Ok(Box::new(Attachment {
            new_owner: OwnerId::mint()?,
            email,
            mailbox,
            link: Digest::of(token.expose()),
            valid_for: INVITATION_VALID,
            invitation: texts.invitation(id, &token, at)?,
            attached: texts.attached(id, at)?,
            moves,
            detached: texts.detached(id, at)?,
        }))
    }

    /// The texts of mail to owners. Fails if there are no account pages, because invitations could not be accepted and
    /// mail could not be stopped.
    fn texts(&self) -> RegistrarResult<&NoticeTexts> {
        let texts = self.changes.notices.as_ref();
        texts.ok_or(RegistrarError::NoInvitations)
    }
}

impl NoticeTexts {
    fn invitation(&self, id: ApplicationId, token: &Secret, at: Wall) -> RegistrarResult<NewMail> {
        let Self { service, root, .. } = self;
        let link = format!("{root}/account/confirm?token={}", token.expose());
        let text = format!(
            "The operator of {service} named you as the owner of the application {id}. Open this link to accept. You \
             then have an account where you can see the application's usage and manage its \
             keys:\n\n{link}\n\nThe link works once and expires in 7 days. Until you accept, mail about the \
             application goes to this address. You can also stop this mail on the page that the link opens."
        );
        self.to_owner(format!("{service}: your application {id}"), text, at)
    }

    fn attached(&self, id: ApplicationId, at: Wall) -> RegistrarResult<NewMail> {
        let Self { service, root, .. } = self;
        let text = format!(
            "The operator of {service} made you the owner of the application {id}:\n\n{root}/account/applications/{id}"
        );
        self.to_owner(format!("{service}: you own the application {id}"), text, at)
    }

    fn detached(&self, id: ApplicationId, at: Wall) -> RegistrarResult<NewMail> {
        let service = &self.service;
        let subject = format!("{service}: you no longer own the application {id}");
        let text = format!(
            "The operator of {service} removed the application {id} from your account. Its keys still work, but you can no \
             longer manage them, and you get no more mail about it."
        );
        self.to_owner(subject, text, at)
    }

    fn to_owner(&self, subject: String, text: String, at: Wall) -> RegistrarResult<NewMail> {
        let message_id = format!("{}.0@{}", random_id()?, self.domain);
        let kind = MailKind::Notice;
        Ok(letter(kind, message_id, subject, text, &self.root, at))
    }
}
