//! The landing page and the docs page.

use scoregate_base::{
    limits::{LimitRule, Scope},
    plans::{DEEP, Rights, Tier},
    routes::{API_BASE, Period, Route, prices::PRICES},
};

use super::{errors, operations, reference};
use crate::pages::{
    ACCOUNT_SIGN_IN, DOCS as DOCS_PATH, PagesConfig, SiteLinks,
    content_policy::AllowedContent,
    default_terms,
    html::{
        AccountLink, capitalized, card_table, code, code_block, escape, fill, grouped, link, prose,
        site_header, table,
    },
    sample,
};

const CSS: &str = include_str!("page.css");
/// The script of the docs page. It is a module, so its names are not global.
pub const SCRIPT: &str = concat!(
    include_str!("copy.js"),
    include_str!("menu.js"),
    include_str!("search.js"),
    include_str!("snippets.js"),
    include_str!("response.js"),
    include_str!("try_it.js"),
);
/// The style sheet of the docs page.
const DOCS_CSS: &str = concat!(include_str!("page.css"), include_str!("try_it.css"));

/// The style sheet and script of the landing page.
pub const LANDING_CONTENT: AllowedContent<'static> = AllowedContent {
    style: CSS,
    script: None,
};
/// The style sheet and script of the docs page.
pub const CONTENT: AllowedContent<'static> = AllowedContent {
    style: DOCS_CSS,
    script: Some(SCRIPT),
};
const DOCS: &str = include_str!("docs.html");
const LANDING: &str = include_str!("landing.html");

/// The landing page.
pub fn landing(config: &PagesConfig) -> String {
    fill(LANDING, |name| {
        Some(match name {
            "css" => CSS.to_owned(),
            "header" => header(config, "/"),
            "doors" => doors(config),
            "request" => first_request(config),
            _ => return common(config, name),
        })
    })
}

/// The docs page.
pub fn page(config: &PagesConfig) -> String {
    fill(DOCS, |name| {
        section(config, name).or_else(|| common(config, name))
    })
}

/// The rules for the calendar limits that the tiers have.
fn windows(config: &PagesConfig) -> String {
    let mut rules = String::new();
    if has_limit(config, LimitRule::Month) {
        rules.push_str(MONTH);
    }
    let mut windows_of_owners = LimitRule::WINDOWS
        .into_iter()
        .filter(|rule| rule.row().scope == Scope::Owner);
    if windows_of_owners.any(|rule| has_limit(config, rule)) {
        rules.push_str(OWNER);
    }
    rules
}

/// The rule for account limits.
const OWNER: &str = "<dt>Account</dt><dd>Some tiers also limit the responses with data to all applications of an account together, in a \
day or a month. If the limit is reached: <a href=\"#quota_exceeded\"><code>quota_exceeded</code></a> with the limit \
<code>owner_day</code> or <code>owner_month</code>.</dd>\n";

/// The rule for monthly limits.
const MONTH: &str = "<dt>Month</dt><dd>Some tiers also limit the responses with data in a month. A response counts in both the day and \
the month. <a href=\"#endpoint-me\"><code>/me</code></a> shows when your month ends. If the limit is reached: \
<a href=\"#quota_exceeded\"><code>quota_exceeded</code></a> with the limit <code>month</code>.</dd>\n";

/// Values that both pages use.
fn common(config: &PagesConfig, name: &str) -> Option<String> {
    Some(match name {
        "service" => escape(&config.service),
        "version" => escape(&config.version),
        "license" => escape(&config.license),
        "base" => escape(&address(config)),
        "host_note" => host_note(config).to_owned(),
        "key_prefix" => escape(&config.key_prefix),
        "guard" => config.guard_per_minute.to_string(),
        "tiers" => tiers(config),
        "windows" => windows(config),
        "sample" => {
            let answer = config.sample(Route::Models.endpoint());
            code_block("Response of /models", &sample::pretty(&answer))
        }
        "contact" => contact(&config.links),
        _ => return None,
    })
}

