//! The open-file limit, and how many files connections may use.
//!
//! Some descriptors are reserved for the store, the side port and other purposes. `server` handles failures to accept
//! connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for everything except connections of the public port. 128 are for connections of the side port.
/// At most half of all descriptors are reserved.
const RESERVED: u64 = 192;

/// The open-file limit; `None` if unlimited.
#[derive(Clone, Copy, Debug)]
pub struct OpenFiles(Option<u64>);

impl OpenFiles {
    /// Raises the soft limit to the hard limit: the default is too low for servers.
    pub fn raise() -> Self {
        let limit = getrlimit(Resource::Nofile);
        if limit.current == limit.maximum {
            return Self(limit.current);
        }
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => Self(limit.maximum),
            Err(error) => {
                tracing::warn!(%error, limit = limit.current, "open-file limit cannot be raised");
                Self(limit.current)
            }
        }
    }

    /// The maximum number of connections: `configured`, or fewer if the open-file limit is too low.
    pub fn max_connections(self, configured: usize) -> usize {
        let Some(limit) = self.0 else {
            return configured;
        };
        let possible =
            usize::try_from((limit - RESERVED.min(limit / 2)).max(1)).unwrap_or(usize::MAX);
        if possible < configured {
            tracing::warn!(
                configured,
                possible,
                limit,
                "connection limit reduced to fit the open-file limit; raise the open-file limit (ulimit -n, LimitNOFILE)"
            );
        }
        configured.min(possible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_reserved_file_descriptors() {
        assert_eq!(OpenFiles(None).max_connections(10_000), 10_000);
        assert_eq!(OpenFiles(Some(1_024)).max_connections(10_000), 832);
        assert_eq!(OpenFiles(Some(1_024)).max_connections(100), 100);
        assert_eq!(OpenFiles(Some(128)).max_connections(10_000), 64);
        assert_eq!(OpenFiles(Some(1)).max_connections(100), 1);
    }
}
