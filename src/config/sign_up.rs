//! Reads the settings of `site.*` for accounts. They are checked only if people can sign up.

use http::Uri;

use crate::{
    pages::account::AccountSite,
    site::{MailDomains, SiteConfig, is_domain},
};
use scoregate_base::{
    address::is_loopback,
    plans::Tier,
    routes::{API_BASE, root_of},
};

use super::{Config, config_reader::ConfigReader};

const SIGN_UP: &str = "site.sign_up";
const BASE_URL: &str = "service.base_url";
/// Maximum number of listed mail domains. Each address is compared with all of them.
const MAX_DOMAINS: usize = 10_000;

/// Reads the settings of the site, which depend on other settings. `None` if the site is disabled.
pub fn read(reading: &mut ConfigReader<'_>, config: &Config) -> Option<SiteConfig> {
    let is_on: bool = reading.get(SIGN_UP);
    let terms_version = reading.get("site.terms_version");
    let applications_per_account = reading.get("site.applications_per_account");
    let links_per_hour = reading.get("site.sign_in_links_per_hour");
    let accounts_per_day = reading.get("site.accounts_per_day");
    let links_per_minute = reading.get("site.max_sign_in_links_per_minute");
    let webhooks = reading.get("site.webhooks");
    let domains = MailDomains {
        allowed: domains(reading, "site.allowed_mail_domains"),
        denied: domains(reading, "site.denied_mail_domains"),
    };
    let tier = new_tier(reading, &config.tiers);
    if !is_on {
        return None;
    }
    check_privacy(reading, config);
    let is_mail_set = ["mail.server", "mail.directory"]
        .iter()
        .any(|path| reading.maybe(path).is_some());
    if config.mail.is_none() && !is_mail_set {
        let remedy = "set it for site.sign_up, which sends email links; on loopback, mail.directory writes them to files";
        reading.problem("mail.server", None, remedy);
    }
    let root = root(reading, config);
    Some(SiteConfig {
        tier,
        applications_per_account,
        links_per_hour,
        accounts_per_day,
        links_per_minute,
        domains,
        webhooks,
        tells_operator: config.operator.is_some(),
        proxies: config.proxies.clone(),
        pages: AccountSite {
            service: config.service.clone(),
            terms: config.terms.clone(),
            terms_version,
            terms_url: config.links.terms_url.clone(),
            upgrade_url: config.links.upgrade_url.clone(),
            plans: config.links.plans.clone(),
            contact_email: config.links.contact_email.clone(),
            has_status_page: config.status_page,
            example_url: format!("{root}{API_BASE}/models"),
            applications_per_account,
        },
        root,
    })
}

/// Rejects sign-up without TLS, except on loopback or behind a proxy that terminates TLS.
fn check_privacy(reading: &mut ConfigReader<'_>, config: &Config) {
    let is_private = !config.certificates.is_empty()
        || config.listen.ip().is_loopback()
        || !config.proxies.trusted.is_empty();
    if !is_private {
        reading.reject(
            SIGN_UP,
            "addresses and keys would be sent unencrypted: write [tls.default] with a certificate and its key, or list \
             the proxy that terminates TLS in proxies.trusted",
        );
    }
}

/// The public address of the site. It is empty if it is the address of a loopback port, which may not be known yet.
fn root(reading: &mut ConfigReader<'_>, config: &Config) -> String {
    let Some(url) = &config.base_url else {
        let is_plain_loopback = config.listen.ip().is_loopback() && config.certificates.is_empty();
        if !is_plain_loopback && reading.maybe(BASE_URL).is_none() {
            reading.problem(
                BASE_URL,
                None,
                "set it for site.sign_up: email links begin with this address",
            );
        }
        return String::new();
    };
    let root = root_of(url);
    let parsed = root.parse::<Uri>().unwrap_or_default();
    if !matches!(parsed.path(), "" | "/") {
        let remedy = format!(
            "remove the path for site.sign_up: the pages are at /account; only {API_BASE} may follow the host"
        );
        reading.reject(BASE_URL, remedy);
    }
    if root.starts_with("http://") && !parsed.host().is_some_and(is_loopback) {
        let remedy = "write a URL that begins with https:// for site.sign_up; http:// is accepted for loopback only";
        reading.reject(BASE_URL, remedy);
    }
    root.to_owned()
}