fn header(config: &PagesConfig, current: &str) -> String {
    let account = AccountLink::for_all(config.sign_up);
    site_header(&config.service, config.status_page, account, current)
}

fn first_request(config: &PagesConfig) -> String {
    let command = format!(
        "curl -H \"Authorization: Bearer $API_KEY\" \\\n  \"{}/models\"",
        address(config)
    );
    code_block("A first request", &command)
}

/// The links on the landing page, with the primary link first.
fn doors(config: &PagesConfig) -> String {
    let docs = [
        (DOCS_PATH, "Read the documentation"),
        ("/openapi.json", "API description (OpenAPI 3.1)"),
    ];
    let sign_up = config.sign_up.then_some((ACCOUNT_SIGN_IN, "Sign up"));
    let doors = sign_up
        .into_iter()
        .chain(docs)
        .enumerate()
        .map(|(at, (path, text))| {
            let class = if at == 0 { "button" } else { "button quiet" };
            format!("<a class=\"{class}\" href=\"{path}\">{text}</a>\n")
        });
    format!("<p class=\"doors\">{}</p>", doors.collect::<String>())
}

/// Links to the contact, if a contact is set.
fn contact(links: &SiteLinks) -> String {
    let mail = links
        .contact_email
        .as_ref()
        .map(|mail| (format!("mailto:{mail}"), mail));
    let url = links.contact_url.as_ref().map(|url| (url.clone(), url));
    let to: Vec<_> = mail
        .into_iter()
        .chain(url)
        .map(|(href, text)| link(&href, text))
        .collect();
    let name = links
        .contact_name
        .as_ref()
        .map_or_else(String::new, |name| format!("{}, ", escape(name)));
    if to.is_empty() {
        String::new()
    } else {
        format!("<p>Contact: {name}{}</p>", to.join(", "))
    }
}

/// How to get a key, as the beginning of a sentence.
fn first_step(config: &PagesConfig) -> String {
    if config.sign_up {
        format!("{}, create a key", link(ACCOUNT_SIGN_IN, "Sign up"))
    } else {
        "Ask the operator of this service for a key".into()
    }
}

/// The terms as a list. The default terms are followed by the consequence of breaking them.
fn terms(config: &PagesConfig) -> String {
    let items: Vec<String> = config
        .terms
        .iter()
        .map(|term| format!("<li>{}</li>\n", escape(term)))
        .collect();
    let items = items.concat();
    let mirrors = if config.terms == default_terms(&config.service) {
        " Keys that behave\nas a mirror of the data rather than as a client may be revoked without notice."
    } else {
        ""
    };
    format!(
        "<ol>\n{items}</ol>\n<p>A key identifies its client, so that it can be rate-limited, its owner contacted and the key \
         revoked.{mirrors}</p>\n"
    )
}

/// A sentence with a link. Empty if there is no URL.
fn linked(before: &str, url: Option<&str>, text: &str) -> String {
    url.map_or_else(String::new, |url| {
        format!("<p>{before}{}.</p>\n", link(url, text))
    })
}

fn section(config: &PagesConfig, name: &str) -> Option<String> {
    Some(match name {
        "script" => SCRIPT.to_owned(),
        "operations" => operations::data(config),
        "css" => DOCS_CSS.to_owned(),
        "header" => header(config, DOCS_PATH),
        "first_step" => first_step(config),
        "further_docs" => linked(
            "There is ",
            config.links.docs_url.as_deref(),
            "further documentation",
        ),
        "terms" => terms(config),
        "full_terms" => linked(
            "The complete text: ",
            config.links.terms_url.as_deref(),
            "terms of service",
        ),
        "model_note" => model_note(config).to_owned(),
        "endpoint_links" => reference::links(config),
        "error_links" => errors::links(),
        "quick_start" => quick_start(config),
        "recipes" => recipes(config),
        "generated" => generated(config),
        "envelope_fields" => reference::envelope(),
        "endpoint_table" => reference::overview(config),
        "endpoints" => {
            let base = address(config);
            let model = model(config);
            config
                .endpoints
                .iter()
                .map(|row| reference::endpoint(row, config, &base, model))
                .collect()
        }
        "parameters" => reference::parameters(config),
        "error_example" => code_block("An error", &errors::example(config)),
        "error_fields" => errors::fields(),
        "errors" => errors::all(config.sign_up),
        "prices" => prices(),
        "headers" => reference::headers(),
        _ => return None,
    })
}

