//! Sign-up, sign-in and sign-out, with one form, an email link, and a button that uses the link.
//!
//! The response to the form is the same for known and unknown addresses, and requires the same work.

use std::time::Duration;

use serde_json::json;

use crate::{
    instruments::{LinkRequest, SignInEnd},
    pages::account::{FormProblem, LinkForm, SignInForm},
};
use scoregate_base::{
    keys::{Digest, OwnerId},
    secret::Secret,
};
use scoregate_store::{
    LinkAllowance, NewMail, NewSignInLink, SignIn, SignInOutcome, StoredOwner, UsableLink,
};

use super::{
    cookies::{SESSION_HOURS, SiteCookie, is_token},
    form_origin::form_token,
    link_mail::{LINK_VALID, LinkMail},
    mailbox::{AddressProblem, EmailAddress, MailDomains, registered_domain},
    site_admission::LinkLimit,
    site_refusal::SiteRefusal,
    site_reply::{SiteReply, SiteResult},
    site_requests::Site,
    visit::{Visit, change_failed, no_randomness},
};

/// Maximum number of links that a mailbox gets in an hour.
const LINKS_PER_MAILBOX: u32 = 5;
/// The maximum if the owner of the mailbox is signed in. Anyone can use up the first five links, and an owner who
/// cannot sign in again cannot revoke a leaked key.
const LINKS_WITH_SESSION: u32 = 10;
const HOUR: Duration = Duration::from_hours(1);

/// The pages for sign-up, sign-in and sign-out.
impl Site {
    /// The page with the address form.
    pub(super) async fn sign_in_page(&self, visit: &Visit) -> SiteResult {
        if visit.session(&self.store).await?.is_some() {
            return Ok(SiteReply::redirect("/account"));
        }
        let notice = match visit.finished_step() {
            "signed-out" => Some("You are signed out."),
            "signed-out-everywhere" => Some("You are signed out in all browsers."),
            "stopped" => Some(
                "No more mail is sent to this address. The link still works if you change your mind.",
            ),
            "deleted" => Some("The account is deleted. Its keys no longer work."),
            _ => None,
        };
        sign_in_form(visit, "", None, notice)
    }

    /// Sends a link to an address.
    pub(super) async fn request_link(&self, visit: &Visit) -> SiteResult {
        visit.form_belongs_to(&[SiteCookie::Visitor, SiteCookie::Session])?;
        let entered = visit.form.field("email");
        let address = match EmailAddress::parse(entered, &visit.config.domains) {
            Ok(address) => address,
            Err(problem) => {
                if problem == AddressProblem::Domain {
                    self.instruments.links.count(LinkRequest::Domain);
                }
                return sign_in_form(visit, entered, Some(&problem.to_string()), None);
            }
        };
        self.count_link(visit)?;
        let links = if self.is_signed_in_as(visit, &address).await? {
            LINKS_WITH_SESSION
        } else {
            LINKS_PER_MAILBOX
        };
        self.queue_link(visit, &address, links).await?;
        Ok(SiteReply::page(
            visit.config.pages.link_sent(&address.entered),
        ))
    }

    /// Counts a link against the network limits.
    fn count_link(&self, visit: &Visit) -> SiteResult<()> {
        let counted =
            self.admission
                .count_link(visit.client, visit.config.links_per_minute, visit.now);
        counted.map_err(|limit| {
            let (result, refusal) = match limit {
                LinkLimit::Network => (LinkRequest::NetworkLimit, SiteRefusal::TooManyLinks),
                LinkLimit::Reserved => (LinkRequest::Reserved, SiteRefusal::TooManyLinksInTotal),
                LinkLimit::Total => (LinkRequest::TotalLimit, SiteRefusal::TooManyLinksInTotal),
            };
            self.instruments.links.count(result);
            refusal
        })
    }

    /// Whether the visitor is signed in as the owner of the mailbox.
    async fn is_signed_in_as(&self, visit: &Visit, address: &EmailAddress) -> SiteResult<bool> {
        let Some(live) = visit.session(&self.store).await? else {
            return Ok(false);
        };
        // The domain may have been denied since the sign-in.
        let own = EmailAddress::parse(&live.session.owner.email, &MailDomains::default());
        Ok(own.is_ok_and(|own| own.mailbox == address.mailbox))
    }

