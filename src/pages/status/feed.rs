//! The Atom feed of the status page (RFC 4287), with an entry for each message from the operator. Messages and entries
//! are never changed. The feed does not contain outages that are derived from stored minutes, because minutes may be
//! stored late and an entry cannot be withdrawn. Ids do not depend on the address of the service.

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest as _, Sha256};

use crate::pages::html::escape;
use scoregate_base::clock::Wall;
use scoregate_store::StatusMessage;

use super::{
    StatusSite,
    threads::{name, paragraphs},
};

/// The feed of these messages, newest first. If there are no messages, the time of the feed is the start of the
/// history.
pub fn feed(site: &StatusSite, messages: &[StatusMessage], begun: Wall) -> String {
    let service = xml(&site.service);
    let updated = messages.first().map_or(begun, |newest| newest.at).rfc3339();
    let id = id_of(&["feed", &site.service, &site.url("/")]);
    let own = xml(&site.url("/status.atom"));
    let page = xml(&site.url("/status"));
    let entries: String = messages
        .iter()
        .map(|message| entry(site, message))
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
         <title>Status of {service}</title>\n<id>{id}</id>\n<updated>{updated}</updated>\n\
         <author><name>{service}</name></author>\n\
         <link rel=\"self\" type=\"application/atom+xml\" href=\"{own}\"/>\n\
         <link rel=\"alternate\" type=\"text/html\" href=\"{page}\"/>\n\
         {entries}</feed>\n"
    )
}

fn entry(site: &StatusSite, message: &StatusMessage) -> String {
    let StatusMessage {
        id,
        incident,
        at,
        state,
        title,
        message,
    } = message;
    let id = id_of(&[&id.to_string(), &at.millis().to_string(), title, message]);
    let at = at.rfc3339();
    let link = xml(&site.url(&format!("/status#incident-{incident}")));
    format!(
        "<entry>\n<title>{}: {}</title>\n<id>{id}</id>\n<published>{at}</published>\n<updated>{at}</updated>\n\
             <link rel=\"alternate\" type=\"text/html\" href=\"{link}\"/>\n<content type=\"html\">{}</content>\n</entry>\n",
        name(*state),
        xml(title),
        xml(&paragraphs(message))
    )
}

/// Escapes text for XML. Characters that XML cannot contain at all are replaced. Such characters can only come from
/// manual edits.
fn xml(text: &str) -> String {
    let is_valid =
        |c: char| matches!(c, '\t' | '\n') || (c >= ' ' && !matches!(c, '\u{FFFE}' | '\u{FFFF}'));
    escape(
        &text
            .chars()
            .map(|c| if is_valid(c) { c } else { '\u{FFFD}' })
            .collect::<String>(),
    )
}

/// An id: a URI with the hash of these texts (RFC 6920).
fn id_of(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_be_bytes());
        hash.update(text);
    }
    let hash = BASE64URL_NOPAD.encode(&hash.finalize());
    format!("ni:///sha-256;{hash}")
}
