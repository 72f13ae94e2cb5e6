//! The status page and its Atom feed, rendered from a [`ServiceStatus`]. Pure: `status` collects the contents.
//!
//! Times are absolute, and nothing on the page changes only because time passes. Equal content therefore has equal
//! bytes.

mod availability;
mod chart;
mod feed;
mod service_status;
mod status_pages;
mod threads;
mod view;

pub use availability::{DayAvailability, SHOWN_DAYS, last_days};
pub use service_status::{DataState, ServiceStatus, StatusSite};
pub(super) use status_pages::FEED;
pub use status_pages::StatusPages;

#[cfg(test)]
mod tests;
