//! Access to the side port. Over TCP every request must name an accepted host. All requests except metrics and health
//! require the token, and must not have an `Origin` header, which only browsers send. File permissions control access
//! to the Unix socket.

use http::{
    StatusCode, Uri,
    header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN},
};
use subtle::ConstantTimeEq as _;

use scoregate_base::{address::is_own_host, keys::Digest, secret::SecretSetting};

use super::command_problem::{CommandProblem, CommandResult};

/// Access rules of a connection to the side port.
#[derive(Clone, Debug)]
pub enum AdminAccess {
    /// The Unix socket, which only its owner can open.
    Socket {
        /// The user ID of the client, if the kernel reports one.
        uid: Option<u32>,
    },
    /// A TCP connection.
    Tcp {
        /// The token. If it is not set, only metrics and health are served.
        token: Option<SecretSetting>,
        /// Accepted host names in addition to IP addresses and `localhost`.
        hosts: Vec<String>,
    },
}

/// The error for a token that is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a token must have at least {} characters",
    AdminAccess::MIN_TOKEN_LENGTH
)]
pub struct BadToken;

impl AdminAccess {
    /// Minimum length of the token.
    pub const MIN_TOKEN_LENGTH: usize = 16;

    /// Access over TCP. Rejects a token that is too short.
    pub fn over_tcp(token: Option<SecretSetting>, hosts: Vec<String>) -> Result<Self, BadToken> {
        match &token {
            Some(secret) if secret.current().expose().len() < Self::MIN_TOKEN_LENGTH => {
                Err(BadToken)
            }
            Some(_) | None => Ok(Self::Tcp { token, hosts }),
        }
    }

    /// Refuses a request for any path if the host is not accepted. With DNS rebinding, browsers send another host name.
    /// A request without a host does not come from a browser.
    pub(super) fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> CommandResult<()> {
        let Self::Tcp { hosts, .. } = self else {
            return Ok(());
        };
        let named = headers.get_all(HOST).iter().map(HeaderValue::as_bytes);
        let named = named.chain(
            uri.authority()
                .map(|authority| authority.as_str().as_bytes()),
        );
        for host in named {
            if !std::str::from_utf8(host).is_ok_and(|host| is_own_host(host, hosts)) {
                return Err(CommandProblem::new(
                    StatusCode::MISDIRECTED_REQUEST,
                    "this host name is not accepted: use an IP address or localhost, or list the name in `admin.hosts`",
                ));
            }
        }
        Ok(())
    }

    /// Checks a request that requires the token.
    pub(super) fn check(&self, headers: &HeaderMap) -> CommandResult<()> {
        let Self::Tcp { token, .. } = self else {
            return Ok(());
        };
        if headers.contains_key(ORIGIN) {
            return Err(CommandProblem::forbidden(
                "requests from browsers are refused: the side port accepts no Origin header",
            ));
        }
        let Some(expected) = token else {
            return Err(CommandProblem::forbidden(
                "admin.token is not set: set it, or use the Unix socket",
            ));
        };
        let mut sent = headers.get_all(AUTHORIZATION).iter();
        let first = sent.next();
        let second = sent.next();
        if second.is_some() {
            return Err(CommandProblem::bad(
                "the request has several Authorization headers: send one",
            ));
        }
        // Digests are compared in constant time, so that timing reveals neither the content nor the length of the
        // token.
        let sent = Digest::of(first.and_then(bearer).unwrap_or(""));
        let expected = expected.current();
        let is_usable = expected.expose().len() >= Self::MIN_TOKEN_LENGTH;
        let expected = Digest::of(expected.expose());
        if is_usable && bool::from(sent.as_bytes().ct_eq(expected.as_bytes())) {
            Ok(())
        } else {
            let error = "send the admin token as `Authorization: Bearer TOKEN`";
            Err(CommandProblem::new(StatusCode::UNAUTHORIZED, error))
        }
    }
}

/// The token of an `Authorization` header. Schemes are case-insensitive (RFC 9110, 11.1).
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_start_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::secret::Secret;

    fn token(text: &str) -> SecretSetting {
        SecretSetting::fixed(Secret::new(text.into()))
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .fold(HeaderMap::new(), |mut headers, (name, value)| {
                headers.append(*name, HeaderValue::from_static(value));
                headers
            })
    }

    #[test]
    fn the_token_is_required_and_browsers_are_refused() {
        let access = AdminAccess::over_tcp(Some(token("0123456789abcdef")), Vec::new()).unwrap();
        let good = ("authorization", "Bearer 0123456789abcdef");
        for (scheme, is_accepted) in [
            ("Bearer 0123456789abcdef", true),
            ("bearer 0123456789abcdef", true),
            ("BEARER   0123456789abcdef", true),
            ("Bearer0123456789abcdef", false),
            ("Basic 0123456789abcdef", false),
            ("Bearer 0123456789abcdef 0123456789abcdef", false),
        ] {
            let checked = access.check(&headers(&[("authorization", scheme)]));
            assert_eq!(checked.is_ok(), is_accepted, "{scheme}");
        }
        for refused in [
            &[("host", "localhost")][..],
            &[
                ("host", "localhost"),
                ("authorization", "Bearer 0123456789abcdeF"),
            ],
            &[("host", "localhost"), ("authorization", "0123456789abcdef")],
            &[("host", "localhost"), good, good],
            &[
                ("host", "localhost"),
                ("origin", "http://localhost:9464"),
                good,
            ],
        ] {
            assert!(access.check(&headers(refused)).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn tcp_is_refused_without_a_token_and_a_short_token_is_rejected() {
        let closed = AdminAccess::over_tcp(None, Vec::new()).unwrap();
        assert!(
            closed
                .check(&headers(&[
                    ("host", "localhost"),
                    ("authorization", "Bearer ")
                ]))
                .is_err()
        );
        assert!(AdminAccess::over_tcp(Some(token("short")), Vec::new()).is_err());
    }

    #[test]
    fn an_empty_token_matches_nothing() {
        let access = AdminAccess::Tcp {
            token: Some(token("")),
            hosts: Vec::new(),
        };
        for sent in [
            &[][..],
            &[("authorization", "Bearer ")],
            &[("authorization", "Bearer")],
        ] {
            assert!(access.check(&headers(sent)).is_err(), "{sent:?}");
        }
    }
}
