//! Reports on all gateways that use the store: the list of gateways, usage and requests.

mod reports;
mod requests_view;
mod views;

pub use reports::FleetReports;
pub use requests_view::{ApplicationRequestsView, DayRequestsView, EndpointRequestsView};
