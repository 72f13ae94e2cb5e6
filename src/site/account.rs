//! The account page, creation of applications, and deletion of accounts.

use crate::{
    instruments::AccountStep,
    pages::account::{
        AccountView, ApplicationFields, EXISTING, FormProblem, IssuedKeyView, ListedApplication,
        SignedIn, is_entered_by_owners,
    },
    registry::{IssuedKey, NewApplication, RegistrarError},
    statistics::read_month,
};
use scoregate_store::{Description, StoredApplication, UsageTotal, first_of_month, notice_kinds};

use super::{
    cookies::SiteCookie,
    site_refusal::SiteRefusal,
    site_reply::{SiteReply, SiteResult},
    site_requests::Site,
    visit::{LiveSession, Visit, change_failed},
};

/// The account page.
impl Site {
    pub(super) async fn account_page(&self, visit: &Visit) -> SiteResult {
        let live = visit.signed_in(&self.store).await?;
        let notice = match visit.finished_step() {
            "notices" => Some("Your choice of notices was saved."),
            "webhooks" => Some("The webhooks were changed."),
            "closed" => Some("The application is closed. Its keys no longer work."),
            _ => None,
        };
        let html = self
            .account_html(visit, &live, &ApplicationFields::default(), None, notice)
            .await?;
        Ok(SiteReply::page(html))
    }

    pub(super) async fn account_html(
        &self,
        visit: &Visit,
        live: &LiveSession,
        entered: &ApplicationFields,
        problem: Option<FormProblem<'_>>,
        notice: Option<&str>,
    ) -> SiteResult<String> {
        let ids = live.session.owner.applications.clone();
        let stored = self.registrar.find(ids, visit.now.wall.day()).await?;
        let applications: Vec<_> = stored
            .iter()
            .map(|application| ListedApplication {
                application,
                usage: self.registrar.current_use(application),
            })
            .collect();
        let webhooks = self.webhooks_of(visit, live).await?;
        Ok(visit.config.pages.account(&AccountView {
            signed_in: signed_in(live, visit),
            applications: &applications,
            notices: &self.registrar.notices_of(&live.session.owner, &stored),
            webhooks: webhooks.as_deref(),
            entered,
            problem,
            notice,
        }))
    }

    /// The usage of a month as CSV.
    pub(super) async fn usage_file(&self, visit: &Visit) -> SiteResult {
        let live = visit.signed_in(&self.store).await?;
        let month = visit.query.field("month");
        let first = first_of_month(month, visit.now.wall.day()).ok_or(SiteRefusal::UnknownPage)?;
        let mut csv = UsageTotal::CSV_HEAD.to_owned();
        let digest = read_month(
            &self.store,
            first,
            Some(live.owner()),
            |line: UsageTotal| csv.push_str(&line.csv()),
        )
        .await?;
        let state = digest.map_or("-not-closed", |_| "");
        Ok(SiteReply::file(&format!("usage-{month}{state}.csv"), csv))
    }

    /// The session in which a form was submitted. The change counts towards the owner's limit on changes.
    pub(super) async fn session_of_change(&self, visit: &Visit) -> SiteResult<LiveSession> {
        let live = visit.signed_in_by_form(&self.store).await?;
        self.admission.count_owner_change(live.owner(), visit.now)?;
        Ok(live)
    }

    /// Creates an application and shows its key.
    pub(super) async fn create_application(&self, visit: &Visit) -> SiteResult {
        let live = self.session_of_change(visit).await?;
        let owner = &live.session.owner;
        let entered = entered_fields(visit);
        let existing = owner.applications.len();
        let at_most = visit.config.applications_per_account;
        // A form that is submitted twice must not create two applications.
        if existing < usize::try_from(at_most).unwrap_or(usize::MAX)
            && visit.form.existing() != Some(existing)
        {
            let message = "The applications have changed since this page was opened, so no application was created. Check the list and try again.";
            let problem = Some(FormProblem {
                field: Some(EXISTING),
                message,
            });
            let html = self
                .account_html(visit, &live, &entered, problem, None)
                .await?;
            return Ok(SiteReply::problem(html));
        }
        let tier = owner
            .tier
            .clone()
            .unwrap_or_else(|| visit.config.tier.clone());
        let ApplicationFields { name, description } = entered.clone();
        let new = NewApplication {
            name,
            tier,
            description,
            ..NewApplication::default()
        };
        match self.registrar.create_for(owner.id, at_most, new).await {
            Ok(issued) => {
                self.instruments.changes.count(AccountStep::Create);
                Ok(issued_key(visit, &live, &issued, None))
            }
            Err(error) => {
                let message = form_message(&error)?;
                let problem = FormProblem {
                    field: Some(message.field),
                    message: &message.text,
                };
                let html = self
                    .account_html(visit, &live, &entered, Some(problem), None)
                    .await?;
                Ok(SiteReply::problem(html))
            }
        }
    }

