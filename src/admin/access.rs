//! Access to the side port. Over TCP every request has to name a host of ours, and all but metrics and health needs the
//! token; an `Origin`, which only browsers send, is refused with it. The Unix socket is open to whom the file system
//! lets in.

use std::net::IpAddr;

use http::Uri;
use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, ORIGIN};
use subtle::ConstantTimeEq as _;

use crate::keys::Digest;
use crate::secret::Secret;

use super::command::CommandProblem;

/// The shortest token that is taken.
const SHORTEST_TOKEN: usize = 16;

/// How a connection of the side port was made, and what it must show.
#[derive(Clone, Debug)]
pub enum AdminAccess {
    /// Over the Unix socket, which only its owner can open.
    Socket {
        /// The user ID of the client, if the kernel reports one.
        uid: Option<u32>,
    },
    /// Over TCP.
    Tcp {
        /// The token. With none configured nobody gets further than metrics and health.
        token: Option<Secret>,
        /// Host names that are served besides IP addresses and `localhost`.
        hosts: Vec<String>,
    },
}

/// The token is too short to keep anybody out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token must have at least {SHORTEST_TOKEN} characters")]
pub struct BadToken;

impl AdminAccess {
    /// Access over TCP with this token and under these host names.
    pub fn over_tcp(token: Option<Secret>, hosts: Vec<String>) -> Result<Self, BadToken> {
        match &token {
            Some(secret) if secret.expose().len() < SHORTEST_TOKEN => Err(BadToken),
            Some(_) | None => Ok(Self::Tcp { token, hosts }),
        }
    }

    /// Refuses a request for a host that is not ours, whatever it asks for: a browser that somebody else's DNS leads here
    /// says that name. A request that names no host is not from a browser.
    pub(super) fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), CommandProblem> {
        let Self::Tcp { hosts, .. } = self else { return Ok(()) };
        let named = headers.get_all(HOST).iter().map(HeaderValue::as_bytes);
        let named = named.chain(uri.authority().map(|authority| authority.as_str().as_bytes()));
        for host in named {
            if !std::str::from_utf8(host).is_ok_and(|host| is_own_host(host, hosts)) {
                return Err(CommandProblem::misdirected());
            }
        }
        Ok(())
    }

    /// Lets a request through that needs the token, or says why not.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), CommandProblem> {
        let Self::Tcp { token, .. } = self else { return Ok(()) };
        if headers.contains_key(ORIGIN) {
            return Err(CommandProblem::forbidden("requests of browsers are refused here"));
        }
        let Some(expected) = token else {
            return Err(CommandProblem::forbidden(
                "no admin.token is configured: use the Unix socket, or set one",
            ));
        };
        let mut sent = headers.get_all(AUTHORIZATION).iter();
        let (first, second) = (sent.next(), sent.next());
        if second.is_some() {
            return Err(CommandProblem::bad("the request has several Authorization headers: send one"));
        }
        // Digests are compared, so that neither content nor length shows in the time it takes.
        let sent = Digest::of(first.and_then(bearer).unwrap_or(""));
        let expected = Digest::of(expected.expose());
        if bool::from(sent.as_bytes().ct_eq(expected.as_bytes())) {
            Ok(())
        } else {
            Err(CommandProblem::unauthorized())
        }
    }
}

/// The token of an `Authorization` header. Schemes are written in any case (RFC 9110, 11.1).
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

/// An IP address, `localhost` or a listed name, with any port.
fn is_own_host(host: &str, hosts: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    // A name with a dot at its end is the same name.
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_listed = || hosts.iter().any(|own| own.eq_ignore_ascii_case(name));
    bare.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost") || is_listed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().fold(HeaderMap::new(), |mut headers, (name, value)| {
            headers.append(*name, HeaderValue::from_static(value));
            headers
        })
    }

    #[test]
    fn only_the_token_opens_and_never_for_a_browser() {
        let access = AdminAccess::over_tcp(Some(Secret::new("0123456789abcdef".into())), Vec::new()).unwrap();
        let good = ("authorization", "Bearer 0123456789abcdef");
        assert!(access.check(&headers(&[good])).is_ok());
        for refused in [
            &[("host", "localhost")][..],
            &[("host", "localhost"), ("authorization", "Bearer 0123456789abcdeF")],
            &[("host", "localhost"), ("authorization", "0123456789abcdef")],
            &[("host", "localhost"), good, good],
            &[("host", "localhost"), ("origin", "http://localhost:9464"), good],
        ] {
            assert!(access.check(&headers(refused)).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn without_a_token_nobody_gets_in_over_tcp_and_a_short_one_is_refused() {
        let closed = AdminAccess::over_tcp(None, Vec::new()).unwrap();
        assert!(closed.check(&headers(&[("host", "localhost"), ("authorization", "Bearer ")])).is_err());
        assert!(AdminAccess::over_tcp(Some(Secret::new("short".into())), Vec::new()).is_err());
    }
}
