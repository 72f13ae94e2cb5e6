//! The side port: metrics and health for anyone who can reach it, keys for those with the token or the socket.
//!
//! Never on the public port; loopback by default; a runtime of its own, so that it answers when the public port is
//! saturated. Not for: callers of the API.

mod access;
mod command;
mod serve;
mod view;

pub use access::{Access, BadToken};
pub use command::{Command, NewKey, Problem, perform};
pub use serve::{Side, SideConfig, run};
pub use view::{ApplicationView, IssuedView, KeyView, PageView};
