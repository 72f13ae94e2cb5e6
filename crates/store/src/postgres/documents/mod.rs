//! Shared documents.

pub mod shared_documents;
