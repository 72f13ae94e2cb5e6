//! The two cookies of the site: the visitor cookie, which binds forms to a browser, and the session cookie.
//!
//! Their values are random and secret. Over HTTPS their names begin with `__Host-`, so that no other host can set them.
//! Without TLS, which is possible only on loopback, browsers would reject such names.

use http::{HeaderMap, HeaderValue, header::COOKIE};

use scoregate_base::secret::Secret;

/// Length of a token: 256 bits in base64url.
const TOKEN: usize = 43;
/// The lifetime of a session.
pub const SESSION_HOURS: u64 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteCookie {
    /// Binds forms to a browser before the visitor signs in.
    Visitor,
    /// A session.
    Session,
}

/// Reads and writes the cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieNames {
    /// Whether clients use HTTPS.
    pub is_https: bool,
}

impl CookieNames {
    const fn name(self, cookie: SiteCookie) -> &'static str {
        match (cookie, self.is_https) {
            (SiteCookie::Visitor, true) => "__Host-scoregate-visitor",
            (SiteCookie::Visitor, false) => "scoregate-visitor",
            (SiteCookie::Session, true) => "__Host-scoregate-session",
            (SiteCookie::Session, false) => "scoregate-session",
        }
    }

    /// The value of a cookie, if the cookie is sent exactly once and its value has the form of a token.
    pub fn read(self, headers: &HeaderMap, cookie: SiteCookie) -> Option<Secret> {
        let name = self.name(cookie);
        let lines = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|line| line.to_str().ok());
        let pairs = lines
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let mut values = pairs
            .filter(|(sent, _)| *sent == name)
            .map(|(_, value)| value);
        match (values.next(), values.next()) {
            (Some(value), None) if is_token(value) => Some(Secret::new(value.to_owned())),
            _ => None,
        }
    }

    /// The `Set-Cookie` header that sets a cookie.
    pub fn set(self, cookie: SiteCookie, value: &Secret) -> HeaderValue {
        let name = self.name(cookie);
        let value = value.expose();
        let age = match cookie {
            SiteCookie::Visitor => String::new(),
            SiteCookie::Session => format!("; Max-Age={}", SESSION_HOURS * 3_600),
        };
        self.header(&format!("{name}={value}{age}"))
    }

    /// The `Set-Cookie` header that deletes a cookie.
    pub fn delete(self, cookie: SiteCookie) -> HeaderValue {
        self.header(&format!("{}=; Max-Age=0", self.name(cookie)))
    }

    fn header(self, pair: &str) -> HeaderValue {
        let secure = if self.is_https { "; Secure" } else { "" };
        let text = format!("{pair}; Path=/; HttpOnly; SameSite=Lax{secure}");
        let mut value = HeaderValue::try_from(text).expect("names and tokens are visible ASCII");
        // Keeps the value out of the compression tables of HTTP/2 and out of debug output.
        value.set_sensitive(true);
        value
    }
}

/// Whether a string has the form of a token.
pub fn is_token(text: &str) -> bool {
    text.len() == TOKEN
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTPS: CookieNames = CookieNames { is_https: true };

    fn read(lines: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(COOKIE, line.parse().unwrap());
        }
        HTTPS
            .read(&headers, SiteCookie::Session)
            .map(|value| value.expose().to_owned())
    }

    #[test]
    fn a_cookie_over_https_is_bound_to_the_host_and_hidden_from_scripts() {
        let token = Secret::mint().unwrap();
        let session = HTTPS.set(SiteCookie::Session, &token);
        let text = session.to_str().unwrap();
        assert_eq!(
            text,
            format!(
                "__Host-scoregate-session={}; Max-Age=43200; Path=/; HttpOnly; SameSite=Lax; Secure",
                token.expose()
            )
        );
        assert!(session.is_sensitive() && is_token(token.expose()));
        let deleted = HTTPS.delete(SiteCookie::Session);
        assert!(
            deleted
                .to_str()
                .unwrap()
                .starts_with("__Host-scoregate-session=; Max-Age=0; Path=/;")
        );
        let plain = CookieNames { is_https: false }.set(SiteCookie::Visitor, &token);
        assert!(
            plain.to_str().unwrap().starts_with("scoregate-visitor=")
                && !plain.to_str().unwrap().contains("Secure")
        );
    }

    #[test]
    fn a_cookie_that_is_sent_twice_or_is_no_token_is_not_read() {
        let one = Secret::mint().unwrap();
        let two = Secret::mint().unwrap();
        let pair = |token: &Secret| format!("__Host-scoregate-session={}", token.expose());
        assert_eq!(
            read(&[&format!("a=b; {}; c", pair(&one))]).as_deref(),
            Some(one.expose())
        );
        assert_eq!(read(&["a=b", &pair(&one)]).as_deref(), Some(one.expose()));
        assert_eq!(read(&[&pair(&one), &pair(&two)]), None);
        assert_eq!(read(&[&format!("{}; {}", pair(&one), pair(&one))]), None);
        assert_eq!(read(&[&format!("{}x", pair(&one))]), None);
        assert_eq!(read(&[&pair(&one).replace("__Host-", "")]), None);
        assert_eq!(read(&[]), None);
    }
}