fn domains(reading: &mut ConfigReader<'_>, path: &str) -> Vec<String> {
    let domains: Vec<String> = reading.get(path);
    reading.at_most(path, domains.len(), MAX_DOMAINS, "domains");
    for domain in domains.iter().filter(|domain| !is_domain(domain)) {
        reading.problem(
            path,
            Some(&domain.as_str().into()),
            "write a domain name, such as \"example.org\"",
        );
    }
    domains
        .into_iter()
        .map(|domain| domain.to_ascii_lowercase())
        .collect()
}

/// The tier of new applications. Default: the lowest tier.
fn new_tier(reading: &mut ConfigReader<'_>, tiers: &[Tier]) -> String {
    let path = "site.tier";
    let Some(tier) = reading.optional::<String>(path) else {
        return tiers
            .first()
            .map(|tier| tier.name.clone())
            .unwrap_or_default();
    };
    if !tiers.iter().any(|known| known.name == tier) {
        let names: Vec<&str> = tiers.iter().map(|tier| tier.name.as_str()).collect();
        reading.reject(
            path,
            format!("write one of the tiers: {}", names.join(", ")),
        );
    }
    tier
}

#[cfg(test)]
mod tests {
    use crate::config::tests::accepted;

    const ON: &str =
        "site.sign_up = true\nmail.server = \"localhost:25\"\nmail.from = \"api@example.org\"\n";

    #[test]
    fn accounts_have_defaults_for_everything_on_loopback() {
        let site = accepted(ON).site.unwrap();
        assert_eq!(
            (
                site.tier.as_str(),
                site.applications_per_account,
                site.links_per_hour
            ),
            ("free", 1, 60)
        );
        assert_eq!(
            (
                site.root.as_str(),
                site.pages.terms.len(),
                site.pages.terms_version.as_str()
            ),
            ("", 4, "1")
        );
        assert!(site.pages.terms[0].contains("scoregate must be cited"));
        let off = accepted("site.terms = [\"Be kind.\"]");
        assert_eq!(off.site.map(|site| site.tier), None);
        assert_eq!(off.terms, ["Be kind."], "the docs show the terms");
    }

    #[test]
    fn sign_up_in_clear_text_is_accepted_on_loopback_and_behind_a_trusted_proxy() {
        accepted(&format!(
            "listen = \"0.0.0.0:80\"\nserver.plain_http = true\nservice.base_url = \"https://api.example\"\n\
             proxies.trusted = [\"10.0.0.1\"]\n{ON}"
        ));
        accepted(&format!(
            "service.base_url = \"http://localhost:8080/api/v1\"\n{ON}"
        ));
    }

    #[test]
    fn links_by_mail_begin_with_the_address_without_the_path_of_the_api() {
        let url = "service.base_url = \"https://x.example/api/v1/\"\n";
        let site = accepted(&format!("{url}{ON}")).site.unwrap();
        assert_eq!(site.root, "https://x.example");
        assert_eq!(site.pages.example_url, "https://x.example/api/v1/models");
    }

    #[test]
    fn mail_domains_are_in_lower_case_and_terms_are_those_of_the_operator() {
        let rest = "site.allowed_mail_domains = [\"Example.ORG\"]\nsite.terms = [\"Be kind.\"]";
        let site = accepted(&format!("{ON}{rest}")).site.unwrap();
        assert_eq!(
            (site.domains.allowed, site.pages.terms),
            (vec!["example.org".into()], vec!["Be kind.".into()])
        );
    }
}
