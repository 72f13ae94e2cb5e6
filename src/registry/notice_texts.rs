//! The texts of notices to owners.
//!
//! The message id of a notice is derived from its subject, so each gateway generates the same id and the store queues
//! the notice only once.

use std::time::Duration;

use serde_json::{Value, json};

use scoregate_base::{
    clock::Wall,
    keys::{ApplicationId, Digest},
    limits::{CalendarQuota, Scope},
};
use scoregate_store::{
    ChangeKind, DueNotice, MailKind, NewMail, NoticeSubject, Ownership, StoredKey,
};

use crate::registry::{actor::Actor, letter::letter};

const DAY: Duration = Duration::from_hours(24);

/// The facts about the service that the emails contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeTexts {
    /// The name of the service.
    pub service: String,
    /// The public address of the account pages, without a trailing slash.
    pub root: String,
    /// The domain of message ids.
    pub domain: String,
    /// Whether owners can have webhooks.
    pub webhooks: bool,
}

/// A notice before it is rendered as an email: the event and the recommended action.
struct NoticeText {
    kind: MailKind,
    /// The part of the message id between the kind and the domain.
    about: String,
    subject: String,
    happened: String,
    advice: &'static str,
    application: Option<ApplicationId>,
    /// The fields for webhooks, in addition to the application.
    data: Value,
}

impl NoticeTexts {
    fn mail(&self, notice: NoticeText, at: Wall) -> NewMail {
        let NoticeText {
            kind,
            about,
            subject,
            happened,
            advice,
            application,
            mut data,
        } = notice;
        let service = &self.service;
        let root = &self.root;
        let mut webhook = String::new();
        if self.webhooks {
            if let Some(id) = application
                && let Value::Object(fields) = &mut data
            {
                fields.insert("application".into(), id.to_string().into());
            }
            webhook =
                json!({"type": kind.word(), "timestamp": at.rfc3339(), "data": data}).to_string();
        }
        let page = application.map_or_else(String::new, |id| format!("/applications/{id}"));
        let message = format!("{happened}\n\n{advice}\n\n{root}/account{page}");
        let message_id = format!("{}.{about}@{}", kind.word(), self.domain);
        let subject = format!("{service}: {subject}");
        NewMail {
            webhook,
            ..letter(kind, message_id, subject, message, root, at)
        }
    }

    /// The notice of a change. The recipient is unknown here.
    pub(crate) fn of_change(
        &self,
        who: Actor<'_>,
        id: ApplicationId,
        what: &ChangeKind,
        at: Wall,
    ) -> Option<NewMail> {
        let (subject, happened, key) = changed_keys(id, what, at)?;
        let by = if who.owner().is_some() {
            "in your account"
        } else {
            "by the operator"
        };
        let key = key.map_or_else(String::new, |digest| format!(".{}", short(digest)));
        let notice = NoticeText {
            kind: MailKind::KeyChanged,
            about: format!("{id}.{}.{}{key}", at.millis(), what.word()),
            subject: subject.into(),
            happened: format!("{happened} This was done {by} at {}.", at.rfc3339()),
            advice: "If you did not expect this, sign in, revoke the keys that you do not recognize, and sign out \
            everywhere.",
            application: Some(id),
            data: json!({"change": what.word()}),
        };
        Some(self.mail(notice, at))
    }

    /// The notice of a new session. The recipient is unknown here.
    pub(crate) fn of_sign_in(&self, session: &Digest, at: Wall) -> NewMail {
        let notice = NoticeText {
            kind: MailKind::NewSignIn,
            about: short(session),
            subject: "somebody signed in to your account".into(),
            happened: format!(
                "At {}, somebody signed in to your account with a link from your email.",
                at.rfc3339()
            ),
            advice: "If that was not you, somebody else can read your mail: secure your mailbox, then sign in and sign out everywhere.",
            application: None,
            data: json!({}),
        };
        self.mail(notice, at)
    }

    pub(crate) fn of_due(&self, kind: MailKind, due: DueNotice, now: Wall) -> NewMail {
        let id = due.application;
        let notice = match due.subject {
            NoticeSubject::Quota { used, limit, scope } => {
                used_quota(kind, id, used, limit, &scope)
            }
            NoticeSubject::Key { shown, expires_at } => expiring_key(id, &shown, expires_at, now),
        };
        NewMail {
            recipient: due.recipient,
            ..self.mail(notice, now)
        }
    }
}

