//! The side port, and settings that are reloaded.

mod config_watch;
mod explained_requests;
mod reloading;
mod side_port;
mod side_port_connections;
mod side_port_keys;
mod side_port_settings;
mod side_port_under_load;
mod suspects;
