//! Contents of the pages of an account: collected in `site`, rendered by the other files of this module. Data only.

use scoregate_base::clock::{Day, Wall};
use scoregate_base::evidence::DayEvidence;
use scoregate_base::limits::LimitStatus;
use scoregate_store::{
    Description, MailKind, RequestList, RequestQuery, StoredApplication, StoredOwner, StoredWebhook,
};

/// A problem with a form, shown above it and at its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormProblem<'a> {
    /// The field's name, if it is about one field.
    pub field: Option<&'static str>,
    /// The mistake and how to correct it.
    pub message: &'a str,
}

/// The form for an email address.
#[derive(Clone, Copy, Debug)]
pub struct SignInForm<'a> {
    /// The value of the hidden field `csrf`.
    pub csrf: &'a str,
    /// The entered address.
    pub email: &'a str,
    /// The problem with it.
    pub problem: Option<FormProblem<'a>>,
    /// A message about the last step, such as "You are signed out."
    pub notice: Option<&'a str>,
}

/// The page that an email link leads to: its button uses the link.
#[derive(Clone, Copy, Debug)]
pub struct LinkForm<'a> {
    /// The value of the hidden field `csrf`.
    pub csrf: &'a str,
    /// The value of the hidden field `token`.
    pub token: &'a str,
    /// The address that the link was sent to.
    pub email: &'a str,
    /// Whether the account is new or the terms have changed: then they are shown with the checkbox `accept_terms` (value
    /// `yes`, required) and the hidden field `terms_version`.
    pub needs_terms: bool,
    /// Whether the account is new.
    pub is_new: bool,
    /// Whether an operator attached applications to the address: it can stop mail (`stop`, `yes`).
    pub is_invited: bool,
    /// The problem with the form.
    pub problem: Option<FormProblem<'a>>,
}

/// The part that all pages after signing in share.
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
    /// Its name.
    pub name: String,
    /// Its description. Forms have only the columns that owners enter.
    pub description: Description,
}

/// The fields of a new key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyFields<'a> {
    /// The name of a key that is added.
    pub key_name: &'a str,
    /// The name of a key that replaces others.
    pub new_name: &'a str,
    /// When the others expire.
    pub overlap: &'a str,
}

/// An application in the list of an account.
#[derive(Clone, Debug)]
pub struct ListedApplication<'a> {
    /// The application.
    pub application: &'a StoredApplication,
    /// Its use; `None` if the store did not return it.
    pub usage: Option<Vec<LimitStatus>>,
}

/// The page of an account.
#[derive(Clone, Copy, Debug)]
pub struct AccountView<'a> {
    /// The account.
    pub signed_in: SignedIn<'a>,
    /// Its applications.
    pub applications: &'a [ListedApplication<'a>],
    /// The kinds of notices that the owner gets.
    pub notices: &'a [MailKind],
    /// The webhooks; `None` if there are none on this service.
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
    /// Its use at present; `None` if the store did not return it.
    pub usage: Option<Vec<LimitStatus>>,
    /// Its requests of the last days; `None` if the store did not return them.
    pub requests: Option<&'a RequestList>,
    /// The days of the requests.
    pub days: RequestQuery,
    /// The evidence of its use in the last days, oldest first; `None` if the store did not return it.
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
    /// Its heading.
    pub title: &'a str,
    /// Its paragraphs.
    pub paragraphs: &'a [&'a str],
    /// A link: its path and its text.
    pub link: Option<(&'a str, &'a str)>,
}
