//! Options of the commands that run the gateway.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

/// Addresses and the data directory. These options override the configuration file.
#[derive(Clone, Debug, Default, Args)]
pub struct LocationArgs {
    /// Address of the public port, such as 127.0.0.1:8080.
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Address of the side port (metrics, health), such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDR")]
    pub admin_listen: Option<SocketAddr>,
    /// State directory: keys, quotas, stored documents.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}
