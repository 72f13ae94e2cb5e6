//! Mail to owners as plain text and as HTML.

use std::time::Duration;

use crate::pages::mail_html;
use scoregate_base::clock::Wall;
use scoregate_store::{MailKind, NewMail};

/// Time after which an unsent email is useless.
const LIFETIME: Duration = Duration::from_hours(72);

/// An email without a recipient. It ends with a link to the account page at `root`, if there is one.
pub fn letter(
    kind: MailKind,
    message_id: String,
    subject: String,
    message: String,
    root: &str,
    created_at: Wall,
) -> NewMail {
    let message = if root.is_empty() {
        message
    } else {
        format!(
            "{message}\n\nChoose your notices at {root}/account. If you have no account, you can request a link there to \
             stop all mail."
        )
    };
    NewMail {
        kind,
        recipient: String::new(),
        html: mail_html(&subject, &message, root),
        text: message + "\n",
        subject,
        webhook: String::new(),
        message_id,
        created_at,
        expires_at: created_at.plus(LIFETIME),
    }
}

pub fn random_id() -> Result<String, getrandom::Error> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)?;
    Ok(data_encoding::HEXLOWER.encode(&id))
}
