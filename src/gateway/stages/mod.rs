//! The stages of the request path. Each stage is a file, named with a verb. A stage never calls another stage.

pub mod admit;
pub mod authenticate;
pub mod charge;
pub mod fetch;
pub mod find_page;
pub mod guard;
pub mod me;
pub mod parse;
pub mod resolve;
pub mod respond;
pub mod settle;
