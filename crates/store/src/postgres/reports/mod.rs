//! Reports of gateways, and the state of the database.

pub(super) mod gateway_reports;
pub(super) mod inspect;
