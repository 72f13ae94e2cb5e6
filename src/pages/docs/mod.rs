//! The pages for people: `/` and `/docs`. The templates in this folder contain the prose. The contents of tables are
//! generated.

mod errors;
mod markdown;
mod operations;
mod people_pages;
mod reference;

pub use markdown::markdown;
pub use people_pages::{CONTENT, LANDING_CONTENT, landing, page};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_settings;
