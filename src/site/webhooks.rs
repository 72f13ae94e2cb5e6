//! Changes to the webhooks of an owner.

use data_encoding::HEXLOWER;

use crate::{
    instruments::AccountStep,
    mail::{WebhookUrl, challenge, new_webhook_secret},
    pages::account::{
        ApplicationFields, FormProblem, ROTATED_AT, WEBHOOK, WEBHOOK_STEP, WEBHOOK_URL,
        last_rotation,
    },
};
use scoregate_store::{MAX_WEBHOOKS, StoredWebhook, WebhookChange};

use super::{
    site_refusal::SiteRefusal,
    site_reply::{SiteReply, SiteResult},
    site_requests::Site,
    visit::{LiveSession, Visit, change_failed, no_randomness},
};

impl Site {
    /// The webhooks of an owner; `None` if webhooks are disabled on this service.
    pub(super) async fn webhooks_of(
        &self,
        visit: &Visit,
        live: &LiveSession,
    ) -> SiteResult<Option<Vec<StoredWebhook>>> {
        if !visit.config.webhooks {
            return Ok(None);
        }
        Ok(Some(self.store.webhooks(live.owner().to_string()).await?))
    }

    /// Adds a webhook, or changes the webhook that the form names.
    pub(super) async fn change_webhooks(&self, visit: &Visit) -> SiteResult {
        let live = self.session_of_change(visit).await?;
        let webhooks = self
            .webhooks_of(visit, &live)
            .await?
            .ok_or(SiteRefusal::UnknownPage)?;
        let id = visit.form.field(WEBHOOK);
        if id.is_empty() {
            return self.add_webhook(visit, &live, &webhooks).await;
        }
        let webhook = webhooks
            .into_iter()
            .find(|webhook| webhook.id == id)
            .ok_or(SiteRefusal::UnknownPage)?;
        let change = match visit.form.field(WEBHOOK_STEP) {
            "rotate" if visit.form.field(ROTATED_AT) == last_rotation(&webhook) => {
                let secret = new_webhook_secret().map_err(no_randomness)?;
                self.save(&live, id, WebhookChange::Rotate(secret.clone()))
                    .await?;
                let page = visit
                    .config
                    .pages
                    .webhook_secret(&webhook.url, secret.expose(), false);
                return Ok(SiteReply::page(page));
            }
            "remove" => WebhookChange::Remove,
            // The form was submitted twice, or the webhook has changed since the page was opened.
            _ => return Ok(SiteReply::redirect("/account")),
        };
        self.save(&live, id, change).await?;
        Ok(SiteReply::redirect("/account?done=webhooks"))
    }

    async fn add_webhook(
        &self,
        visit: &Visit,
        live: &LiveSession,
        present: &[StoredWebhook],
    ) -> SiteResult {
        let url = visit.form.field(WEBHOOK_URL);
        let message = if present.len() >= MAX_WEBHOOKS {
            "An account may have two webhooks. Remove one first."
        } else if present.iter().any(|webhook| webhook.url == url) {
            "A webhook with this URL exists already."
        } else if WebhookUrl::parse(url).is_none() {
            "The URL must start with https:// and have a host name, no user name, and the port 443 or 8443."
        } else {
            let mut id = [0; 12];
            getrandom::fill(&mut id).map_err(no_randomness)?;
            let id = format!("hook_{}", HEXLOWER.encode(&id));
            let secret = new_webhook_secret().map_err(no_randomness)?;
            let challenge = Box::new(challenge(&id, visit.now.wall).map_err(no_randomness)?);
            let change = WebhookChange::Add {
                url: url.to_owned(),
                secret: secret.clone(),
                challenge,
            };
            self.save(live, &id, change).await?;
            return Ok(SiteReply::page(visit.config.pages.webhook_secret(
                url,
                secret.expose(),
                true,
            )));
        };
        let problem = Some(FormProblem {
            field: Some(WEBHOOK_URL),
            message,
        });
        let html = self
            .account_html(visit, live, &ApplicationFields::default(), problem, None)
            .await?;
        Ok(SiteReply::problem(html))
    }

    async fn save(&self, live: &LiveSession, id: &str, change: WebhookChange) -> SiteResult<()> {
        let changed = self
            .owners
            .change_webhook(live.owner(), id.to_owned(), change)
            .await;
        changed.map_err(|error| change_failed(&error))?;
        self.instruments.changes.count(AccountStep::ChangeWebhook);
        Ok(())
    }
}
