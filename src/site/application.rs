//! The page of an application, and changes to it and its keys by its owner.

use std::time::Duration;

use crate::{
    instruments::AccountStep,
    pages::account::{
        ApplicationFields, FormProblem, KEY_NAME, KeyFields, NEW_NAME, OVERLAP,
        OwnedApplicationView, REPLACE, is_entered_by_owners,
    },
    registry::{DescriptionChange, FieldChange, KeyDetails, RegistrarError},
};
use scoregate_base::{clock::Day, keys::Digest};
use scoregate_store::{
    EvidenceQuery, KeyAllowance, OwnerRefusal, RequestQuery, StoreError, StoredApplication,
    StoredKey,
};

use super::{
    account::{entered_fields, form_message, issued_key, sign_in_again, signed_in},
    cookies::SiteCookie,
    site_refusal::SiteRefusal,
    site_reply::{SiteReply, SiteResult},
    site_requests::Site,
    visit::{LiveSession, Visit, change_failed},
};

/// Limits on the keys of an application.
const MAX_ACTIVE_KEYS: usize = 10;
const MAX_NEW_KEYS: usize = 20;
/// Number of days with request counts on the page.
const SHOWN_DAYS: u32 = 30;
/// Number of days with evidence on the page.
const EVIDENCE_DAYS: u32 = 7;

/// The page of an application.
impl Site {
    /// The session and the application of the page. Applications of other owners are treated as unknown.
    async fn owned(&self, visit: &Visit) -> SiteResult<(LiveSession, StoredApplication)> {
        let live = visit.signed_in(&self.store).await?;
        let id = visit.application()?;
        if !live.session.owner.applications.contains(&id) {
            return Err(SiteRefusal::UnknownPage);
        }
        let application = self
            .registrar
            .show(id)
            .await
            .map_err(|error| change_failed(&error))?;
        Ok((live, application))
    }

    /// The session and the application of the page, if the submitted form belongs to the session.
    async fn owned_by_form(&self, visit: &Visit) -> SiteResult<(LiveSession, StoredApplication)> {
        let owned = self.owned(visit).await?;
        visit.form_belongs_to(&[SiteCookie::Session])?;
        self.admission
            .count_owner_change(owned.0.owner(), visit.now)?;
        Ok(owned)
    }

    pub(super) async fn application_page(&self, visit: &Visit) -> SiteResult {
        let (live, application) = self.owned(visit).await?;
        let notice = match visit.finished_step() {
            "saved" => Some("The changes are saved."),
            "revoked" => Some("The key is revoked. Requests with it are refused from now on."),
            "kept" => Some("The key no longer expires."),
            _ => None,
        };
        let entered = fields_of(&application);
        let html = self
            .application_html(visit, &live, &application, &entered, None, notice)
            .await;
        Ok(SiteReply::page(html))
    }

    async fn application_html(
        &self,
        visit: &Visit,
        live: &LiveSession,
        application: &StoredApplication,
        entered: &ApplicationFields,
        problem: Option<FormProblem<'_>>,
        notice: Option<&str>,
    ) -> String {
        let last = visit.now.wall.day();
        let first = Day::from_number(last.number().saturating_sub(SHOWN_DAYS - 1));
        let days = RequestQuery {
            application: application.id,
            first,
            last,
        };
        let requests = self.store.requests(days).await;
        // If the statistics cannot be read, the page is shown without request counts, so that owners can still revoke
        // keys.
        if let Err(error) = &requests {
            tracing::warn!(%error, "request counts of an application could not be read");
        }
        let first = Day::from_number(last.number().saturating_sub(EVIDENCE_DAYS - 1));
        let query = EvidenceQuery {
            application: Some(application.id),
            first,
            last,
        };
        let evidence = self.store.evidence(query).await;
        if let Err(error) = &evidence {
            tracing::warn!(%error, "evidence of the use of an application could not be read");
        }
        let evidence = evidence.ok().map(|records| -> Vec<_> {
            records
                .into_iter()
                .map(|record| (record.day, record.evidence))
                .collect()
        });
        visit.config.pages.application(&OwnedApplicationView {
            signed_in: signed_in(live, visit),
            application,
            usage: self.registrar.current_use(application),
            requests: requests.as_ref().ok(),
            days,
            evidence: evidence.as_deref(),
            entered,
            entered_keys: KeyFields {
                key_name: visit.form.field(KEY_NAME),
                new_name: visit.form.field(NEW_NAME),
                overlap: visit.form.field(OVERLAP),
            },
            problem,
            notice,
        })
    }

