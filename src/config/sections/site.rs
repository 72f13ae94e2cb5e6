//! Reads `site.*` and the public URL of the service. URLs and addresses are published in HTML, JSON, headers and
//! `security.txt`, so they are checked character by character.

use http::Uri;

use crate::pages::{SiteLinks, default_terms};
use scoregate_base::{address::is_loopback, plans::Tier, routes::root_of};

use super::cors::{host_and_port, is_host, is_port};
use crate::config::config_reader::ConfigReader;

const PLANS: &str = "site.plans";
const SECURITY_CONTACT: &str = "site.security_contact";
const SECURITY_POLICY: &str = "site.security_policy_url";
const MAIL: &str = "write an email address, such as \"api@example.org\"";

/// The hosts for which a URL with the scheme `http` is accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlainHttp {
    Nowhere,
    OnLoopback,
    Anywhere,
}

/// Reads the contacts and links for the public pages.
pub(in crate::config) fn read(reading: &mut ConfigReader<'_>, tiers: &[Tier]) -> SiteLinks {
    let links = SiteLinks {
        contact_name: reading.optional("site.contact_name"),
        contact_email: published(reading, "site.contact_email", |text| {
            (!is_mailbox(text)).then_some(MAIL)
        }),
        contact_url: url(reading, "site.contact_url"),
        terms_url: url(reading, "site.terms_url"),
        docs_url: url(reading, "site.docs_url"),
        upgrade_url: url(reading, "site.upgrade_url"),
        plans: plans(reading, tiers),
        security_contact: published(reading, SECURITY_CONTACT, |text| {
            match text.strip_prefix("mailto:") {
                Some(mailbox) => (!is_mailbox(mailbox)).then_some(MAIL),
                None if text.starts_with("https://") => wrong_with(text, PlainHttp::Nowhere),
                None => Some("write a URL that begins with mailto: or https://"),
            }
        }),
        security_policy_url: published(reading, SECURITY_POLICY, |text| {
            wrong_with(text, PlainHttp::Nowhere)
        }),
    };
    if reading.maybe(SECURITY_POLICY).is_some() && reading.maybe(SECURITY_CONTACT).is_none() {
        reading.reject(SECURITY_POLICY, format!("set {SECURITY_CONTACT} too"));
    }
    links
}

/// Reads the URLs of tiers. Each entry is `tier=url`.
fn plans(reading: &mut ConfigReader<'_>, tiers: &[Tier]) -> Vec<(String, String)> {
    let mut plans = Vec::new();
    for plan in reading.get::<Vec<String>>(PLANS) {
        let (tier, url) = plan.split_once('=').unwrap_or_default();
        let is_known = tiers.iter().any(|known| known.name == tier);
        let remedy =
            "write the name of a tier, =, and a URL, such as \"pro=https://example.org/pro\"";
        let wrong = (!is_known).then_some(remedy);
        match wrong.or_else(|| wrong_with(url, PlainHttp::OnLoopback)) {
            Some(remedy) => reading.problem(PLANS, Some(&plan.as_str().into()), remedy),
            None => plans.push((tier.to_owned(), url.to_owned())),
        }
    }
    plans
}

/// The attribution notice. Default: a sentence with the name and address of the service.
pub(in crate::config) fn license(reading: &mut ConfigReader<'_>) -> String {
    let service: String = reading.get("service.name");
    let url = base_url(reading);
    let at = url.map_or(String::new(), |url| format!(" ({})", root_of(&url)));
    let default = format!(
        "Benchmark data by {service}{at}. Attribution with a link to the service is required wherever the data is displayed."
    );
    reading.optional("service.license").unwrap_or(default)
}

/// The terms of use. Default: the terms of the data API.
pub(in crate::config) fn terms(reading: &mut ConfigReader<'_>, service: &str) -> Vec<String> {
    let path = "site.terms";
    if reading.maybe(path).is_none() {
        return default_terms(service);
    }
    let Some(terms) = reading.optional::<Vec<String>>(path) else {
        return Vec::new();
    };
    if terms.is_empty() || terms.iter().any(|text| is_no_line(text)) {
        reading.reject(path, "write a list of non-empty strings, each on one line");
    }
    terms
}

/// Whether a string is blank or contains a control character, such as a line break.
fn is_no_line(text: &str) -> bool {
    text.trim().is_empty() || text.chars().any(char::is_control)
}

/// The public URL of the service, without a trailing slash.
pub(in crate::config) fn base_url(reading: &mut ConfigReader<'_>) -> Option<String> {
    let url = published(reading, "service.base_url", |text| {
        let has_more = text
            .contains(['?', '#'])
            .then_some("remove the query and the fragment");
        has_more.or_else(|| wrong_with(text, PlainHttp::Anywhere))
    })?;
    Some(url.trim_end_matches('/').to_owned())
}