/// The base address: the configured address, the address of the port, or a placeholder.
fn address(config: &PagesConfig) -> String {
    let base = config.base();
    if config.base_url.is_some() {
        return base;
    }
    format!(
        "{}{base}",
        config.local_url.as_deref().unwrap_or("https://YOUR-HOST")
    )
}

fn host_note(config: &PagesConfig) -> &'static str {
    if config.base_url.is_some() || config.local_url.is_some() {
        ""
    } else {
        "<p class=\"note\"><code>https://YOUR-HOST</code> is a placeholder for the address of this page.</p>"
    }
}

/// The model in the examples, or a placeholder if no model is known.
fn model(config: &PagesConfig) -> &str {
    config.example_model.as_deref().unwrap_or("MODEL_ID")
}

fn model_note(config: &PagesConfig) -> &'static str {
    if config.example_model.is_some() {
        ""
    } else {
        "<p class=\"note\"><code>MODEL_ID</code> is a placeholder for an <code>id</code> of the models list.</p>"
    }
}

fn quick_start(config: &PagesConfig) -> String {
    let base = address(config);
    let examples = [
        ("curl", include_str!("quick_start.sh")),
        ("JavaScript", include_str!("quick_start.mjs")),
        ("Python", include_str!("quick_start.py")),
    ];
    examples
        .map(|(name, text)| {
            let text = text
                .replace("KEY_PREFIX", &config.key_prefix)
                .replace("BASE_ADDRESS", &base);
            format!("<h3>{name}</h3>\n{}", code_block(name, text.trim_end()))
        })
        .concat()
}

/// Programs that use a generated client. `.ci/clients.sh` generates the clients and runs these files.
fn generated(config: &PagesConfig) -> String {
    let programs = [
        (
            "openapi-python-client (Python)",
            include_str!("generated/client.py"),
        ),
        (
            "openapi-typescript with openapi-fetch (TypeScript)",
            include_str!("generated/client.ts"),
        ),
        (
            "hey-api (TypeScript)",
            include_str!("generated/operations.ts"),
        ),
    ];
    folded(config, &programs)
}

/// The recipes for clients that cache or retry. `.ci/clients/recipes.py` runs these files.
fn recipes(config: &PagesConfig) -> String {
    let recipes = [
        (
            "requests-cache (Python)",
            include_str!("recipes/requests_cache.py"),
        ),
        ("hishel (Python)", include_str!("recipes/hishel.py")),
        (
            "CacheControl (Python)",
            include_str!("recipes/cachecontrol.py"),
        ),
        ("got (JavaScript)", include_str!("recipes/got.mjs")),
        (
            "axios-cache-interceptor (JavaScript)",
            include_str!("recipes/axios.mjs"),
        ),
        (
            "make-fetch-happen (JavaScript)",
            include_str!("recipes/make_fetch_happen.mjs"),
        ),
        ("curl (shell)", include_str!("recipes/curl.sh")),
        (
            "Retries that wait for Retry-After (Python)",
            include_str!("recipes/retry.py"),
        ),
    ];
    folded(config, &recipes)
}

/// Programs as collapsed blocks below their names.
fn folded(config: &PagesConfig, programs: &[(&str, &str)]) -> String {
    let base = address(config);
    let origin = base.trim_end_matches(API_BASE);
    programs
        .iter()
        .map(|(name, text)| {
            let text = text.replace("DESCRIPTION_ADDRESS", &format!("{origin}/openapi.json"));
            let text = text.replace("BASE_ADDRESS", &base);
            let block = code_block(name, text.trim_end());
            format!("<details><summary>{name}</summary>\n{block}</details>\n")
        })
        .collect()
}

