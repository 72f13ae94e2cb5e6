//! The website of an application, and the rules for URLs that are stored. Pages show the website as a link, so it must
//! not be able to run a script.

/// Maximum length of a URL, in bytes.
const MAX_LENGTH: usize = 200;

/// The reason why a URL is not stored as a website.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadWebsite {
    /// The URL is too long.
    #[error("must have at most {MAX_LENGTH} characters")]
    TooLong,
    /// The URL contains a character that is not allowed in URLs.
    #[error(
        "must be ASCII without spaces, quotes, brackets or backslashes; encode them as %20, %22 and so on"
    )]
    Characters,
    /// The scheme is not http or https.
    #[error("must begin with https:// or http://")]
    Scheme,
    /// The host is missing or invalid.
    #[error("must have a host, such as https://example.org/")]
    Host,
    /// The port is invalid.
    #[error("must have a port from 1 to 65535, or none")]
    Port,
    /// The URL has a user name.
    #[error("must not have a user name; remove it with its @")]
    UserName,
}

/// Checks that a text is an absolute URL of a website that is short enough to be stored.
pub fn check_website(text: &str) -> Result<(), BadWebsite> {
    if text.len() > MAX_LENGTH {
        Err(BadWebsite::TooLong)
    } else {
        check_web_address(text)
    }
}

/// Checks that a string is an absolute URL, of any length.
pub fn check_web_address(text: &str) -> Result<(), BadWebsite> {
    if text
        .bytes()
        .any(|byte| !byte.is_ascii_graphic() || b"<>\"'`{}|\\^".contains(&byte))
    {
        return Err(BadWebsite::Characters);
    }
    let after_scheme = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let authority = after_scheme
        .ok_or(BadWebsite::Scheme)?
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default();
    if authority.contains('@') {
        return Err(BadWebsite::UserName);
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    };
    if !is_host(host) {
        return Err(BadWebsite::Host);
    }
    if port.is_none_or(|port| {
        port.parse::<u16>()
            .is_ok_and(|number| number > 0 && number.to_string() == port)
    }) {
        Ok(())
    } else {
        Err(BadWebsite::Port)
    }
}

/// Whether a string is a host name or an IP address. An IPv6 address must be in brackets.
fn is_host(host: &str) -> bool {
    if let Some(inside) = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        return inside.parse::<std::net::Ipv6Addr>().is_ok();
    }
    host.split('.').all(|label| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn absolute_addresses_of_websites_are_accepted() {
        let longest = format!("https://example.org/{}", "a".repeat(MAX_LENGTH - 20));
        for fit in [
            "https://example.org",
            "http://example.org/",
            "https://Example.org:8443/a/b?c=d&e=%20#f",
            "https://example.org/@ann",
            "https://example.org?at=@",
            "http://localhost:3000",
            "http://127.0.0.1/",
            "http://[::1]:8080/",
            "https://xn--bcher-kva.example/",
            &longest,
        ] {
            assert_eq!(check_website(fit), Ok(()), "{fit}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        let too_long = format!("https://example.org/{}", "a".repeat(MAX_LENGTH - 19));
        for (unfit, reason) in [
            ("", BadWebsite::Scheme),
            ("example.org", BadWebsite::Scheme),
            ("//example.org", BadWebsite::Scheme),
            ("/page", BadWebsite::Scheme),
            ("javascript:alert(1)", BadWebsite::Scheme),
            ("JavaScript://example.org/%0aalert(1)", BadWebsite::Scheme),
            ("data:text/html,x", BadWebsite::Scheme),
            ("ftp://example.org", BadWebsite::Scheme),
            ("HTTPS://example.org", BadWebsite::Scheme),
            (" https://example.org", BadWebsite::Characters),
            ("https://example.org/a b", BadWebsite::Characters),
            ("https://example.org/\u{fc}", BadWebsite::Characters),
            ("https://example.org/\u{0}", BadWebsite::Characters),
            ("https://example.org/\r\nX: y", BadWebsite::Characters),
            ("https://example.org/\"onclick=", BadWebsite::Characters),
            ("https://example.org/'", BadWebsite::Characters),
            ("https://example.org/<script>", BadWebsite::Characters),
            ("https:\\\\example.org", BadWebsite::Characters),
            ("https://ann@example.org", BadWebsite::UserName),
            ("https://ann:secret@example.org/", BadWebsite::UserName),
            ("https://", BadWebsite::Host),
            ("https:///page", BadWebsite::Host),
            ("https://:80/", BadWebsite::Host),
            ("https://a..b", BadWebsite::Host),
            ("https://%65xample.org", BadWebsite::Host),
            ("https://[::x]/", BadWebsite::Host),
            ("https://::1/", BadWebsite::Host),
            ("https://example.org:0", BadWebsite::Port),
            ("https://example.org:65536", BadWebsite::Port),
            ("https://example.org:+80", BadWebsite::Port),
            ("https://example.org:/", BadWebsite::Port),
            (&too_long, BadWebsite::TooLong),
        ] {
            assert_eq!(check_website(unfit), Err(reason), "{unfit:?}");
        }
    }

    proptest! {
        #[test]
        fn an_accepted_text_is_a_web_address_that_needs_no_escaping_in_an_attribute(
            text in "(https?://)?[a-z0-9.:@/?#<>\"'&\\\\ \u{0}-\u{ff}\\[\\]-]{0,40}"
        ) {
            if check_website(&text).is_ok() {
                prop_assert!(text.starts_with("https://") || text.starts_with("http://"));
                prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"'`\\".contains(&byte)));
                let url: http::Uri = text.parse().unwrap();
                prop_assert!(url.host().is_some_and(|host| !host.is_empty()));
                prop_assert!(!url.authority().unwrap().as_str().contains('@'));
            }
        }
    }
}