    /// Queues the email, unless the mailbox has already been sent this many links within an hour.
    async fn queue_link(
        &self,
        visit: &Visit,
        address: &EmailAddress,
        links: u32,
    ) -> SiteResult<()> {
        let config = &visit.config;
        let now = visit.now.wall;
        let token = Secret::mint().map_err(no_randomness)?;
        let number = getrandom::u64().map_err(no_randomness)?;
        let mail = LinkMail {
            service: &config.pages.service,
            root: &config.root,
            recipient: &address.entered,
            token: &token,
            number,
        };
        let link = NewSignInLink {
            digest: Digest::of(token.expose()),
            email: address.entered.clone(),
            mailbox: address.mailbox.clone(),
            created_at: now,
            expires_at: now.plus(LINK_VALID),
            allowance: LinkAllowance {
                since: now.minus(HOUR),
                links,
            },
        };
        let is_queued = self.store.send_link(link, mail.at(now)).await?;
        self.instruments.links.count(if is_queued {
            LinkRequest::Queued
        } else {
            LinkRequest::MailboxLimit
        });
        Ok(())
    }

    /// The page of a link. Opening the page changes nothing, because mail scanners open links.
    pub(super) async fn link_page(&self, visit: &Visit) -> SiteResult {
        let token = Secret::new(visit.query.field("token").to_owned());
        self.link_form(visit, &token, None).await
    }

    async fn link_form(
        &self,
        visit: &Visit,
        token: &Secret,
        problem: Option<FormProblem<'_>>,
    ) -> SiteResult {
        let link = self.usable_link(visit, token).await?;
        let owner = self.owner_of(&link).await?;
        let is_invited = owner.as_ref().is_some_and(StoredOwner::is_invited);
        let (visitor, cookie) = visitor(visit)?;
        let html = visit.config.pages.link(&LinkForm {
            csrf: &form_token(&visitor),
            token: token.expose(),
            email: &link.email,
            needs_terms: needs_terms(visit, owner.as_ref()),
            is_new: is_invited || owner.is_none(),
            is_invited,
            problem,
        });
        Ok(SiteReply::form(html, problem.is_some()).with_cookie(cookie))
    }

    async fn usable_link(&self, visit: &Visit, token: &Secret) -> SiteResult<UsableLink> {
        let found = if is_token(token.expose()) {
            let digest = Digest::of(token.expose());
            self.store.usable_link(digest, visit.now.wall).await?
        } else {
            None
        };
        found.ok_or_else(|| {
            self.instruments.sign_ins.count(SignInEnd::InvalidLink);
            SiteRefusal::InvalidLink
        })
    }

    async fn owner_of(&self, link: &UsableLink) -> SiteResult<Option<StoredOwner>> {
        let Some(id) = link.owner else {
            return Ok(None);
        };
        Ok(self.store.owner(id).await?)
    }

    /// Uses a link: creates a session with a new token, and an account if the mailbox is new. The recipient of an
    /// invitation can stop mail instead, and use the link later.
    pub(super) async fn use_link(&self, visit: &Visit) -> SiteResult {
        visit.form_belongs_to(&[SiteCookie::Visitor])?;
        let token = Secret::new(visit.form.field("token").to_owned());
        let link = self.usable_link(visit, &token).await?;
        let owner = self.owner_of(&link).await?;
        if let Some(invited) = owner.as_ref().filter(|owner| owner.is_invited())
            && visit.form.is_set("stop")
        {
            return self.stop_mail(invited.id).await;
        }
        let terms = &visit.config.pages.terms_version;
        // The terms may have changed since the page was opened, so the form states the version that was accepted.
        let accepts =
            visit.form.is_set("accept_terms") && visit.form.field("terms_version") == terms;
        if !accepts && needs_terms(visit, owner.as_ref()) {
            let message = "Accept the terms of use to continue.";
            let problem = FormProblem {
                field: Some("accept_terms"),
                message,
            };
            return self.link_form(visit, &token, Some(problem)).await;
        }
        let session = Secret::mint().map_err(no_randomness)?;
        let accepted_terms = accepts.then(|| terms.clone());
        let sign_in = self.sign_in_by(visit, &token, &session, accepted_terms)?;
        let outcome = self.counted_sign_in(visit, &link, sign_in).await?;
        self.check_outcome(&outcome)?;
        self.end_replaced_session(visit).await;
        let cookies = visit.cookies();
        Ok(SiteReply::redirect("/account")
            .with_cookie(cookies.set(SiteCookie::Session, &session))
            .with_cookie(cookies.delete(SiteCookie::Visitor)))
    }

    /// Disables mail to an invited address.
    async fn stop_mail(&self, invited: OwnerId) -> SiteResult {
        let stopped = self.owners.set_notices(invited, Vec::new()).await;
        stopped.map_err(|error| change_failed(&error))?;
        Ok(SiteReply::redirect("/account/sign-in?done=stopped"))
    }

