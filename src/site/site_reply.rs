//! The responses of the site. Only this file writes their headers.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{
        ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_DISPOSITION, CONTENT_LENGTH,
        CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION, REFERRER_POLICY, RETRY_AFTER,
        SET_COOKIE, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
    },
};
use http_body_util::Full;

use super::site_refusal::{SIGN_IN_PATH, SiteRefusal};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// The outcome of a request or of one of its steps: a value or a refusal.
pub type SiteResult<T = SiteReply> = Result<T, SiteRefusal>;

/// A response before its common headers.
#[derive(Debug, Default)]
pub struct SiteReply {
    status: StatusCode,
    html: String,
    location: Option<String>,
    cookies: Vec<HeaderValue>,
    /// `Content-Disposition` of a CSV file, if the body is not a page.
    file: Option<HeaderValue>,
    has_script: bool,
}

impl SiteReply {
    pub fn page(html: String) -> Self {
        Self {
            html,
            ..Self::default()
        }
    }

    pub fn page_with_script(html: String) -> Self {
        Self {
            html,
            has_script: true,
            ..Self::default()
        }
    }

    /// A CSV file.
    pub fn file(name: &str, csv: String) -> Self {
        Self {
            html: csv,
            file: HeaderValue::try_from(format!("attachment; filename=\"{name}\"")).ok(),
            ..Self::default()
        }
    }

    /// Whether the reply is a page with a script.
    pub const fn has_script(&self) -> bool {
        self.has_script
    }

    /// A page with a problem that the visitor can correct.
    pub fn problem(html: String) -> Self {
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            html,
            ..Self::default()
        }
    }

    /// A page that requires another step first.
    pub fn forbidden(html: String) -> Self {
        Self {
            status: StatusCode::FORBIDDEN,
            html,
            ..Self::default()
        }
    }

    /// A redirect to a page of the site, which is read with GET.
    pub fn redirect(path: impl Into<String>) -> Self {
        Self {
            status: StatusCode::SEE_OTHER,
            location: Some(path.into()),
            ..Self::default()
        }
    }

    /// A permanent redirect to the canonical path of a page.
    pub fn moved(path: &str) -> Self {
        Self {
            status: StatusCode::PERMANENT_REDIRECT,
            location: Some(path.into()),
            ..Self::default()
        }
    }

    /// A page with a form, which may show a problem that the visitor can correct.
    pub fn form(html: String, has_problem: bool) -> Self {
        if has_problem {
            Self::problem(html)
        } else {
            Self::page(html)
        }
    }

    /// Adds a cookie, if there is one.
    pub fn with_cookie(mut self, cookie: impl Into<Option<HeaderValue>>) -> Self {
        self.cookies.extend(cookie.into());
        self
    }
}

/// The properties that every response of the site has.
#[derive(Clone, Debug)]
pub struct ResponseStyle {
    /// The id of the request, for the logs.
    pub request_id: String,
    /// Whether only the head is sent.
    pub is_head: bool,
    /// `Content-Security-Policy`.
    pub policy: HeaderValue,
    /// Whether clients use HTTPS.
    pub is_https: bool,
    /// Whether the connection is closed after the response, so that leftover body bytes are not parsed as a request.
    pub closes: bool,
}

/// The response to a request. `page` renders the page for a refusal.
pub fn response(
    answered: SiteResult,
    style: &ResponseStyle,
    page: impl Fn(SiteRefusal) -> String,
) -> Response<Full<Bytes>> {
    let mut headers = common_headers(style);
    // The header is not sent in clear text (RFC 6797, section 7.2).
    if style.is_https && !matches!(answered, Err(SiteRefusal::ClearText)) {
        headers.insert(
            STRICT_TRANSPORT_SECURITY,
            HeaderValue::from_static("max-age=31536000"),
        );
    }
    if let Err(refusal) = &answered {
        if let SiteRefusal::Method(accepted) = refusal {
            headers.insert(ALLOW, HeaderValue::from_static(accepted));
        }
        if let Some(seconds) = refusal.row().retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
    }
    let reply = answered.unwrap_or_else(|refusal| {
        if refusal == SiteRefusal::SignedOut {
            return SiteReply::redirect(SIGN_IN_PATH);
        }
        SiteReply {
            status: refusal.row().status,
            html: page(refusal),
            ..SiteReply::default()
        }
    });
    if let Some(location) = reply.location {
        headers.insert(
            LOCATION,
            HeaderValue::try_from(location).expect("paths of the site are visible ASCII"),
        );
    }
    add_file(&mut headers, reply.file);
    for cookie in reply.cookies {
        headers.append(SET_COOKIE, cookie);
    }
    headers.insert(CONTENT_LENGTH, reply.html.len().into());
    let body = if style.is_head {
        Bytes::new()
    } else {
        Bytes::from(reply.html)
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = reply.status;
    *response.headers_mut() = headers;
    response
}

/// Replaces the headers of a page with the headers of a file.
fn add_file(headers: &mut HeaderMap, disposition: Option<HeaderValue>) {
    if let Some(disposition) = disposition {
        headers.insert(CONTENT_DISPOSITION, disposition);
        let csv = HeaderValue::from_static("text/csv; charset=utf-8");
        headers.insert(CONTENT_TYPE, csv);
    }
}

/// The headers of all responses.
fn common_headers(style: &ResponseStyle) -> HeaderMap {
    let fixed = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        // These pages contain keys and addresses.
        (CACHE_CONTROL, "no-store"),
        // The URL of a page can contain the token of a link. With `no-referrer`, browsers would also hide the origin of
        // forms.
        (REFERRER_POLICY, "strict-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (OPENER_POLICY, "same-origin"),
    ];
    let mut headers: HeaderMap = fixed
        .into_iter()
        .map(|(name, text)| (name, HeaderValue::from_static(text)))
        .collect();
    headers.insert(CONTENT_SECURITY_POLICY, style.policy.clone());
    if style.closes {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let Ok(id) = HeaderValue::try_from(&style.request_id) {
        headers.insert(REQUEST_ID, id);
    }
    headers
}
