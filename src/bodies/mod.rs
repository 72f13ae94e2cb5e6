//! Bodies of requests: read within limits of size, time and memory. Which requests have one is decided in `server`, and what
//! is in it by the services that read it.

mod fair_shares;
mod request_body;

pub use fair_shares::Holder;
pub use request_body::{BodyBudget, BodyFailure, RequestBody};
