//! The settings. They are read from the file and the environment (`file`), checked against the table (`settings`) and
//! converted to typed values (`resolve`). All problems are reported together, each with its path, the value found and a
//! remedy.
//!
//! Only this module depends on the file format. Each component defines its typed settings; this module fills them in.

mod config_problem;
mod config_reader;
mod file;
mod reload;
mod resolve;
mod sample;
mod secrets;
mod sections;
mod setting_value;
mod settings;
mod showable;
mod shown;
mod sign_up;
mod table_reader;
mod tables;
#[cfg(test)]
mod tests;
mod typed_config;
mod words;

pub use config_problem::{ConfigProblem, ConfigProblems};
pub use file::{ConfigValues, read_environment, read_file, read_text};
pub use resolve::resolve;
pub use sample::sample;
pub use secrets::{read_database_password, read_secrets};
pub use sections::leaks::read_public_keys;
pub use sections::mail::open_mail_transport;
pub use sections::server::side_port;
pub use sections::store::check_database_files;
pub use sections::tls::{certificate_files, read_certificates};
pub use sections::upstream::{UpstreamConfig, read_backend_tls};
pub use settings::{SETTINGS, Setting, ValueKind};
pub use typed_config::Config;
