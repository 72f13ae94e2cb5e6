//! Notices to owners: emails about their applications and sign-ins, of the kinds that they selected.
//!
//! The message id of a notice is derived from its subject. The part before the domain is stored for 40 days, so all
//! gateways together queue each notice only once, even after its email was sent and removed from the queue.

use std::sync::Arc;

use scoregate_base::{
    clock::Wall,
    keys::ApplicationId,
    limits::{CalendarQuota, Limits},
};

use super::{MailKind, NewMail};

/// Number of days for which the ids of queued notices are stored.
pub const NOTICE_DAYS: u32 = 40;

/// A kind of notice.
#[derive(Clone, Copy, Debug)]
pub struct NoticeRow {
    /// The kind.
    pub kind: MailKind,
    /// Whether owners who made no choice get this kind for applications in paid tiers.
    pub by_default: bool,
    /// The description of the kind for owners.
    pub label: &'static str,
}

const fn row(kind: MailKind, by_default: bool, label: &'static str) -> NoticeRow {
    NoticeRow {
        kind,
        by_default,
        label,
    }
}

/// The kinds that owners can select.
pub const NOTICES: [NoticeRow; 5] = [
    row(
        MailKind::Quota80,
        true,
        "80 % of the requests of a day or a month are used",
    ),
    row(
        MailKind::Quota100,
        true,
        "All requests of a day or a month are used",
    ),
    row(
        MailKind::KeyExpires,
        true,
        "A key expires in 7 days or in 1 day",
    ),
    row(
        MailKind::KeyChanged,
        true,
        "A key was created, replaced or revoked",
    ),
    row(
        MailKind::NewSignIn,
        false,
        "Somebody signed in to the account",
    ),
];

/// The set of kinds that fulfil a condition.
pub fn notice_kinds(is_chosen: impl Fn(&NoticeRow) -> bool) -> Vec<MailKind> {
    NOTICES
        .iter()
        .filter(|row| is_chosen(row))
        .map(|row| row.kind)
        .collect()
}

/// The kinds as comma-separated words.
pub fn notice_words(kinds: &[MailKind]) -> String {
    kinds
        .iter()
        .map(|kind| kind.word())
        .collect::<Vec<_>>()
        .join(",")
}

/// The kinds with these words. Unknown words, which come from a newer release, are ignored.
pub fn parse_notices(words: &str) -> Vec<MailKind> {
    notice_kinds(|row| words.split(',').any(|word| word == row.kind.word()))
}

/// The properties of a tier on which notices depend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeTier {
    /// Name of the tier.
    pub name: Arc<str>,
    /// Limits of the tier.
    pub limits: Limits,
    /// The kinds for owners who made no choice.
    pub defaults: Vec<MailKind>,
}

/// A notice about an application, queued if its owner wants it.
#[derive(Clone, Debug)]
pub struct OwnerNotice {
    /// The mail. The store sets the recipient.
    pub mail: NewMail,
    /// The tiers.
    pub tiers: Vec<NoticeTier>,
}

/// A query for the due notices of a kind that owners want.
#[derive(Clone, Debug)]
pub struct NoticeQuery {
    /// The kind, which is about a quota or the expiry of a key.
    pub kind: MailKind,
    /// The current time.
    pub now: Wall,
    /// Keys that expire before this time are due for a notice.
    pub until: Wall,
    /// The live gateways. Units leased to them are not lost.
    pub live: Vec<u64>,
    /// The tiers.
    pub tiers: Vec<NoticeTier>,
}

/// A due notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueNotice {
    /// The application.
    pub application: ApplicationId,
    /// The address of its owner.
    pub recipient: String,
    /// The subject of the notice.
    pub subject: NoticeSubject,
}

/// The subject of a due notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeSubject {
    /// The use of a quota.
    Quota {
        /// Units of the window that were used, or lost when a gateway stopped.
        used: u64,
        /// The window and its quota.
        limit: CalendarQuota,
        /// The application or the account whose units count.
        scope: String,
    },
    /// A key that expires.
    Key {
        /// The first characters of the key.
        shown: String,
        /// The expiry of the key.
        expires_at: Wall,
    },
}