    /// Replaces the description of an application.
    pub(super) async fn describe_application(&self, visit: &Visit) -> SiteResult {
        let id = visit.application()?;
        let (live, application) = self.owned_by_form(visit).await?;
        let entered = entered_fields(visit);
        let change = DescriptionChange {
            name: Some(entered.name.clone()),
            ..DescriptionChange::of_columns(|column| match visit.form.field(column) {
                _ if !is_entered_by_owners(column) => FieldChange::Keep,
                text => text.into(),
            })
        };
        match self.registrar.describe(live.owner(), id, change).await {
            Ok(_) => {
                self.instruments.changes.count(AccountStep::Describe);
                Ok(SiteReply::redirect(format!(
                    "/account/applications/{id}?done=saved"
                )))
            }
            Err(error) => {
                let message = form_message(&error)?;
                let problem = FormProblem {
                    field: Some(message.field),
                    message: &message.text,
                };
                let html = self
                    .application_html(visit, &live, &application, &entered, Some(problem), None)
                    .await;
                Ok(SiteReply::problem(html))
            }
        }
    }

    /// Adds a key and shows it. The other keys are not affected.
    pub(super) async fn add_key(&self, visit: &Visit) -> SiteResult {
        let id = visit.application()?;
        let (live, application) = self.owned_by_form(visit).await?;
        match self
            .registrar
            .add_key(live.owner(), id, key_details(visit, KEY_NAME))
            .await
        {
            Ok(issued) => {
                self.instruments.changes.count(AccountStep::AddKey);
                Ok(issued_key(visit, &live, &issued, None))
            }
            Err(error) => {
                self.no_new_key(visit, &live, &application, KEY_NAME, &error)
                    .await
            }
        }
    }

    /// Replaces the keys with a new one and shows it. The old keys work until the overlap ends.
    pub(super) async fn rotate_key(&self, visit: &Visit) -> SiteResult {
        let id = visit.application()?;
        let (live, application) = self.owned_by_form(visit).await?;
        let Some(overlap) = overlap(visit.form.field(OVERLAP)) else {
            let message = "Choose when the existing keys expire.";
            return Ok(self
                .with_problem(visit, &live, &application, OVERLAP, message)
                .await);
        };
        if !visit.form.is_set(REPLACE) {
            let message = "Check the box to replace the keys.";
            return Ok(self
                .with_problem(visit, &live, &application, REPLACE, message)
                .await);
        }
        let replaces_keys = application
            .keys
            .iter()
            .any(|key| key.is_active(visit.now.wall));
        if overlap.is_zero() && replaces_keys && !live.is_recent(visit.now) {
            return Ok(sign_in_again(visit, &live));
        }
        match self
            .registrar
            .rotate(live.owner(), id, overlap, key_details(visit, NEW_NAME))
            .await
        {
            Ok(issued) => {
                self.instruments.changes.count(AccountStep::Rotate);
                let others_end_at = replaces_keys.then(|| visit.now.wall.plus(overlap));
                Ok(issued_key(visit, &live, &issued, others_end_at))
            }
            Err(error) => {
                self.no_new_key(visit, &live, &application, NEW_NAME, &error)
                    .await
            }
        }
    }

    /// The page with the reason why a key was not created: a limit on keys, or invalid text in `field`.
    async fn no_new_key(
        &self,
        visit: &Visit,
        live: &LiveSession,
        application: &StoredApplication,
        field: &'static str,
        error: &RegistrarError,
    ) -> SiteResult {
        if let Some(message) = key_limit(error) {
            // The keys may have changed since they were read.
            let (live, application) = self.owned(visit).await?;
            return Ok(self
                .with_problem(visit, &live, &application, "key", message)
                .await);
        }
        let message = form_message(error)?;
        Ok(self
            .with_problem(visit, live, application, field, &message.text)
            .await)
    }

    /// Cancels the expiry of a key that has not expired.
    pub(super) async fn keep_key(&self, visit: &Visit) -> SiteResult {
        let id = visit.application()?;
        let (live, application) = self.owned_by_form(visit).await?;
        let key = key_of_form(visit, &application)?;
        if !key.is_active(visit.now.wall) {
            let message = "The key has expired or is revoked, so it cannot be kept. Add a new one.";
            return Ok(self
                .with_problem(visit, &live, &application, "key", message)
                .await);
        }
        let kept = self
            .registrar
            .set_expiry(live.owner(), id, Some(&key.digest.to_string()), None)
            .await;
        kept.map_err(|error| change_failed(&error))?;
        self.instruments.changes.count(AccountStep::KeepKey);
        Ok(SiteReply::redirect(format!(
            "/account/applications/{id}?done=kept"
        )))
    }

