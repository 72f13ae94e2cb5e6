//! Builds the whole API description.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use scoregate_base::routes::{API_BASE, Endpoint};

use super::{parameters, responses::NamedResponses, schemas};
use crate::pages::{
    DOCS, OPENAPI, PagesConfig, STATUS, SiteLinks,
    discovery::{API_CATALOG, SECURITY_TXT, SUMMARY},
    paths::{DOCS_MARKDOWN, LLMS_TXT},
    sample,
    status::FEED,
};

/// The parts of the description, in reading order.
#[derive(Serialize)]
struct OpenApiDocument {
    openapi: &'static str,
    info: Value,
    #[serde(rename = "externalDocs", skip_serializing_if = "Option::is_none")]
    external_docs: Option<Value>,
    servers: Value,
    security: Value,
    tags: Value,
    paths: Map<String, Value>,
    components: Value,
}

/// The API description as JSON text.
pub fn document(config: &PagesConfig) -> String {
    let mut responses = NamedResponses::default();
    let paths = config
        .endpoints
        .iter()
        .map(|endpoint| (path(endpoint), operations(endpoint, config, &mut responses)))
        .collect();
    let [responses, headers] = responses.finish();
    let document = OpenApiDocument {
        openapi: "3.1.0",
        info: info(config),
        external_docs: absolute(config, config.links.docs_url.as_deref().unwrap_or(DOCS))
            .map(|url| json!({ "url": url, "description": "The documentation." })),
        servers: json!([{ "url": config.base() }]),
        security: json!([{ "bearer": [] }, { "header": [] }]),
        tags: tags(config),
        paths,
        components: json!({
            "securitySchemes": security_schemes(),
            "parameters": parameters::all(),
            "headers": headers,
            "responses": responses,
            "schemas": schemas::all(config),
        }),
    };
    sample::text_of(&document)
}

fn info(config: &PagesConfig) -> Value {
    let mut info = json!({
        "title": format!("{} data API", config.service),
        "version": config.version,
        "summary": SUMMARY,
        "description": format!("Rankings, a global index, alerts, incidents, provider status, analytics and drift signatures. \
            Every request needs a key. Scores change about once an hour. HEAD is the same as GET, without a body, at \
            the same price. Any method other than GET, HEAD and OPTIONS gets a 405 `method_not_allowed`, and any other path gets \
            a 404 `not_found`, both with the body `Error`. No key is needed for {}, which are not under the base address.",
            public_paths(config)),
        "license": { "name": config.license },
    });
    // URLs must be absolute, because no tool resolves relative references and some treat them as errors.
    if let Some(terms) = absolute(config, config.links.terms()) {
        schemas::insert(&mut info, "termsOfService", terms.clone().into());
        schemas::insert(
            &mut info,
            "license",
            json!({ "name": config.license, "url": terms }),
        );
    }
    if let Some(contact) = contact(&config.links) {
        schemas::insert(&mut info, "contact", contact);
    }
    info
}

/// An absolute URL. `None` for a path of this service if no address is configured.
fn absolute(config: &PagesConfig, url: &str) -> Option<String> {
    if url.starts_with('/') {
        config.root().map(|root| format!("{root}{url}"))
    } else {
        Some(url.to_owned())
    }
}

/// All paths that need no key, as part of a sentence.
pub fn public_paths(config: &PagesConfig) -> String {
    let mut paths = vec![
        "/",
        DOCS,
        DOCS_MARKDOWN,
        LLMS_TXT,
        OPENAPI,
        "/healthz",
        "/robots.txt",
        "/favicon.ico",
    ];
    paths.extend(
        config
            .status_page
            .then_some([STATUS, FEED])
            .into_iter()
            .flatten(),
    );
    paths.extend(config.root().map(|_| API_CATALOG));
    paths.extend(config.links.security_contact.as_ref().map(|_| SECURITY_TXT));
    let last = paths.pop().unwrap_or_default();
    let others: Vec<_> = paths.iter().map(|path| format!("`{path}`")).collect();
    format!("{} and `{last}`", others.join(", "))
}

/// The Contact Object, if any contact field is set.
fn contact(links: &SiteLinks) -> Option<Value> {
    let SiteLinks {
        contact_name,
        contact_url,
        contact_email,
        ..
    } = links;
    let fields = [
        ("name", contact_name),
        ("url", contact_url),
        ("email", contact_email),
    ];
    let known = fields
        .into_iter()
        .filter_map(|(name, text)| Some((name.to_owned(), text.clone()?.into())));
    let contact: Map<_, _> = known.collect();
    (!contact.is_empty()).then_some(Value::Object(contact))
}

fn security_schemes() -> Value {
    json!({
        "bearer": { "type": "http", "scheme": "bearer",
            "description": "`Authorization: Bearer KEY`. Either of the two headers is sufficient." },
        "header": { "type": "apiKey", "in": "header", "name": "X-API-Key",
            "description": "`X-API-Key: KEY`. Either of the two headers is sufficient." },
    })
}

/// The path below the server's address.
pub fn path(endpoint: &Endpoint) -> String {
    let path = endpoint.documented_path();
    path.strip_prefix(API_BASE).unwrap_or(&path).to_owned()
}

/// The tag of an endpoint: the first segment of its path.
fn tag(endpoint: &Endpoint) -> &'static str {
    endpoint.segments.first().copied().unwrap_or_default()
}

/// The tags. The description of a tag contains the summaries of its endpoints.
fn tags(config: &PagesConfig) -> Value {
    let mut tags: Vec<_> = config.endpoints.iter().map(tag).collect();
    let mut seen = BTreeSet::new();
    tags.retain(|tag| seen.insert(*tag));
    tags.into_iter()
        .map(|name| {
            let endpoints = config.endpoints.iter();
            let same = endpoints.filter(|endpoint| tag(endpoint) == name);
            let summaries: Vec<_> = same.map(|endpoint| endpoint.summary).collect();
            json!({ "name": name, "description": summaries.join(" ") })
        })
        .collect()
}

fn operations(endpoint: &Endpoint, config: &PagesConfig, responses: &mut NamedResponses) -> Value {
    let mut operation = json!({
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": description(endpoint, config),
        "tags": [tag(endpoint)],
        "responses": responses.of(endpoint),
    });
    let parameters = parameters::of(endpoint);
    if !parameters.is_empty() {
        schemas::insert(&mut operation, "parameters", Value::Array(parameters));
    }
    json!({ "get": operation })
}

/// The description of an endpoint: the number of items, fields of paid plans, and parameters without an effect.
fn description(endpoint: &Endpoint, config: &PagesConfig) -> String {
    let items = if endpoint.one {
        "`data` has one item."
    } else {
        "`data` has any number of items."
    };
    let paid = endpoint.item.iter().filter(|field| field.paid_only);
    let paid = listed(paid.map(|field| field.name));
    let ignored = listed(config.ignored(endpoint).iter().map(|param| param.name()));
    let mut sentences = vec![items.to_owned()];
    if !paid.is_empty() {
        sentences.push(format!(
            "Only some tiers see {paid}. By default, these are the paid tiers."
        ));
    }
    if !ignored.is_empty() {
        sentences.push(format!(
            "The data source ignores {ignored}: all values return the same data."
        ));
    }
    sentences.join(" ")
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(" and ")
}
