//! Email addresses of people who sign up.

/// Maximum lengths of an address and of its local part (RFC 5321).
const MAX_ADDRESS: usize = 254;
const MAX_LOCAL: usize = 64;
// RFC 1035, section 2.3.4.
const MAX_LABEL: usize = 63;
/// Labels of second-level domains for a kind of organization, as in `ac.uk`. Other short labels are excluded, because
/// otherwise each subdomain of `abc.de` would count as a registered domain.
const KINDS: [&str; 12] = [
    "ac", "co", "com", "edu", "go", "gov", "mil", "ne", "net", "or", "org", "sch",
];

/// An address that mail can be sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmailAddress {
    /// The address as it was entered.
    pub entered: String,
    /// The mailbox: the address in lower case and without a `+tag`. All addresses of a mailbox belong to one account.
    pub mailbox: String,
}

/// The reason why an address is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressProblem {
    /// The address is malformed.
    #[error("Enter an email address, such as name@example.org.")]
    Malformed,
    /// The address has characters that are not ASCII.
    #[error("Enter an address in ASCII. Write an internationalized domain name in its xn-- form.")]
    NotAscii,
    /// The operator does not accept the domain.
    #[error("Addresses of this domain are not accepted. Enter another address.")]
    Domain,
}

/// The domains whose addresses are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailDomains {
    /// If not empty, only these domains and their subdomains are accepted.
    pub allowed: Vec<String>,
    /// These domains and their subdomains are not accepted.
    pub denied: Vec<String>,
}

impl MailDomains {
    fn accept(&self, domain: &str) -> bool {
        let covers = |listed: &String| {
            domain
                .strip_suffix(listed.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let is_allowed = self.allowed.is_empty() || self.allowed.iter().any(covers);
        is_allowed && !self.denied.iter().any(covers)
    }
}

impl EmailAddress {
    /// Parses an address without quoted parts.
    pub fn parse(text: &str, domains: &MailDomains) -> Result<Self, AddressProblem> {
        let text = text.trim();
        if !text.is_ascii() {
            return Err(AddressProblem::NotAscii);
        }
        let (local, domain) = text.rsplit_once('@').ok_or(AddressProblem::Malformed)?;
        let is_valid = text.len() <= MAX_ADDRESS && is_local_part(local) && is_domain(domain);
        if !is_valid {
            return Err(AddressProblem::Malformed);
        }
        let domain = domain.to_ascii_lowercase();
        if !domains.accept(&domain) {
            return Err(AddressProblem::Domain);
        }
        let untagged = local.split_once('+').map_or(local, |(name, _)| name);
        let mailbox = format!("{}@{domain}", untagged.to_ascii_lowercase());
        Ok(Self {
            entered: text.to_owned(),
            mailbox,
        })
    }
}

/// Whether a string is a local part: atoms separated by dots (RFC 5322). Rejects text that programs behind a mail server
/// may interpret as an option, a command, a file or a route.
fn is_local_part(text: &str) -> bool {
    let begins_plainly = !text.starts_with(['-', '/', '+', '#', '~']);
    text.len() <= MAX_LOCAL
        && begins_plainly
        && text.split('.').all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| is_atom_byte(byte) && !b"|`$!%".contains(&byte))
        })
}

fn is_atom_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte)
}

/// The registered domain of an address: the last two labels, or the last three below a domain such as `ac.uk`. The
/// owner of a domain can receive mail in any number of subdomains.
pub fn registered_domain(address: &str) -> String {
    let domain = address
        .rsplit('@')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let mut from_last = domain.rsplit('.');
    let is_country = from_last.next().is_some_and(|label| label.len() == 2);
    let is_shared = is_country && from_last.next().is_some_and(|label| KINDS.contains(&label));
    let dots = if is_shared { 2 } else { 1 };
    let start = domain
        .rmatch_indices('.')
        .nth(dots)
        .map_or(0, |(dot, _)| dot + 1);
    domain.get(start..).unwrap_or_default().to_owned()
}

/// Whether a string can be part of an accepted address.
pub fn is_address_fragment(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| is_atom_byte(byte) || b".@".contains(&byte))
}

