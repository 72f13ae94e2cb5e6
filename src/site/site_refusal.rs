//! The reasons to refuse a request for an account page. Each reason has a status and a page that states the remedy.

use std::time::Duration;

use http::StatusCode;

use crate::pages::account::MessagePage;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteRefusal {
    /// The visitor is not signed in. The response redirects to the sign-in form.
    SignedOut,
    /// The connection is not encrypted.
    ClearText,
    /// Too many requests from one network.
    TooManyRequests,
    /// Too many links requested from one network.
    TooManyLinks,
    /// Too many links requested from all networks together.
    TooManyLinksInTotal,
    /// Too many new accounts with one mail domain from one network.
    TooManyAccounts {
        /// Time until the next account can be created.
        retry_after: Duration,
    },
    /// The page does not exist or belongs to another account.
    UnknownPage,
    /// The path accepts only these methods, listed as in an `Allow` header.
    Method(&'static str),
    /// The body is not a form.
    NotAForm,
    /// Trailer fields follow the form.
    Trailers,
    /// The form is too large.
    TooLarge,
    /// The form did not arrive in time.
    Slow,
    /// The form was sent by a page of another site.
    CrossSite,
    /// The form has no valid token.
    Token,
    /// The link was used, has expired or was never sent.
    InvalidLink,
    /// The account is suspended.
    Suspended,
    /// The account has reached its application limit.
    TooManyApplications,
    /// An application of the mailbox was closed today after it had used part of its quota. It counts until the end of
    /// the day.
    QuotaUsedToday,
    /// Too many concurrent requests.
    Busy,
    /// The store failed.
    Store,
    /// A bug.
    Internal,
}

/// The properties of a refusal.
#[derive(Clone, Copy, Debug)]
pub struct SiteRefusalRow {
    pub status: StatusCode,
    /// The name in the log.
    pub word: &'static str,
    /// `Retry-After` in seconds, if waiting helps.
    pub retry_after: Option<u64>,
    pub page: MessagePage<'static>,
}

/// The path of the sign-in form.
pub const SIGN_IN_PATH: &str = "/account/sign-in";
const SIGN_IN: Option<(&str, &str)> = Some((SIGN_IN_PATH, "Sign in"));
const ACCOUNT: Option<(&str, &str)> = Some(("/account", "Your account"));

const fn row(
    status: StatusCode,
    word: &'static str,
    title: &'static str,
    paragraphs: &'static [&'static str],
    link: Option<(&'static str, &'static str)>,
) -> SiteRefusalRow {
    SiteRefusalRow {
        status,
        word,
        retry_after: None,
        page: MessagePage {
            title,
            paragraphs,
            link,
        },
    }
}

const fn after(seconds: u64, row: SiteRefusalRow) -> SiteRefusalRow {
    SiteRefusalRow {
        retry_after: Some(seconds),
        ..row
    }
}

impl SiteRefusal {
    /// The properties of the refusal.
    #[rustfmt::skip]
    pub const fn row(self) -> SiteRefusalRow {
        match self {
            // There is no `_` arm, so a new refusal does not compile until it has a row.
            Self::SignedOut => row(StatusCode::SEE_OTHER, "signed_out", "Signed out", &["Sign in to see your account."], SIGN_IN),
            Self::ClearText => row(StatusCode::FORBIDDEN, "clear_text", "HTTPS is required",
                &["This page is available over HTTPS only, because it handles keys and email addresses. Open it with https://."], None),
            Self::TooManyRequests => after(60, row(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "Too many requests",
                &["Your network has sent too many requests. Try again in a minute."], None)),
            Self::TooManyLinks => after(600, row(StatusCode::TOO_MANY_REQUESTS, "too_many_links", "Too many links",
                &["Your network has requested too many links. Use a link that has already arrived, or try again in ten minutes."], None)),
            Self::TooManyLinksInTotal => after(60, row(StatusCode::SERVICE_UNAVAILABLE, "too_many_links_in_total", "Too many sign-ins",
                &["Too many sign-in links are being requested right now, so none was sent. Use a link that has already arrived, or try again in a minute."], None)),
            Self::TooManyAccounts { retry_after } => after(retry_after.as_secs() + 1, row(StatusCode::TOO_MANY_REQUESTS, "too_many_accounts", "Too many new accounts",
                &["Too many accounts with addresses at this mail domain were created from your network in the last 24 hours, so this one was not created. Try again in a few hours."], None)),
            Self::UnknownPage => row(StatusCode::NOT_FOUND, "unknown_page", "Page not found",
                &["There is no such page, or it belongs to another account."], ACCOUNT),
            Self::Method(_) => row(StatusCode::METHOD_NOT_ALLOWED, "method", "Method not allowed",
                &["This page does not accept that request method."], ACCOUNT),
            Self::NotAForm => row(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_a_form", "Form expected",
                &["This page accepts only forms (application/x-www-form-urlencoded)."], ACCOUNT),
            Self::Trailers => row(StatusCode::BAD_REQUEST, "trailers", "Form refused",
                &["The request has trailer fields, which no browser sends. Nothing was changed."], ACCOUNT),
            Self::TooLarge => row(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "Form too large",
                &["Forms are limited to 8 KiB. Shorten the text and send the form again."], ACCOUNT),
            Self::Slow => row(StatusCode::REQUEST_TIMEOUT, "slow", "Timeout",
                &["The form did not arrive in time. Send it again."], ACCOUNT),
            Self::CrossSite => row(StatusCode::FORBIDDEN, "cross_site", "Form refused",
                &["The form was sent from a page on another site. Nothing was changed."], ACCOUNT),
            Self::Token => row(StatusCode::FORBIDDEN, "token", "Form expired",
                &["The form does not belong to your current session, so nothing was changed. Open the page again and send the form again.",
                  "If that does not help, allow cookies for this site."], ACCOUNT),
            Self::InvalidLink => row(StatusCode::GONE, "invalid_link", "Link not valid",
                &["The link has been used, has expired, or is incomplete. A link works once and expires after 15 minutes. Request a new one."], SIGN_IN),
            Self::Suspended => row(StatusCode::FORBIDDEN, "suspended", "Account suspended",
                &["The operator of this service has suspended the account. Its keys do not work."], None),
            Self::TooManyApplications => row(StatusCode::CONFLICT, "too_many_applications", "Too many applications",
                &["The account has reached its application limit. Nothing was created."], ACCOUNT),
            Self::QuotaUsedToday => row(StatusCode::CONFLICT, "quota_used_today", "Try again tomorrow",
                &["An application under your email address was closed today after it had used part of its quota. Nothing was created.",
                  "You can create another application tomorrow, from 00:00 UTC."], ACCOUNT),
            Self::Busy => after(5, row(StatusCode::SERVICE_UNAVAILABLE, "busy", "Busy",
                &["The service is handling too many requests right now. Try again in a few seconds."], None)),
            Self::Store => after(60, row(StatusCode::SERVICE_UNAVAILABLE, "store", "Accounts unavailable",
                &["Accounts are temporarily unavailable. Try again in a minute. Keys continue to work."], None)),
            Self::Internal => row(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error",
                &["The request failed because of an error in the service."], None),
        }
    }
}
