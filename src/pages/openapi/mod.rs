//! `/openapi.json`: the API description in OpenAPI 3.1, generated from the tables in `routes`. Tests validate every
//! response of the gateway against it.

mod document;
mod error_examples;
mod parameters;
mod responses;
mod schemas;

pub use document::document;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_settings;
