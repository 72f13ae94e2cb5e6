//! The paths of the site and their methods.

use http::Method;

use scoregate_base::keys::ApplicationId;

/// The prefix of all paths of the site.
const ACCOUNT: &str = "/account";

/// A page or a form of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SitePath {
    /// `/account`
    Account,
    /// `/account/`, which leads to `/account`
    AccountSlash,
    /// `/account/sign-in`
    SignIn,
    /// `/account/confirm`
    Confirm,
    /// `/account/sign-out`
    SignOut,
    /// `/account/notices`
    Notices,
    /// `/account/webhooks`
    Webhooks,
    /// `/account/delete`
    Delete,
    /// `/account/applications`
    Applications,
    /// `/account/applications/APP`
    Application(ApplicationId),
    /// `/account/applications/APP/keys`
    Keys(ApplicationId),
    /// `/account/applications/APP/rotate`
    Rotate(ApplicationId),
    /// `/account/applications/APP/keep`
    Keep(ApplicationId),
    /// `/account/applications/APP/revoke`
    Revoke(ApplicationId),
    /// `/account/applications/APP/close`
    Close(ApplicationId),
}

/// Whether a path is `/account` or below it.
pub(super) fn is_of_site(path: &str) -> bool {
    path.strip_prefix(ACCOUNT)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl SitePath {
    /// The page or form at exactly this path.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let rest = path.strip_prefix(ACCOUNT)?;
        if let Some(one) = rest.strip_prefix("/applications/") {
            let (id, form) = one
                .split_once('/')
                .map_or((one, None), |(id, form)| (id, Some(form)));
            let id = id.parse().ok()?;
            return match form {
                None => Some(Self::Application(id)),
                Some("keys") => Some(Self::Keys(id)),
                Some("rotate") => Some(Self::Rotate(id)),
                Some("keep") => Some(Self::Keep(id)),
                Some("revoke") => Some(Self::Revoke(id)),
                Some("close") => Some(Self::Close(id)),
                Some(_) => None,
            };
        }
        match rest {
            "" => Some(Self::Account),
            "/" => Some(Self::AccountSlash),
            "/sign-in" => Some(Self::SignIn),
            "/confirm" => Some(Self::Confirm),
            "/sign-out" => Some(Self::SignOut),
            "/notices" => Some(Self::Notices),
            "/webhooks" => Some(Self::Webhooks),
            "/delete" => Some(Self::Delete),
            "/applications" => Some(Self::Applications),
            _ => None,
        }
    }

    /// Whether its form changes an account, as opposed to signing in and out.
    pub(super) const fn changes_an_account(self) -> bool {
        match self {
            Self::Account | Self::AccountSlash | Self::SignIn | Self::Confirm | Self::SignOut => {
                false
            }
            Self::Notices
            | Self::Webhooks
            | Self::Delete
            | Self::Applications
            | Self::Application(_)
            | Self::Keys(_)
            | Self::Rotate(_)
            | Self::Keep(_)
            | Self::Revoke(_)
            | Self::Close(_) => true,
        }
    }

    /// The methods, as in an `Allow` header.
    pub(super) const fn methods(self) -> &'static str {
        match self {
            Self::Account | Self::AccountSlash => "GET, HEAD",
            Self::SignIn | Self::Confirm | Self::Application(_) => "GET, HEAD, POST",
            Self::SignOut
            | Self::Notices
            | Self::Webhooks
            | Self::Delete
            | Self::Applications
            | Self::Keys(_)
            | Self::Rotate(_)
            | Self::Keep(_)
            | Self::Revoke(_)
            | Self::Close(_) => "POST",
        }
    }

    /// Whether it accepts this method.
    pub(super) fn accepts(self, method: &Method) -> bool {
        self.methods()
            .split(", ")
            .any(|accepted| accepted == method.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_exactly() {
        let id = ApplicationId::mint().unwrap();
        for (path, parsed) in [
            ("/account".to_owned(), Some(SitePath::Account)),
            ("/account/".into(), Some(SitePath::AccountSlash)),
            ("/accounts".into(), None),
            ("/account/sign-in".into(), Some(SitePath::SignIn)),
            ("/account/sign-in/".into(), None),
            ("/account/Sign-in".into(), None),
            (
                format!("/account/applications/{id}"),
                Some(SitePath::Application(id)),
            ),
            (format!("/account/applications/{id}/"), None),
            (
                format!("/account/applications/{id}/rotate"),
                Some(SitePath::Rotate(id)),
            ),
            (format!("/account/applications/{id}/rotate/x"), None),
            ("/account/applications/app_1".into(), None),
            ("/account/applications/".into(), None),
        ] {
            assert_eq!(SitePath::parse(&path), parsed, "{path}");
            assert_eq!(is_of_site(&path), path != "/accounts", "{path}");
        }
        assert!(!is_of_site("/account%2f") && !is_of_site("/api/v1/account"));
    }

    #[test]
    fn methods_are_case_sensitive_words() {
        assert!(SitePath::SignIn.accepts(&Method::HEAD) && SitePath::SignIn.accepts(&Method::POST));
        assert!(
            !SitePath::Delete.accepts(&Method::GET) && !SitePath::Account.accepts(&Method::POST)
        );
        for odd in ["get", "POST, ", "GET, HEAD", ""] {
            assert!(
                Method::from_bytes(odd.as_bytes())
                    .map_or(true, |odd| !SitePath::SignIn.accepts(&odd)),
                "{odd}"
            );
        }
    }
}
