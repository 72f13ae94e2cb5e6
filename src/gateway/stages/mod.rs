//! The stages of the request path. Each stage is a file, named with a verb. A stage never calls another stage.

pub(super) mod admit;
pub(super) mod authenticate;
pub(super) mod charge;
pub(super) mod fetch;
pub(super) mod find_page;
pub(super) mod guard;
pub(super) mod me;
pub(super) mod parse;
pub(super) mod resolve;
pub(super) mod respond;
pub(super) mod settle;
