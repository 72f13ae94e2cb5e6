//! The contents of the account pages. `site` collects them, and the other files of this module render them. Data only.

use scoregate_base::{
    clock::{Day, Wall},
    evidence::DayEvidence,
    limits::LimitStatus,
};
use scoregate_store::{
    Description, MailKind, RequestList, RequestQuery, StoredApplication, StoredOwner, StoredWebhook,
};

/// A problem with a form. It is shown above the form and at the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormProblem<'a> {
    /// The field's name, if the problem concerns one field.
    pub field: Option<&'static str>,
    /// The mistake and how to correct it.
    pub message: &'a str,
}

/// The form for an email address.
#[derive(Clone, Copy, Debug)]
pub struct SignInForm<'a> {
    /// The value of the hidden field `csrf`.
    pub csrf: &'a str,
    /// The address that was entered.
    pub email: &'a str,
    /// The problem with the address.
    pub problem: Option<FormProblem<'a>>,
    /// A message about the last step, such as "You are signed out."
    pub notice: Option<&'a str>,
}

/// The page to which an email link leads. The button on it uses the link.
#[derive(Clone, Copy, Debug)]
pub struct LinkForm<'a> {
    /// The value of the hidden field `csrf`.
    pub csrf: &'a str,
    /// The value of the hidden field `token`.
    pub token: &'a str,
    /// The address to which the link was sent.
    pub email: &'a str,
    /// Whether the account is new or the terms have changed. If so, the terms are shown with the checkbox
    /// `accept_terms` (value `yes`, required) and the hidden field `terms_version`.
    pub needs_terms: bool,
    /// Whether the account is new.
    pub is_new: bool,
    /// Whether an operator attached applications to the address. If so, the form can stop mail (`stop`, `yes`).
    pub is_invited: bool,
    /// The problem with the form.
    pub problem: Option<FormProblem<'a>>,
}

/// The part that all pages for signed-in owners share.
#[derive(Clone, Copy, Debug)]
pub struct SignedIn<'a> {
    /// The value of the hidden field `csrf` of every form.
    pub csrf: &'a str,
    /// The account.
    pub owner: &'a StoredOwner,
    /// The current time.
    pub now: Wall,
}

/// The fields of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApplicationFields {
    /// The name of the application.
    pub name: String,
    /// The description of the application. Forms have only the columns that owners enter.
    pub description: Description,
}

/// The fields of a new key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyFields<'a> {
    /// The name of a key that is added.
    pub key_name: &'a str,
    /// The name of a key that replaces others.
    pub new_name: &'a str,
    /// When the replaced keys expire.
    pub overlap: &'a str,
}

/// An application in the list of an account.
#[derive(Clone, Debug)]
pub struct ListedApplication<'a> {
    /// The application.
    pub application: &'a StoredApplication,
    /// The usage of the application. `None` if the store did not return it.
    pub usage: Option<Vec<LimitStatus>>,
}

/// The page of an account.
#[derive(Clone, Copy, Debug)]
pub struct AccountView<'a> {
    /// The account.
    pub signed_in: SignedIn<'a>,
    /// The applications of the account.
    pub applications: &'a [ListedApplication<'a>],
    /// The kinds of notices that the owner gets.
    pub notices: &'a [MailKind],
    /// The webhooks of the account. `None` if this service does not support webhooks.
    pub webhooks: Option<&'a [StoredWebhook]>,
    /// The entered fields of a new application.
    pub entered: &'a ApplicationFields,
    /// The problem with a form.
    pub problem: Option<FormProblem<'a>>,
    /// A message about the last change.
    pub notice: Option<&'a str>,
}

/// The page of an application.
#[derive(Clone, Debug)]
pub struct OwnedApplicationView<'a> {
    /// The account.
    pub signed_in: SignedIn<'a>,
    /// The application.
    pub application: &'a StoredApplication,
    /// The current usage of the application. `None` if the store did not return it.
    pub usage: Option<Vec<LimitStatus>>,
    /// The application's requests in recent days. `None` if the store did not return them.
    pub requests: Option<&'a RequestList>,
    /// The days covered by `requests`.
    pub days: RequestQuery,
    /// The evidence of the application's usage in recent days, oldest first. `None` if the store did not return it.
    pub evidence: Option<&'a [(Day, DayEvidence)]>,
    /// The entered fields of the application.
    pub entered: &'a ApplicationFields,
    /// The entered fields of a new key.
    pub entered_keys: KeyFields<'a>,
    /// The problem with a form.
    pub problem: Option<FormProblem<'a>>,
    /// A message about the last change, such as "The key was revoked."
    pub notice: Option<&'a str>,
}

/// A new key, shown once.
#[derive(Clone, Copy, Debug)]
pub struct IssuedKeyView<'a> {
    /// The account.
    pub signed_in: SignedIn<'a>,
    /// The application.
    pub application: &'a StoredApplication,
    /// The key.
    pub key: &'a str,
    /// When the older keys expire, if there were any.
    pub others_end_at: Option<Wall>,
}

/// A message instead of a page.
#[derive(Clone, Copy, Debug)]
pub struct MessagePage<'a> {
    /// The heading of the page.
    pub title: &'a str,
    /// The paragraphs of the message.
    pub paragraphs: &'a [&'a str],
    /// A link: its path and its text.
    pub link: Option<(&'a str, &'a str)>,
}