pub(in crate::config) fn url(reading: &mut ConfigReader<'_>, path: &str) -> Option<String> {
    published(reading, path, |text| {
        wrong_with(text, PlainHttp::OnLoopback)
    })
}

/// Reads an optional URL that may begin with `http://`.
pub(in crate::config) fn plain_url(reading: &mut ConfigReader<'_>, path: &str) -> Option<String> {
    published(reading, path, |text| wrong_with(text, PlainHttp::Anywhere))
}

/// Reads an optional string. `None` if it is missing or has a problem.
fn published(
    reading: &mut ConfigReader<'_>,
    path: &str,
    wrong: impl Fn(&str) -> Option<&'static str>,
) -> Option<String> {
    let text: String = reading.optional(path)?;
    if let Some(remedy) = wrong(&text) {
        reading.reject(path, remedy);
        return None;
    }
    Some(text)
}

/// The remedy for a text that is not an absolute URL.
fn wrong_with(text: &str, plain: PlainHttp) -> Option<&'static str> {
    if text.bytes().any(is_odd) {
        return Some(
            "write a URL in ASCII, without spaces, quotes and brackets; encode them as %20, %22 and so on",
        );
    }
    let is_plain = text.starts_with("http://");
    let example = match plain {
        PlainHttp::Anywhere => "write a URL that begins with https:// or http://",
        PlainHttp::Nowhere | PlainHttp::OnLoopback => "write a URL that begins with https://",
    };
    if !text.starts_with("https://") && (!is_plain || plain == PlainHttp::Nowhere) {
        return Some(example);
    }
    let Some(authority) = text
        .parse::<Uri>()
        .ok()
        .and_then(|url| url.into_parts().authority)
    else {
        return Some("write a URL with a host, such as \"https://example.org/page\"");
    };
    if authority.as_str().contains('@') {
        return Some("remove the user name");
    }
    let (host, port) = host_and_port(authority.as_str());
    if !is_host(&host.to_ascii_lowercase()) {
        return Some("write a URL with a host, such as \"https://example.org/page\"");
    }
    if port.is_some_and(|port| !is_port(port)) {
        return Some("write a port from 1 to 65535");
    }
    (is_plain && plain == PlainHttp::OnLoopback && !is_loopback(host))
        .then_some("write a URL that begins with https://; http:// is accepted for loopback only")
}

fn is_odd(byte: u8) -> bool {
    !byte.is_ascii_graphic() || b"<>\"'`{}|\\^".contains(&byte)
}

/// Whether a string is an email address without quoted parts, which needs no escaping in a `mailto:` URL.
fn is_mailbox(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    local.len() <= 64
        && local.split('.').all(is_atom)
        && !domain.starts_with('[')
        && is_host(domain)
}

fn is_atom(part: &str) -> bool {
    !part.is_empty()
        && part
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use crate::config::tests::accepted;

    #[test]
    fn contacts_and_links_are_read() {
        let links = accepted(
            "[site]\ncontact_name = \"API team\"\ncontact_email = \"api+help@example.org\"\n\
             contact_url = \"http://localhost:3000/contact\"\nterms_url = \"https://example.org/terms#api\"\n\
             docs_url = \"https://example.org:8443/guide?v=1\"\nsecurity_contact = \"https://example.org/report\"\n\
             security_policy_url = \"https://example.org/policy\"",
        )
        .links;
        for (found, expected) in [
            (links.contact_email, "api+help@example.org"),
            (links.contact_url, "http://localhost:3000/contact"),
            (links.terms_url, "https://example.org/terms#api"),
            (links.docs_url, "https://example.org:8443/guide?v=1"),
            (links.security_contact, "https://example.org/report"),
            (links.security_policy_url, "https://example.org/policy"),
        ] {
            assert_eq!(found.as_deref(), Some(expected));
        }
        assert_eq!(accepted("").links, crate::pages::SiteLinks::default());
        let mail = accepted("site.security_contact = \"mailto:security@example.org\"").links;
        assert_eq!(
            mail.security_contact.as_deref(),
            Some("mailto:security@example.org")
        );
    }

    #[test]
    fn base_url_has_no_trailing_slash() {
        for (url, read) in [
            ("http://gateway:8080/", "http://gateway:8080"),
            ("https://x.example/api/v1", "https://x.example/api/v1"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ] {
            let config = accepted(&format!("service.base_url = \"{url}\""));
            assert_eq!(config.base_url.as_deref(), Some(read));
        }
    }
}
