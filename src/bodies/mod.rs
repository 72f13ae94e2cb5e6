//! Bodies of requests: read within limits of size, time and memory. `server` decides which requests have a body, and
//! the services that read it interpret it.

mod fair_shares;
mod request_body;

pub use fair_shares::{Holder, Share};
pub use request_body::{BodyBudget, BodyFailure, RequestBody};
