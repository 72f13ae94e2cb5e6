//! A whole store, for the parts of the program that pass it on. Others take the traits they use.

use super::{
    ChangeFeed, DocumentSharing, KeyStore, Ledger, MailQueue, NodeRegistry, OwnerStore, RequestStore,
    StatusStore, StoreHealth, UsageStore,
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
    + NodeRegistry
    + StoreHealth
    + DocumentSharing
{
}

impl<T> Store for T where
    T: KeyStore
        + Ledger
        + ChangeFeed
        + UsageStore
        + RequestStore
        + StatusStore
        + OwnerStore
        + MailQueue
        + NodeRegistry
        + StoreHealth
        + DocumentSharing
{
}
