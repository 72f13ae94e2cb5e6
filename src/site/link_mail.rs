//! The email with a sign-in link. It is the same for known and unknown addresses.

use std::time::Duration;

use crate::pages::mail_html;
use scoregate_base::{clock::Wall, secret::Secret};
use scoregate_store::{MailKind, NewMail};

/// The validity of a link.
pub const LINK_VALID: Duration = Duration::from_mins(15);

/// The variable parts of an email.
pub struct LinkMail<'a> {
    /// The name of the service.
    pub service: &'a str,
    /// The public address of the site, without a trailing slash.
    pub root: &'a str,
    pub recipient: &'a str,
    /// The token of the link.
    pub token: &'a Secret,
    /// Makes the message id unique.
    pub number: u64,
}

impl LinkMail<'_> {
    /// The email, queued at `now`.
    pub fn at(&self, now: Wall) -> NewMail {
        let Self {
            service,
            root,
            recipient,
            token,
            number,
        } = self;
        let link = format!("{root}/account/confirm?token={}", token.expose());
        let text = format!(
            "Open this link to sign in to {service}:\n\n{link}\n\n\
             Press the button on that page to sign in. The link works once and expires in 15 minutes.\n\n\
             If you did not request this email, you can ignore it. Nobody can sign in without the link.\n"
        );
        let subject = format!("Sign in to {service}");
        NewMail {
            kind: MailKind::SignIn,
            recipient: (*recipient).to_owned(),
            html: mail_html(&subject, &text, root),
            subject,
            text,
            webhook: String::new(),
            message_id: format!("{:x}.{number:016x}@{}", now.millis(), host(root)),
            created_at: now,
            expires_at: now.plus(LINK_VALID),
        }
    }
}

/// The host of a URL, for message ids.
fn host(root: &str) -> &str {
    let authority = root.split_once("://").map_or(root, |(_, rest)| rest);
    let host = authority.split('/').next().unwrap_or_default();
    if host.starts_with('[') {
        "localhost"
    } else {
        host.split(':').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_contains_its_link_in_both_forms_and_a_unique_message_id() {
        let token = Secret::new("t".repeat(43));
        let mail = LinkMail {
            service: "A & B",
            root: "https://api.example:8443",
            recipient: "ann@example.org",
            token: &token,
            number: 7,
        };
        let mail = mail.at(Wall::from_seconds(16));
        let link = format!(
            "https://api.example:8443/account/confirm?token={}",
            token.expose()
        );
        assert!(
            mail.text.contains(&link) && mail.html.contains(&link),
            "{}",
            mail.text
        );
        assert!(mail.html.contains("A &amp; B") && mail.subject == "Sign in to A & B");
        assert_eq!(mail.message_id, "3e80.0000000000000007@api.example");
        assert_eq!(mail.expires_at, Wall::from_seconds(16 + 900));
        assert_eq!(host("http://[::1]:8080"), "localhost");
    }
}
