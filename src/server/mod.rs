//! The public port: accepts connections and serves HTTP. `gateway` answers the requests.

mod activity;
mod application_connections;
mod certificates;
mod client_limits;
mod connection;
mod connection_context;
mod connection_end;
mod connection_slots;
mod deadline_timer;
mod deadlines;
mod displacement;
mod fair_turns;
mod frame_sequence;
mod handshake_threads;
mod head_scanner;
mod http1;
mod http2;
mod listener;
mod proxy_header;
mod request_pacer;
mod response_body;
mod stream;
mod tls;
mod unsent;

pub use certificates::{BadCertificate, CertificateFiles, Certificates};
pub use connection::ConnectionConfig;
pub use deadlines::Deadlines;
pub use listener::{LiveServerConfig, PublicPort, Server, ServerConfig, bind};
/// Only for the fuzz targets in `tests/fuzz/`.
#[doc(hidden)]
pub use proxy_header::{Reading, read as read_proxy_header};
pub use tls::{TlsError, TlsTermination};
