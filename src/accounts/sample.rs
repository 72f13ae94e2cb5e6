//! A stored application for tests.

pub(crate) use scoregate_store::sample::application as stored;
