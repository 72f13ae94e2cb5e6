//! The side port, for operators. Metrics and health need no token. Commands on keys, documents, the backend, settings
//! and the log need the token or the socket.
//!
//! The side port is separate from the public port and listens on loopback by default. It has a separate runtime, so that it
//! responds even when the public port is saturated.

mod access;
mod administration;
mod body;
mod cache;
mod command;
mod command_problem;
mod explain;
mod fleet;
mod heartbeat;
mod idempotency;
mod key_lines;
mod log_level;
mod operator;
mod paths;
mod readiness;
mod reload;
mod scoring;
mod serve;
mod settings;
mod side_connections;
mod suspects;
mod upstream;
mod usage_view;
mod view;

pub use access::{AdminAccess, BadToken};
pub use administration::Administration;
pub use command::{
    AccountsCommand, AdminCommand, ApplicationUpdate, CacheCommand, KeyRotation, KeysCommand,
    LimitChange, LiveCommand, LogCommand, MAX_BATCH, NewKey, NodesCommand, OwnerLetter, PurgeBody,
    RequestsCommand, SettingsCommand, SnapshotCommand, StatusCommand, SuspectsCommand,
    UpstreamCommand, UsageCommand, UsageExport, UsageExportCommand, to_request,
};
pub use command_problem::CommandProblem;
pub use explain::ExplainBody;
pub use fleet::{ApplicationRequestsView, DayRequestsView, EndpointRequestsView, FleetReports};
pub use heartbeat::Heartbeat;
pub use key_lines::{FIELDS, REQUIRED, known_field, read_json};
pub use operator::operator;
pub use readiness::{Readiness, Unreadiness};
pub use reload::{ReloadRequest, Reloaded, Reloads};
pub use serve::{ActiveSettings, SideConfig, SidePort, run};
pub use settings::SettingView;
pub use suspects::{
    DailySuspects, EvidenceDayView, EvidenceHourView, EvidenceView, SuspectView, SuspectsView,
};
pub use usage_view::UsageView;
pub use view::{ExportView, ImportView, LineView};
