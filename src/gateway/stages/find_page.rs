//! Stage 2: finds the pages and redirects that need no key.

use http::{Method, request::Parts};

use crate::{
    gateway::{
        AddressGuard, Gateway, Peer, Refusal,
        response::{page_reply::PageReply, preferred_form::prefers_markdown, reply::Reply},
    },
    instruments::RequestSubject,
    pages::Pages,
};
use scoregate_base::{
    clock::{Now, Wall},
    routes::API_BASE,
};

use super::parse::{MethodKind, ParsedRequest};

/// The liveness endpoint, which answers as long as the process runs.
const HEALTH: &str = "/healthz";

/// The page or redirect, or the response to OPTIONS.
pub fn find_page(
    gateway: &Gateway,
    parsed: &ParsedRequest<'_>,
    now: Wall,
) -> Option<(RequestSubject, Reply)> {
    if parsed.method == MethodKind::Options {
        return Some((RequestSubject::Options, Reply::Options));
    }
    // Paths of the API need a key, so that clients without a key cannot discover routes.
    if parsed.path.starts_with(API_BASE) {
        return None;
    }
    if parsed.path == HEALTH {
        return Some((RequestSubject::Page, Reply::Health));
    }
    let markdown = gateway.pages.find_markdown(parsed.path);
    let page = markdown
        .filter(|_| prefers_markdown(parsed.headers.map()))
        .or_else(|| gateway.pages.find(parsed.path, now))
        .or_else(|| gateway.status.as_ref()?.find(parsed.path));
    let reply = match page {
        Some(page) => Reply::Page(PageReply::new(page, parsed.headers.map())),
        None => Reply::Moved(Pages::moved(parsed.path)?),
    };
    Some((RequestSubject::Page, reply))
}

/// Refuses a page if the client's address has downloaded too many bytes of pages.
pub fn within_page_bytes(
    reply: Reply,
    head: &Parts,
    guard: &AddressGuard,
    peer: Peer,
    now: Now,
) -> Result<Reply, Refusal> {
    if let Reply::Page(page) = &reply
        && head.method != Method::HEAD
        && let Err(retry_after) = guard.take_page(peer.address, page.bytes(), now)
    {
        return Err(Refusal::TooManyPages { retry_after });
    }
    Ok(reply)
}
