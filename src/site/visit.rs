//! A request to the site whose form has been read, and its session.

use std::{net::IpAddr, sync::Arc, time::Duration};

use http::HeaderMap;

use crate::registry::RegistrarError;
use scoregate_base::{
    clock::Now,
    keys::{ApplicationId, Digest, OwnerId},
    secret::Secret,
};
use scoregate_store::{OwnerRefusal, OwnerSession, Store, StoreError};

use super::{
    cookies::{CookieNames, SiteCookie},
    form::Form,
    form_origin::{form_token, has_token, is_followed_from_outside},
    site_config::SiteConfig,
    site_refusal::SiteRefusal,
    site_reply::SiteResult,
};

/// Maximum age of a sign-in for irreversible steps.
const RECENT: Duration = Duration::from_mins(15);

/// A request with its parsed parts.
pub struct Visit {
    pub config: Arc<SiteConfig>,
    pub headers: HeaderMap,
    pub query: Form,
    /// The application in the path.
    pub application: Option<ApplicationId>,
    /// Empty for requests that only read.
    pub form: Form,
    pub client: IpAddr,
    pub now: Now,
}

/// A session, with the token of its cookie.
pub struct LiveSession {
    pub token: Secret,
    pub session: OwnerSession,
    /// The token of the session's forms.
    pub csrf: String,
}

impl Visit {
    /// The application in the path. Returns an error if there is none.
    pub fn application(&self) -> SiteResult<ApplicationId> {
        self.application.ok_or(SiteRefusal::UnknownPage)
    }

    pub fn cookies(&self) -> CookieNames {
        CookieNames {
            is_https: self.config.is_https(),
        }
    }

    /// The step named in the redirect after a form. Empty if the navigation started on another site, because a crafted
    /// link could name any step.
    pub fn finished_step(&self) -> &str {
        if is_followed_from_outside(&self.headers) {
            ""
        } else {
            self.query.field("done")
        }
    }

    /// The value of a cookie.
    pub fn cookie(&self, cookie: SiteCookie) -> Option<Secret> {
        self.cookies().read(&self.headers, cookie)
    }

    /// The session of the request, if it has not ended.
    pub async fn session(&self, store: &Store) -> SiteResult<Option<LiveSession>> {
        let Some(token) = self.cookie(SiteCookie::Session) else {
            return Ok(None);
        };
        let found = store
            .session(Digest::of(token.expose()), self.now.wall)
            .await?;
        Ok(found.map(|session| LiveSession {
            csrf: form_token(&token),
            token,
            session,
        }))
    }

    /// The session of the request. Returns an error if the visitor is not signed in.
    pub async fn signed_in(&self, store: &Store) -> SiteResult<LiveSession> {
        self.session(store).await?.ok_or(SiteRefusal::SignedOut)
    }

    /// The session of the request, if the submitted form belongs to it.
    pub async fn signed_in_by_form(&self, store: &Store) -> SiteResult<LiveSession> {
        let live = self.signed_in(store).await?;
        self.form_belongs_to(&[SiteCookie::Session])?;
        Ok(live)
    }

    /// Checks that the submitted form has the token of one of these cookies of the request.
    pub fn form_belongs_to(&self, cookies: &[SiteCookie]) -> SiteResult<()> {
        let sent = self.form.field("csrf");
        let belongs = cookies
            .iter()
            .filter_map(|cookie| self.cookie(*cookie))
            .any(|value| has_token(sent, &value));
        if belongs {
            Ok(())
        } else {
            Err(SiteRefusal::Token)
        }
    }
}

impl LiveSession {
    /// Whether the visitor signed in recently enough for an irreversible step.
    pub fn is_recent(&self, now: Now) -> bool {
        // After a backward step of the clock, no session is recent.
        let begun = self.session.created_at;
        (begun..begun.plus(RECENT)).contains(&now.wall)
    }

    /// The owner, who makes the changes.
    pub const fn owner(&self) -> OwnerId {
        self.session.owner.id
    }
}

impl From<StoreError> for SiteRefusal {
    /// Logs a failure of the store.
    fn from(error: StoreError) -> Self {
        store_failed(&error)
    }
}

fn store_failed(error: &StoreError) -> SiteRefusal {
    tracing::error!(%error, "an account could not be read or changed");
    SiteRefusal::Store
}

/// Logs that no secret can be created.
pub fn no_randomness(error: getrandom::Error) -> SiteRefusal {
    tracing::error!(%error, "no secret can be created; the operating system returned no random bytes");
    SiteRefusal::Internal
}

/// Maps the error of a failed change to a refusal. If an object is unknown, it has been removed since the page was
/// loaded.
pub fn change_failed(error: &RegistrarError) -> SiteRefusal {
    match error {
        RegistrarError::Store(StoreError::Owner(OwnerRefusal::Suspended(_))) => {
            SiteRefusal::Suspended
        }
        RegistrarError::Store(StoreError::Owner(OwnerRefusal::TooManyApplications(_))) => {
            SiteRefusal::TooManyApplications
        }
        RegistrarError::Store(StoreError::Owner(OwnerRefusal::QuotaUsedToday(_))) => {
            SiteRefusal::QuotaUsedToday
        }
        RegistrarError::Store(
            StoreError::UnknownApplication(_)
            | StoreError::UnknownKey(_)
            | StoreError::Owner(OwnerRefusal::Unknown(_) | OwnerRefusal::HasApplications(_)),
        ) => SiteRefusal::UnknownPage,
        RegistrarError::Store(error) => store_failed(error),
        RegistrarError::UnknownTier { .. }
        | RegistrarError::BadText(_)
        | RegistrarError::BadLimit(_)
        | RegistrarError::BadExpiry
        | RegistrarError::BadUntil
        | RegistrarError::NoInvitations
        | RegistrarError::NoneInForce(_)
        | RegistrarError::SeveralInForce(..)
        | RegistrarError::NoSuchKey { .. }
        | RegistrarError::NoRandomness(_) => {
            tracing::error!(%error, "an account could not be changed");
            SiteRefusal::Internal
        }
    }
}
