//! A whole store, for the parts of the program that pass it on. Others take the traits they use.

use super::{
    ChangeFeed, DocumentSharing, EvidenceStore, KeyStore, Ledger, MailQueue, NodeRegistry, NoticeStore,
    OwnerStore, RequestStore, StatusStore, StoreHealth, UsageStore, dump, embedded, postgres,
};

/// A whole store.
pub trait Store:
    KeyStore
    + Ledger
    + ChangeFeed
    + UsageStore
    + RequestStore
    + StatusStore
    + OwnerStore
    + MailQueue
    + NoticeStore
    + EvidenceStore
    + NodeRegistry
    + StoreHealth
    + DocumentSharing
{
}

impl Store for embedded::Embedded {}

impl Store for postgres::PostgresStore {}

/// The formats of a store in each of its forms, with their names.
pub fn formats() -> [(&'static str, String); 3] {
    [
        ("store file", embedded::FORMAT.to_string()),
        ("database", postgres::FORMAT.to_string()),
        ("export", dump::VERSION.to_string()),
    ]
}
