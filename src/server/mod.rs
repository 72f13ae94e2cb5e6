//! The public port: accepting connections, speaking HTTP on each, letting them go.
//!
//! Knows sockets and the codec; what a request is answered, the gateway decides. Not for: the side port (`admin`).

mod certificates;
mod closed;
mod connection;
mod deadlines;
mod displacement;
mod heads;
mod host;
mod http1;
mod http2;
mod listener;
mod paced;
mod places;
mod proxy_header;
mod pulse;
mod rewound;
mod sent;
mod tls;
mod waiting;
mod watch;
mod watched;

pub use certificates::{BadCertificate, CertificateFiles, Certificates};
pub use connection::ConnectionConfig;
pub use deadlines::Deadlines;
pub use listener::{Manners, PublicPort, Server, ServerConfig, bind};
/// For the fuzz targets below `tests/fuzz/` alone.
#[doc(hidden)]
pub use proxy_header::{Reading, read as read_proxy_header};
pub use tls::{NoTls, Tls};
