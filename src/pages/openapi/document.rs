//! The document as a whole.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use scoregate_base::routes::{API_BASE, Endpoint};

use super::super::discovery::{API_CATALOG, SECURITY_TXT, SUMMARY};
use super::super::paths::{DOCS_MARKDOWN, LLMS_TXT};
use super::super::status::FEED;
use super::super::{DOCS, OPENAPI, PagesConfig, STATUS, SiteLinks, sample};
use super::responses::NamedResponses;
use super::{parameters, responses, schemas};

/// The parts, in reading order.
#[derive(Serialize)]
struct OpenApiDocument {
    openapi: &'static str,
    info: Value,
    #[serde(rename = "externalDocs")]
    external_docs: Value,
    servers: Value,
    security: Value,
    tags: Value,
    paths: Map<String, Value>,
    components: Value,
}

/// The description as text.
pub(in super::super) fn document(config: &PagesConfig) -> String {
    let mut responses = NamedResponses::default();
    let paths = config
        .endpoints
        .iter()
        .map(|endpoint| (path(endpoint), operations(endpoint, config, &mut responses)))
        .collect();
    let document = OpenApiDocument {
        openapi: "3.1.0",
        info: info(config),
        external_docs: external_docs(config),
        servers: json!([{ "url": config.base() }]),
        security: json!([{ "bearer": [] }, { "header": [] }]),
        tags: tags(config),
        paths,
        components: json!({
            "securitySchemes": security_schemes(),
            "parameters": parameters::all(),
            "headers": responses::headers(),
            "responses": responses.finish(),
            "schemas": schemas::all(config),
        }),
    };
    sample::text_of(&document)
}

fn external_docs(config: &PagesConfig) -> Value {
    let url = config.links.docs_url.as_deref().unwrap_or(DOCS);
    json!({ "url": url, "description": "The documentation." })
}

fn info(config: &PagesConfig) -> Value {
    let mut info = json!({
        "title": format!("{} data API", config.service),
        "version": config.version,
        "summary": SUMMARY,
        "description": format!("Rankings, a global index, alerts, incidents, provider status, analytics and drift signatures. \
            Every request needs a key. Scores change about once an hour. Any method other than GET, HEAD and OPTIONS \
            is a 405, any other path a 404. No key is needed for {}, which are not under the base address.", public_paths(config)),
        "termsOfService": config.links.terms(),
        "license": { "name": config.license },
    });
    if let Some(contact) = contact(&config.links) {
        schemas::insert(&mut info, "contact", contact);
    }
    info
}

/// All paths that need no key, in words.
pub(super) fn public_paths(config: &PagesConfig) -> String {
    let mut paths =
        vec!["/", DOCS, DOCS_MARKDOWN, LLMS_TXT, OPENAPI, "/healthz", "/robots.txt", "/favicon.ico"];
    paths.extend(config.status_page.then_some([STATUS, FEED]).into_iter().flatten());
    paths.extend(config.root().map(|_| API_CATALOG));
    paths.extend(config.links.security_contact.as_ref().map(|_| SECURITY_TXT));
    let last = paths.pop().unwrap_or_default();
    let others: Vec<_> = paths.iter().map(|path| format!("`{path}`")).collect();
    format!("{} and `{last}`", others.join(", "))
}

/// The Contact Object, if anything is known about the contact.
fn contact(links: &SiteLinks) -> Option<Value> {
    let SiteLinks { contact_name, contact_url, contact_email, .. } = links;
    let fields = [("name", contact_name), ("url", contact_url), ("email", contact_email)];
    let known = fields.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text.clone()?.into())));
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
pub(super) fn path(endpoint: &Endpoint) -> String {
    let path = endpoint.documented_path();
    path.strip_prefix(API_BASE).unwrap_or(&path).to_owned()
}

/// The tag of an endpoint: the first segment of its path.
fn tag(endpoint: &Endpoint) -> &'static str {
    endpoint.segments.first().copied().unwrap_or_default()
}

fn tags(config: &PagesConfig) -> Value {
    let mut tags: Vec<_> = config.endpoints.iter().map(tag).collect();
    let mut seen = BTreeSet::new();
    tags.retain(|tag| seen.insert(*tag));
    tags.into_iter().map(|tag| json!({ "name": tag })).collect()
}

fn operations(endpoint: &Endpoint, config: &PagesConfig, responses: &mut NamedResponses) -> Value {
    let mut operation = |head: bool| {
        let name = if head { format!("{}_head", endpoint.name) } else { endpoint.name.to_owned() };
        let mut operation = json!({
            "operationId": name,
            "summary": endpoint.summary,
            "tags": [tag(endpoint)],
            "responses": responses.of(endpoint, head),
        });
        let head = head.then(|| "The same as GET, without a body, at the same price.".to_owned());
        let description: Vec<String> = head.into_iter().chain(ignored(endpoint, config)).collect();
        if !description.is_empty() {
            schemas::insert(&mut operation, "description", description.join(" ").into());
        }
        operation
    };
    let (get, head) = (operation(false), operation(true));
    let mut item = json!({ "get": get, "head": head });
    let parameters = parameters::of(endpoint);
    if let Some(item) = item.as_object_mut().filter(|_| !parameters.is_empty()) {
        item.insert("parameters".into(), Value::Array(parameters));
    }
    item
}

/// Parameters without an effect, if any.
fn ignored(endpoint: &Endpoint, config: &PagesConfig) -> Option<String> {
    let names: Vec<_> = config.ignored(endpoint).iter().map(|param| format!("`{}`", param.name())).collect();
    let names = names.join(" and ");
    (!names.is_empty()).then(|| format!("The data source ignores {names}: all values return the same data."))
}
