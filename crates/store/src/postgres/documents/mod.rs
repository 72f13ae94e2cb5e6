//! Shared documents.

pub(super) mod shared_documents;