    /// Revokes a key.
    pub(super) async fn revoke_key(&self, visit: &Visit) -> SiteResult {
        let id = visit.application()?;
        let (live, application) = self.owned_by_form(visit).await?;
        let key = key_of_form(visit, &application)?;
        if !live.is_recent(visit.now) {
            return Ok(sign_in_again(visit, &live));
        }
        let revoked = self
            .registrar
            .revoke(live.owner(), id, Some(&key.digest.to_string()))
            .await;
        revoked.map_err(|error| change_failed(&error))?;
        self.instruments.changes.count(AccountStep::Revoke);
        Ok(SiteReply::redirect(format!(
            "/account/applications/{id}?done=revoked"
        )))
    }

    /// Closes an application.
    pub(super) async fn close_application(&self, visit: &Visit) -> SiteResult {
        let id = visit.application()?;
        let (live, application) = self.owned_by_form(visit).await?;
        if !live.is_recent(visit.now) {
            return Ok(sign_in_again(visit, &live));
        }
        if !visit.form.is_set("confirm") {
            let message = "Check the box to close the application.";
            return Ok(self
                .with_problem(visit, &live, &application, "confirm", message)
                .await);
        }
        let closed = self.registrar.close(live.owner(), id).await;
        closed.map_err(|error| change_failed(&error))?;
        self.instruments.changes.count(AccountStep::Close);
        Ok(SiteReply::redirect("/account?done=closed"))
    }

    async fn with_problem(
        &self,
        visit: &Visit,
        live: &LiveSession,
        application: &StoredApplication,
        field: &'static str,
        message: &str,
    ) -> SiteReply {
        let problem = Some(FormProblem {
            field: Some(field),
            message,
        });
        let entered = fields_of(application);
        SiteReply::problem(
            self.application_html(visit, live, application, &entered, problem, None)
                .await,
        )
    }
}

fn fields_of(application: &StoredApplication) -> ApplicationFields {
    ApplicationFields {
        name: application.name.clone(),
        description: application.description.clone(),
    }
}

/// The key that a form refers to.
fn key_of_form<'a>(visit: &Visit, application: &'a StoredApplication) -> SiteResult<&'a StoredKey> {
    let digest = Digest::from_hex(visit.form.field("key"));
    application
        .keys
        .iter()
        .find(|key| Some(key.digest) == digest)
        .ok_or(SiteRefusal::UnknownPage)
}

/// The entered properties of a new key. A form without the number of existing keys creates no key.
fn key_details(visit: &Visit, field: &str) -> KeyDetails {
    let name = Some(visit.form.field(field).to_owned()).filter(|name| !name.is_empty());
    let existing = visit.form.existing().unwrap_or(usize::MAX);
    let allowance = KeyAllowance {
        existing,
        active: MAX_ACTIVE_KEYS,
        per_day: MAX_NEW_KEYS,
    };
    KeyDetails {
        name,
        allowance: Some(allowance),
        ..KeyDetails::default()
    }
}

/// The time for which the existing keys keep working.
fn overlap(word: &str) -> Option<Duration> {
    match word {
        "none" => Some(Duration::ZERO),
        "1h" => Some(Duration::from_hours(1)),
        "1d" => Some(Duration::from_hours(24)),
        "7d" => Some(Duration::from_hours(7 * 24)),
        _ => None,
    }
}

/// The message if the application cannot have another key.
fn key_limit(error: &RegistrarError) -> Option<&'static str> {
    let RegistrarError::Store(StoreError::Owner(refusal)) = error else {
        return None;
    };
    if let OwnerRefusal::KeysChanged(_) = refusal {
        return Some(
            "The keys have changed since this page was opened, so no key was created. Check the list and try again.",
        );
    }
    if let OwnerRefusal::TooManyActiveKeys(_) = refusal {
        return Some(
            "The application has reached the limit of 10 active keys. Revoke one, or wait until one expires.",
        );
    }
    matches!(refusal, OwnerRefusal::TooManyNewKeys(_)).then_some(
        "The application has reached the limit of 20 new keys in 24 hours. Try again later.",
    )
}