    /// Counts the outcome of a sign-in. Returns an error if it failed.
    fn check_outcome(&self, outcome: &SignInOutcome) -> SiteResult<()> {
        let (end, refusal) = match outcome {
            SignInOutcome::SignedIn { is_new: true, .. } => (SignInEnd::SignedUp, None),
            SignInOutcome::SignedIn { is_new: false, .. } => (SignInEnd::SignedIn, None),
            SignInOutcome::Suspended => (SignInEnd::Suspended, Some(SiteRefusal::Suspended)),
            // `TermsRequired`: the account was deleted a moment ago, and the link would create a new one.
            SignInOutcome::InvalidLink | SignInOutcome::TermsRequired => {
                (SignInEnd::InvalidLink, Some(SiteRefusal::InvalidLink))
            }
        };
        self.instruments.sign_ins.count(end);
        refusal.map_or(Ok(()), Err)
    }

    /// The use of a link: a session with a token, and an account if the mailbox is new.
    fn sign_in_by(
        &self,
        visit: &Visit,
        link: &Secret,
        session: &Secret,
        accepted_terms: Option<String>,
    ) -> SiteResult<SignIn> {
        let at = visit.now.wall;
        let session = Digest::of(session.expose());
        let new_owner = OwnerId::mint().map_err(no_randomness)?;
        let sign_up = visit.config.tells_operator.then(|| {
            let owner = new_owner.to_string();
            NewMail::to_operator("sign_up", &owner, &json!({"owner": owner}), at)
        });
        Ok(SignIn {
            at,
            link: Digest::of(link.expose()),
            session,
            expires_at: at.plus(HOUR * u32::try_from(SESSION_HOURS).unwrap_or(1)),
            new_owner,
            accepted_terms,
            notice: self.registrar.sign_in_notice(&session, at),
            sign_up,
        })
    }

    /// Signs in. If this creates an account, the account is counted.
    async fn counted_sign_in(
        &self,
        visit: &Visit,
        link: &UsableLink,
        sign_in: SignIn,
    ) -> SiteResult<SignInOutcome> {
        if link.owner.is_some() {
            return Ok(self.store.sign_in(sign_in).await?);
        }
        let domain = registered_domain(&link.email);
        self.admission
            .count_account(&domain, visit.client, visit.now)
            .inspect_err(|_| self.instruments.sign_ins.count(SignInEnd::AccountLimit))?;
        let outcome = self.store.sign_in(sign_in).await;
        // An account that was not created must not use up the limit of its network.
        if !matches!(outcome, Ok(SignInOutcome::SignedIn { is_new: true, .. })) {
            self.admission.return_account(&domain, visit.client);
        }
        Ok(outcome?)
    }

    /// Ends the previous session of the browser. The new session is already stored, so a failure changes nothing for
    /// the visitor.
    async fn end_replaced_session(&self, visit: &Visit) {
        let Some(before) = visit.cookie(SiteCookie::Session) else {
            return;
        };
        if let Err(error) = self.store.end_session(Digest::of(before.expose())).await {
            tracing::warn!(%error, "the replaced session could not be ended; it will expire");
        }
    }

    /// Ends the session, or all sessions of the account.
    pub(super) async fn sign_out(&self, visit: &Visit) -> SiteResult {
        let live = visit.signed_in_by_form(&self.store).await?;
        let (ended, done) = if visit.form.is_set("everywhere") {
            (
                self.store.end_sessions(live.session.owner.id).await,
                "signed-out-everywhere",
            )
        } else {
            (
                self.store
                    .end_session(Digest::of(live.token.expose()))
                    .await,
                "signed-out",
            )
        };
        ended?;
        let reply = SiteReply::redirect(format!("/account/sign-in?done={done}"));
        Ok(reply.with_cookie(visit.cookies().delete(SiteCookie::Session)))
    }
}

/// Whether the terms must be accepted: the owner is new, or has not accepted the current version.
fn needs_terms(visit: &Visit, owner: Option<&StoredOwner>) -> bool {
    let terms = &visit.config.pages.terms_version;
    owner.is_none_or(|owner| owner.terms_version.as_ref() != Some(terms))
}

/// The visitor cookie, with its header if the cookie is new.
fn visitor(visit: &Visit) -> SiteResult<(Secret, Option<http::HeaderValue>)> {
    if let Some(known) = visit.cookie(SiteCookie::Visitor) {
        return Ok((known, None));
    }
    let new = Secret::mint().map_err(no_randomness)?;
    let header = visit.cookies().set(SiteCookie::Visitor, &new);
    Ok((new, Some(header)))
}

/// The page with the address form and the entered values.
fn sign_in_form(
    visit: &Visit,
    email: &str,
    problem: Option<&str>,
    notice: Option<&str>,
) -> SiteResult {
    let (visitor, cookie) = visitor(visit)?;
    let problem = problem.map(|message| FormProblem {
        field: Some("email"),
        message,
    });
    let form = SignInForm {
        csrf: &form_token(&visitor),
        email,
        problem,
        notice,
    };
    let html = visit.config.pages.sign_in(&form);
    Ok(SiteReply::form(html, problem.is_some()).with_cookie(cookie))
}