fn used_quota(
    kind: MailKind,
    id: ApplicationId,
    used: u64,
    limit: CalendarQuota,
    scope: &str,
) -> NoticeText {
    let CalendarQuota { window, quota } = limit;
    let name = window.rule.name();
    let row = window.rule.row();
    let adjective = row.period.adjective();
    // After a refusal, the remaining units are held by gateways, so none are left for the owner.
    let (part, used) = if kind == MailKind::Quota80 {
        ("80 % of the", used.min(quota.into()))
    } else {
        ("all of the", quota.into())
    };
    let (whose, application) = match row.scope {
        Scope::Application => (format!("the application {id}"), Some(id)),
        Scope::Owner => ("all applications of your account".into(), None),
    };
    let start = window.start;
    let reset = window.ends_at().rfc3339();
    NoticeText {
        kind,
        about: format!("{scope}.{name}.{start}"),
        subject: format!("{part} {adjective} quota is used"),
        happened: format!(
            "In the {adjective} quota of {whose}, {used} of {quota} requests have been used since {start} 00:00 UTC. Once the \
             quota is used up, requests get 429 with the limit `{name}` until {reset}."
        ),
        advice: "A request with If-None-Match costs nothing while a document is unchanged. The page shows the requests:",
        application,
        data: json!({"limit": name, "from": start.to_string(), "reset_at": reset, "used": used, "quota": quota}),
    }
}

fn expiring_key(id: ApplicationId, shown: &str, expires_at: Wall, now: Wall) -> NoticeText {
    let days = if expires_at <= now.plus(DAY) { 1 } else { 7 };
    let digest = short(&Digest::of(shown));
    let at = expires_at.rfc3339();
    NoticeText {
        kind: MailKind::KeyExpires,
        about: format!("{days}.{id}.{digest}.{}", expires_at.millis()),
        subject: format!("a key expires on {}", expires_at.day()),
        happened: format!(
            "The key that begins with {shown} expires at {at}. It belongs to the application {id}."
        ),
        advice: "Add a key and use it before then; requests with an expired key are refused. The page of the application \
                 shows its keys:",
        application: Some(id),
        data: json!({"key": shown, "expires_at": at}),
    }
}

/// The subject and the text for a change of keys, and the key if the change concerns a single key.
fn changed_keys(
    id: ApplicationId,
    what: &ChangeKind,
    at: Wall,
) -> Option<(&'static str, String, Option<&Digest>)> {
    let created = |key: &StoredKey| {
        format!(
            "The key that begins with {} was created for the application {id}.",
            key.shown
        )
    };
    Some(match what {
        ChangeKind::Create {
            key,
            owner: Some(Ownership::SignedUp { .. }),
            ..
        }
        | ChangeKind::AddKey { key, .. } => ("a key was created", created(key), Some(&key.digest)),
        ChangeKind::Rotate {
            key,
            retire_others_at,
            ..
        } => {
            let others = if *retire_others_at <= at {
                "are revoked".to_owned()
            } else {
                format!("expire at {} at the latest", retire_others_at.rfc3339())
            };
            let happened = format!("{} Its other keys {others}.", created(key));
            ("the keys were replaced", happened, Some(&key.digest))
        }
        ChangeKind::RevokeKey { digest } => {
            let happened =
                format!("A key of the application {id} was revoked and no longer works.");
            ("a key was revoked", happened, Some(digest))
        }
        ChangeKind::RevokeAll => {
            let happened =
                format!("All keys of the application {id} are revoked and no longer work.");
            ("all keys were revoked", happened, None)
        }
        ChangeKind::Close => {
            let happened = format!(
                "The application {id} was closed. Its keys are revoked and no longer work."
            );
            ("an application was closed", happened, None)
        }
        // These changes cause no notice: a new application has no owner, and the other changes contain their own mail
        // if they need any.
        ChangeKind::Create { .. }
        | ChangeKind::ReportLeak(_)
        | ChangeKind::Attach(_)
        | ChangeKind::Detach(_)
        | ChangeKind::SetTier { .. }
        | ChangeKind::SetLimits { .. }
        | ChangeKind::SetOwnerLimits(_)
        | ChangeKind::RestoreLimits
        | ChangeKind::SetExpiry { .. }
        | ChangeKind::Describe { .. } => return None,
    })
}

/// The first characters of a digest: enough to make a message id unique.
fn short(digest: &Digest) -> String {
    digest.to_string().chars().take(32).collect()
}