    /// Chooses the notices that the owner gets.
    pub(super) async fn choose_notices(&self, visit: &Visit) -> SiteResult {
        let live = self.session_of_change(visit).await?;
        let chosen = notice_kinds(|row| visit.form.is_set(row.kind.word()));
        let saved = self.owners.set_notices(live.owner(), chosen).await;
        saved.map_err(|error| change_failed(&error))?;
        self.instruments.changes.count(AccountStep::ChooseNotices);
        Ok(SiteReply::redirect("/account?done=notices"))
    }

    /// Deletes the account.
    pub(super) async fn delete_account(&self, visit: &Visit) -> SiteResult {
        let live = self.session_of_change(visit).await?;
        // The cookie of an old session must not be enough to delete the account.
        if !live.is_recent(visit.now) {
            return Ok(sign_in_again(visit, &live));
        }
        if !visit.form.is_set("confirm") {
            let message = "Check the box to delete the account.";
            let problem = FormProblem {
                field: Some("confirm"),
                message,
            };
            let html = self
                .account_html(
                    visit,
                    &live,
                    &ApplicationFields::default(),
                    Some(problem),
                    None,
                )
                .await?;
            return Ok(SiteReply::problem(html));
        }
        let deleted = self.owners.delete(live.owner(), live.owner()).await;
        deleted.map_err(|error| change_failed(&error))?;
        self.instruments.changes.count(AccountStep::Delete);
        let reply = SiteReply::redirect("/account/sign-in?done=deleted");
        Ok(reply.with_cookie(visit.cookies().delete(SiteCookie::Session)))
    }
}

/// A problem with the fields of a form.
pub struct FormMessage {
    pub field: &'static str,
    pub text: String,
}

/// The message for a change that was refused because of the entered values. Returns an error for other refusals.
pub fn form_message(error: &RegistrarError) -> SiteResult<FormMessage> {
    let RegistrarError::BadText(bad) = error else {
        return Err(change_failed(error));
    };
    let text = error
        .to_string()
        .replacen("the url", "the website", 1)
        .replacen("key_name", "name", 1);
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|first| first.to_uppercase().to_string())
        .unwrap_or_default();
    Ok(FormMessage {
        field: bad.name(),
        text: format!("{first}{}.", letters.as_str()),
    })
}

/// The entered fields of an application.
pub fn entered_fields(visit: &Visit) -> ApplicationFields {
    let name = visit.form.field("name").to_owned();
    ApplicationFields {
        name,
        description: Description::from_fn(|column| {
            let text = visit.form.field(column);
            (is_entered_by_owners(column) && !text.is_empty()).then(|| text.to_owned())
        }),
    }
}

/// The page with a new key.
pub fn issued_key(
    visit: &Visit,
    live: &LiveSession,
    issued: &IssuedKey,
    others_end_at: Option<scoregate_base::clock::Wall>,
) -> SiteReply {
    let application: &StoredApplication = &issued.application;
    SiteReply::page_with_script(visit.config.pages.issued_key(&IssuedKeyView {
        signed_in: signed_in(live, visit),
        application,
        key: issued.key.expose(),
        others_end_at,
    }))
}

/// The page that prompts the visitor to sign in again.
pub fn sign_in_again(visit: &Visit, live: &LiveSession) -> SiteReply {
    SiteReply::forbidden(visit.config.pages.sign_in_again(&signed_in(live, visit)))
}

/// The content that all pages of a session have in common.
pub fn signed_in<'v>(live: &'v LiveSession, visit: &Visit) -> SignedIn<'v> {
    SignedIn {
        csrf: &live.csrf,
        owner: &live.session.owner,
        now: visit.now.wall,
    }
}