/// Whether a string is a domain name with at least two labels, the last of which is not a number.
pub fn is_domain(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or_default();
    text.contains('.')
        && text.split('.').all(|label| {
            (1..=MAX_LABEL).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
        && !last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, AddressProblem> {
        EmailAddress::parse(text, &MailDomains::default()).map(|address| address.mailbox)
    }

    #[test]
    fn addresses_that_differ_in_case_or_tag_have_one_mailbox() {
        for text in [
            "ann@example.org",
            " Ann@Example.ORG ",
            "ann+a@example.org",
            "ANN+b+c@example.org",
        ] {
            assert_eq!(parsed(text).unwrap(), "ann@example.org", "{text}");
        }
        assert_eq!(parsed("a.nn@example.org").unwrap(), "a.nn@example.org");
        assert_eq!(
            parsed("o'brien&co/x-_=?^{}~@example.org").unwrap(),
            "o'brien&co/x-_=?^{}~@example.org"
        );
        let entered = EmailAddress::parse(" Ann+x@Example.org", &MailDomains::default())
            .unwrap()
            .entered;
        assert_eq!(entered, "Ann+x@Example.org");
    }

    #[test]
    fn texts_that_are_no_address_are_rejected() {
        let long = format!("{}@example.org", "a".repeat(65));
        let longer = format!("a@{}org", "example.".repeat(40));
        for text in [
            "",
            "@",
            "ann",
            "ann@",
            "@example.org",
            "ann@localhost",
            "a b@example.org",
            "ann@example..org",
            "ann@-a.org",
            "ann@[127.0.0.1]",
            "ann@127.0.0.1",
            "a@b@example.org",
            ".a@example.org",
            "a.@example.org",
            "\"a b\"@example.org",
            "ann@example.org\r\nBcc: b@example.org",
            "a,b@example.org",
            "<a@example.org>",
            "ann@example.org.",
            "a\0@example.org",
            "-oQ/tmp@example.org",
            "--help@example.org",
            "|id@example.org",
            "a|id@example.org",
            "`id`@example.org",
            "$(id)@example.org",
            "/etc/passwd@example.org",
            "+ann@example.org",
            "ann!host@example.org",
            "ann%example.net@example.org",
            &long,
            &longer,
        ] {
            assert_eq!(parsed(text), Err(AddressProblem::Malformed), "{text}");
        }
        assert_eq!(parsed("änn@example.org"), Err(AddressProblem::NotAscii));
    }

    #[test]
    fn the_subdomains_of_a_domain_count_as_one() {
        for (address, domain) in [
            ("ann@example.org", "example.org"),
            ("ann@a.b.Example.ORG", "example.org"),
            ("ann@mail.example.co.uk", "example.co.uk"),
            ("ann@cs.example.ac.uk", "example.ac.uk"),
            ("ann@a.b.xyz.de", "xyz.de"),
            ("ann@a.co.example", "co.example"),
            ("ann@co.uk", "co.uk"),
            ("ann@localhost", "localhost"),
        ] {
            assert_eq!(registered_domain(address), domain);
        }
    }

    #[test]
    fn listed_domains_include_their_subdomains() {
        let list = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let domains = MailDomains {
            allowed: list(&["example.org"]),
            denied: list(&["spam.example.org"]),
        };
        for (domain, accepted) in [
            ("example.org", true),
            ("mail.example.org", true),
            ("EXAMPLE.org", true),
            ("badexample.org", false),
            ("example.org.evil.net", false),
            ("spam.example.org", false),
            ("a.spam.example.org", false),
        ] {
            let parsed = EmailAddress::parse(&format!("a@{domain}"), &domains);
            assert_eq!(parsed.is_ok(), accepted, "{domain}: {parsed:?}");
        }
        let denied = MailDomains {
            allowed: Vec::new(),
            ..domains
        };
        assert!(EmailAddress::parse("a@other.net", &denied).is_ok());
        assert_eq!(
            EmailAddress::parse("a@spam.example.org", &denied),
            Err(AddressProblem::Domain)
        );
    }
}
