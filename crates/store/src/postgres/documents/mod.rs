//! Shared documents.

pub(super) mod document_statements;
pub(super) mod shared_documents;
