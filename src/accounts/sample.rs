//! A stored application for tests.

pub use scoregate_store::sample::application as stored;