/// Whether a tier has this limit.
fn has_limit(config: &PagesConfig, rule: LimitRule) -> bool {
    let mut limits = config.tiers.iter().map(|tier| tier.limits.calendar);
    limits.any(|calendar| calendar.quota(rule).is_some())
}

fn tiers(config: &PagesConfig) -> String {
    let has_months = has_limit(config, LimitRule::Month);
    let rows = config.tiers.iter().map(|tier| {
        let mut cells = vec![
            escape(&capitalized(&tier.name)),
            grouped(tier.limits.day),
            grouped(tier.limits.minute),
            rights(tier, config),
            obtained(tier, config),
        ];
        if has_months {
            let month = tier.limits.calendar.quota(LimitRule::Month);
            cells.insert(1, month.map_or_else(|| "no limit".into(), grouped));
        }
        cells
    });
    let mut heads = vec![
        "Tier",
        "Requests a day",
        "Requests a minute",
        "Periods and endpoints",
        "Availability",
    ];
    if has_months {
        heads.insert(1, "Requests a month");
    }
    card_table("Tiers", &heads, rows)
}

/// The periods and endpoints of a tier, and differences from the rights of most free or most paid tiers.
fn rights(tier: &Tier, config: &PagesConfig) -> String {
    let rights = tier.rights;
    let periods = rights.periods_of(Route::Models);
    let mut parts = vec![match &*refused(rights, config) {
        "" => "all".into(),
        refused => format!("all but {refused}"),
    }];
    for (route, of_endpoint) in DEEP.map(|route| (route, rights.periods_of(route))) {
        let longest = of_endpoint.iter().last().filter(|_| of_endpoint != periods);
        parts.extend(
            longest.map(|one| format!("{} up to {}", words([route.name()]), words([one.word()]))),
        );
    }
    let usual = if rights.is_paid() {
        Rights::PAID
    } else {
        Rights::FREE
    };
    if let Some(seen) = config
        .field_sets
        .seen(rights.fields())
        .filter(|_| rights.fields() != usual.fields())
    {
        let seen = words(seen.iter().map(String::as_str));
        parts.push(format!(
            "reserved fields: {}",
            if seen.is_empty() { "none" } else { &seen }
        ));
    }
    parts.join("; ")
}

/// The periods and endpoints that a tier may not request.
fn refused(rights: Rights, config: &PagesConfig) -> String {
    let periods = rights.periods_of(Route::Models);
    let refused_periods = Period::ALL
        .into_iter()
        .filter(|period| !periods.has(*period))
        .map(Period::word);
    let refused = config
        .endpoints
        .stored()
        .filter(|endpoint| !rights.has_endpoint(endpoint.route))
        .map(|endpoint| endpoint.name);
    words(refused_periods.chain(refused))
}

fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(code).collect::<Vec<_>>().join(", ")
}

/// How to get a tier, with a link to the page where it can be bought.
fn obtained(tier: &Tier, config: &PagesConfig) -> String {
    let how = how_obtained(tier, config.sign_up);
    let plan = config
        .links
        .plans
        .iter()
        .find(|(name, _)| *name == tier.name);
    plan.map_or_else(|| escape(&how), |(_, url)| link(url, &how))
}

fn how_obtained(tier: &Tier, sign_up: bool) -> String {
    match tier.name.as_str() {
        _ if !tier.rights.is_paid() && sign_up => "Sign up and create a key".into(),
        _ if !tier.rights.is_paid() => "From the operator".into(),
        "enterprise" => "By arrangement".into(),
        name => format!("Included with the {} plan", capitalized(name)),
    }
}

fn prices() -> String {
    let rows = PRICES.iter().map(|row| {
        vec![
            prose(row.outcome),
            cost(row.minute),
            cost(row.day),
            cost(row.guard),
        ]
    });
    table(
        "Cost of a request",
        &["Outcome", "Minute", "Day", "Guard"],
        rows,
    )
}

fn cost(units: u8) -> String {
    if units == 0 {
        "–".into()
    } else {
        units.to_string()
    }
}
