//! The side port: metrics and health for anyone who can reach it under a host name of its own; keys, documents, the backend, settings and the log for
//! those with the token or the socket.
//!
//! Never on the public port; loopback by default; a runtime of its own, so that it answers when the public port is
//! saturated. Not for: callers of the API.

mod access;
mod body;
mod cache;
mod command;
mod heartbeat;
mod key_lines;
mod log_level;
mod operator;
mod paths;
mod query;
mod reload;
mod scoring;
mod serve;
mod settings;
mod timer;
mod upstream;
mod usage;
mod view;

pub use access::{AdminAccess, BadToken};
pub use cache::{DocumentView, PurgeBody};
pub use command::{AdminCommand, CommandProblem, MOST_IN_A_BATCH, NewKey, perform};
pub use heartbeat::Heartbeat;
pub use key_lines::{FIELDS, LineObject, NEEDED, known_field, read_json};
pub use operator::operator;
pub use paths::{CACHE, PURGE, RELOAD, SCORING_REFRESH, USAGE};
pub use reload::{ReloadAsked, Reloaded, Reloads};
pub use serve::{ActiveSettings, SideConfig, SidePort, run};
pub use settings::SettingView;
pub use usage::{AllowanceView, ApplicationUseView, StrangerUseView, UsageView};
pub use view::{
    ApplicationView, AuditView, ChangeView, ExportView, ImportView, IssuedView, KeyView, LineView, PageView,
};
