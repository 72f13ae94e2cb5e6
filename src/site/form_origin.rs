//! Protection against CSRF: checks by token and browser headers that a form was sent by a page of this site.
//!
//! The token of a form is derived from the secret in the cookie, so other sites cannot compute the token, and it is valid only
//! for that session.

use http::{HeaderMap, HeaderName, header::ORIGIN};
use subtle::ConstantTimeEq as _;

use scoregate_base::{address::is_own_origin, keys::Digest, secret::Secret};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The token of the forms that belong to a cookie.
pub fn form_token(cookie: &Secret) -> String {
    Digest::of(&format!("form {}", cookie.expose())).to_string()
}

/// Whether a form has the token of this cookie.
pub fn has_token(sent: &str, cookie: &Secret) -> bool {
    // The comparison takes constant time, so it does not reveal how much of a guess is correct.
    sent.as_bytes().ct_eq(form_token(cookie).as_bytes()).into()
}

/// Whether the browser reports that the navigation did not start on a page of this site. It may have started in an
/// email, for example.
pub fn is_followed_from_outside(headers: &HeaderMap) -> bool {
    headers
        .get(SEC_FETCH_SITE)
        .is_some_and(|site| site != "same-origin")
}

/// Whether the browser reports that another site sent the form. Programs other than browsers send neither `Origin` nor
/// `Sec-Fetch-Site`, so only their tokens are checked.
pub fn is_cross_site(headers: &HeaderMap, site_root: &str) -> bool {
    // After DNS rebinding, a browser reports pages under a foreign name as "same-origin".
    !headers.get_all(ORIGIN).iter().all(|origin| {
        let origin = origin.to_str();
        origin.is_ok_and(|origin| is_own_origin(origin, site_root, None))
    }) || is_followed_from_outside(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn crosses(fields: &[(&'static str, &'static str)]) -> bool {
        let headers = fields.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        is_cross_site(&headers.collect(), "https://api.example")
    }

    #[test]
    fn forms_of_other_sites_are_recognised_by_the_headers_of_the_browser() {
        for fields in [
            &[
                ("sec-fetch-site", "same-origin"),
                ("origin", "https://api.example"),
            ][..],
            &[("origin", "https://api.example"), ("host", "10.0.0.1:8080")],
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
            &[("origin", "http://evil.example"), ("host", "evil.example")],
            &[
                ("sec-fetch-site", "same-origin"),
                ("origin", "http://evil.example"),
                ("host", "evil.example"),
            ],
            &[("origin", "null"), ("host", "api.example")],
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
