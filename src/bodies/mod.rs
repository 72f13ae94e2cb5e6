//! Request bodies, read within limits on size, time and memory. `server` decides which requests have a body, and
//! services interpret it.

mod fair_shares;
mod request_body;

pub use fair_shares::{Holder, Share};
pub use request_body::{BodyBudget, BodyFailure, RequestBody};
