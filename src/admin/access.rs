//! Who may use the side port for more than metrics and health: the token always over TCP; over the Unix socket, whom
//! the file system lets in. A browser is never let in: a foreign `Host` or any `Origin` is refused, token or not.

use http::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use subtle::ConstantTimeEq as _;

use crate::keys::Digest;
use crate::secret::Secret;

use super::command::Problem;

/// The shortest token that is taken.
const SHORTEST_TOKEN: usize = 16;

/// How a connection of the side port was made, and what it must show.
#[derive(Clone, Debug)]
pub enum Access {
    /// Over the Unix socket, which only its owner can open.
    Socket {
        /// The user ID of the client, if the kernel reports one.
        uid: Option<u32>,
    },
    /// Over TCP, with this token; with none configured nobody gets further than metrics and health.
    Token(Option<Secret>),
}

/// The token is too short to keep anybody out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token needs at least {SHORTEST_TOKEN} characters")]
pub struct BadToken;

impl Access {
    /// Access over TCP with this token.
    pub fn with_token(token: Option<Secret>) -> Result<Self, BadToken> {
        match &token {
            Some(secret) if secret.expose().len() < SHORTEST_TOKEN => Err(BadToken),
            Some(_) | None => Ok(Self::Token(token)),
        }
    }

    /// Lets a request through, or says why not.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let expected = match self {
            Self::Socket { .. } => return Ok(()),
            Self::Token(expected) => expected,
        };
        if headers.contains_key(ORIGIN) || !headers.get(HOST).is_some_and(|host| is_own_host(host.as_bytes()))
        {
            return Err(Problem::forbidden(
                "requests of browsers, and for other hosts than an address or localhost, are refused here",
            ));
        }
        let Some(expected) = expected else {
            return Err(Problem::forbidden("no admin.token is configured: use the Unix socket, or set one"));
        };
        let sent = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        // Digests are compared, so that neither content nor length shows in the time it takes.
        let (sent, expected) = (Digest::of(sent.unwrap_or("")), Digest::of(expected.expose()));
        if bool::from(sent.as_bytes().ct_eq(expected.as_bytes())) {
            Ok(())
        } else {
            Err(Problem::unauthorized())
        }
    }
}

/// An address or `localhost`, with any port: a name that somebody else's DNS could point here is not.
fn is_own_host(host: &[u8]) -> bool {
    let text = std::str::from_utf8(host).unwrap_or("");
    let name = match text.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => text,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || bare.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn only_the_token_opens_and_never_for_a_browser() {
        let access = Access::with_token(Some(Secret::new("0123456789abcdef".into()))).unwrap();
        let good = ("authorization", "Bearer 0123456789abcdef");
        for host in ["127.0.0.1:9464", "localhost", "localhost:9464", "[::1]:9464", "[::1]"] {
            assert!(access.check(&headers(&[("host", host), good])).is_ok(), "{host}");
        }
        for refused in [
            &[("host", "localhost")][..],
            &[("host", "localhost"), ("authorization", "Bearer 0123456789abcdeF")],
            &[("host", "localhost"), ("authorization", "0123456789abcdef")],
            &[("host", "evil.example"), good],
            &[("host", "localhost"), ("origin", "http://localhost:9464"), good],
            &[good],
        ] {
            assert!(access.check(&headers(refused)).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn without_a_token_nobody_gets_in_over_tcp_and_a_short_one_is_refused() {
        let closed = Access::with_token(None).unwrap();
        assert!(closed.check(&headers(&[("host", "localhost"), ("authorization", "Bearer ")])).is_err());
        assert!(Access::with_token(Some(Secret::new("short".into()))).is_err());
    }
}
