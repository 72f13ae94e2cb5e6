//! Webhooks: their forms on the account page, and the page that shows a new secret.

use super::{
    AccountSite, AccountView, FormProblem,
    fields::{TextField, alert, hidden, open_form},
    frame::{Frame, section},
};
use crate::pages::{html::escape, paths::ACCOUNT};
use scoregate_store::{MAX_WEBHOOKS, StoredWebhook};

/// The field with the URL of a new webhook.
pub const WEBHOOK_URL: &str = "webhook_url";
/// The field with the id of a webhook.
pub const WEBHOOK: &str = "webhook";
/// The field with the change to the webhook: `rotate` or `remove`.
pub const WEBHOOK_STEP: &str = "step";
/// The field with the time of the last rotation, so that a form that is sent twice replaces a secret only once.
pub const ROTATED_AT: &str = "rotated_at";

/// The section with webhooks. Empty if this service does not support webhooks.
pub fn webhooks(view: &AccountView<'_>, problem: Option<FormProblem<'_>>) -> String {
    let Some(webhooks) = view.webhooks else {
        return String::new();
    };
    let csrf = view.signed_in.csrf;
    let cards: String = webhooks.iter().map(|webhook| card(webhook, csrf)).collect();
    let cards = if cards.is_empty() {
        cards
    } else {
        format!("<ul class=\"cards\">\n{cards}</ul>\n")
    };
    let field = TextField {
        name: WEBHOOK_URL,
        label: "URL",
        hint: "Must start with <code>https://</code>. The port is 443 or 8443.",
        kind: "type=\"url\" maxlength=\"500\" autocomplete=\"off\" required",
        value: "",
    };
    let form = format!(
        "{}{}<p><button class=\"button\">Add webhook</button></p>\n</form>\n",
        open_form("/account/webhooks", csrf),
        field.html(problem)
    );
    let form = if webhooks.len() < MAX_WEBHOOKS {
        form
    } else {
        String::new()
    };
    let content = format!(
        "<p>The chosen notices are also sent to these URLs, as signed messages in the form of Standard Webhooks.</p>\n\
         {}{cards}{form}",
        alert(problem)
    );
    section("webhooks", "Webhooks", &content)
}

fn card(webhook: &StoredWebhook, csrf: &str) -> String {
    let url = escape(&webhook.url);
    let state = match webhook.verified_at {
        Some(_) => "Active.",
        None => {
            "Not active: the receiver has not answered the challenge. After 15 minutes, remove the webhook and add it again."
        }
    };
    let failing = webhook
        .last_error
        .as_ref()
        .map(|reason| format!(" The last message failed: {}.", escape(reason)));
    format!(
        "<li class=\"card\">\n<p><code>{url}</code></p>\n<p class=\"hint\">{state}{}</p>\n{}{}{}<p class=\"actions\">{}{}\
         </p>\n</form>\n</li>\n",
        failing.unwrap_or_default(),
        open_form("/account/webhooks", csrf),
        hidden(WEBHOOK, &webhook.id),
        hidden(ROTATED_AT, &last_rotation(webhook)),
        button("rotate", "Replace the secret", &url),
        button("remove", "Remove", &url)
    )
}

fn button(step: &str, label: &str, url: &str) -> String {
    format!(
        "<button class=\"button quiet\" name=\"{WEBHOOK_STEP}\" value=\"{step}\">{label}<span class=\"unseen\"> {url}</span>\
         </button>\n"
    )
}

/// The time of the last rotation in the format used in forms.
pub fn last_rotation(webhook: &StoredWebhook) -> String {
    webhook
        .rotated_at
        .map_or_else(String::new, |at| at.millis().to_string())
}

impl AccountSite {
    /// The page that shows a new secret, which is shown only once.
    pub fn webhook_secret(&self, url: &str, secret: &str, is_new: bool) -> String {
        let then = if is_new {
            "A signed message with a challenge is sent now. The webhook is active once the response has status 200 and \
             contains the text of <code>data.challenge</code>. The message is repeated for 15 minutes, so you can store \
             the secret first."
        } else {
            "For 24 hours messages are also signed with the previous secret."
        };
        let body = format!(
            "<h1>Secret of the webhook</h1>\n<p class=\"lede\">For <code>{}</code>.</p>\n\
             <p class=\"warning\"><strong>Copy the secret now.</strong> It will not be shown again.</p>\n\
             <p class=\"issued\"><code>{}</code></p>\n<p>{then}</p>\n\
             <p><a class=\"button\" href=\"/account\">I have copied the secret</a></p>\n",
            escape(url),
            escape(secret)
        );
        Frame {
            title: "Secret of the webhook",
            current: ACCOUNT,
            body: &body,
        }
        .html(self)
    }
}
