//! Reports of gateways, the status page, and the state of the database.

pub(super) mod daily_totals;
pub(super) mod gateway_reports;
pub(super) mod inspect;
pub(super) mod status_store;
