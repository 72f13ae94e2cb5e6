//! Whether a form was sent by a page of this site (CSRF): by its token and by the headers of the browser.
//!
//! A form's token is derived from the secret of the cookie that it belongs to, so another site cannot know it, and it is
//! valid for that session only.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, Uri};
use subtle::ConstantTimeEq as _;

use scoregate_base::keys::Digest;
use scoregate_base::secret::Secret;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The token of the forms that belong to a cookie.
pub(super) fn form_token(cookie: &Secret) -> String {
    Digest::of(&format!("form {}", cookie.expose())).to_string()
}

/// Whether a form has the token of this cookie.
pub(super) fn has_token(sent: &str, cookie: &Secret) -> bool {
    sent.as_bytes().ct_eq(form_token(cookie).as_bytes()).into()
}

/// Whether the browser reports that the navigation did not start on a page of this site, but for example in a mail.
pub(super) fn is_followed_from_outside(headers: &HeaderMap) -> bool {
    headers
        .get(SEC_FETCH_SITE)
        .is_some_and(|site| site != "same-origin")
}

/// Whether the browser says that another site sent the form. Programs that are no browsers send neither header; for them
/// the token decides alone.
pub(super) fn is_cross_site(uri: &Uri, headers: &HeaderMap, site_origin: &str) -> bool {
    if let Some(site) = headers.get(SEC_FETCH_SITE) {
        return site != "same-origin";
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return false;
    };
    let Ok(origin) = origin.to_str() else {
        return true;
    };
    let host = uri.authority().map(http::uri::Authority::as_str);
    let host = host.or_else(|| headers.get(HOST)?.to_str().ok());
    let is_same_host = origin
        .split_once("://")
        .is_some_and(|(_, authority)| Some(authority) == host);
    origin != site_origin && !is_same_host
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crosses(fields: &[(&'static str, &'static str)]) -> bool {
        let headers = fields.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                http::HeaderValue::from_static(value),
            )
        });
        is_cross_site(
            &Uri::from_static("/account"),
            &headers.collect(),
            "https://api.example",
        )
    }

    #[test]
    fn forms_of_other_sites_are_recognised_by_the_headers_of_the_browser() {
        for fields in [
            &[
                ("sec-fetch-site", "same-origin"),
                ("origin", "https://api.example"),
            ][..],
            &[("origin", "https://api.example"), ("host", "10.0.0.1:8080")],
            &[
                ("origin", "http://localhost:8080"),
                ("host", "localhost:8080"),
            ],
            &[("host", "api.example")],
        ] {
            assert!(!crosses(fields), "{fields:?}");
        }
        for fields in [
            &[("sec-fetch-site", "cross-site")][..],
            &[
                ("sec-fetch-site", "same-site"),
                ("origin", "https://api.example"),
            ],
            &[("sec-fetch-site", "none")],
            &[("origin", "https://evil.example"), ("host", "api.example")],
            &[
                ("origin", "https://api.example.evil.example"),
                ("host", "api.example"),
            ],
            &[("origin", "null"), ("host", "api.example")],
            &[("origin", "http://api.example:81"), ("host", "api.example")],
        ] {
            assert!(crosses(fields), "{fields:?}");
        }
    }

    #[test]
    fn a_token_belongs_to_one_cookie() {
        let [one, two] = ["one", "two"].map(|text| Secret::new(text.into()));
        assert!(has_token(&form_token(&one), &one));
        for wrong in [
            form_token(&two),
            String::new(),
            "one".into(),
            form_token(&one).to_uppercase(),
        ] {
            assert!(!has_token(&wrong, &one), "{wrong}");
        }
    }
}
