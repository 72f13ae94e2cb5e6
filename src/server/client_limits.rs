//! The limits of a client on a connection. They depend on whether the client has sent a valid key or an admitted
//! request of a paid tier. Pure functions. `connection_slots` limits connections per address; `gateway` limits
//! requests.

use crate::gateway::TrustLevel;

/// HTTP/2: concurrent requests on a connection, which the codec enforces for all clients.
// RFC 9113 (6.5.2) recommends at least this number, because a lower limit would reduce parallelism unnecessarily.
pub const STREAMS: u32 = 100;

/// A request head with more bytes than this is larger than the gateway accepts, and needs one of the permits that limit
/// the memory for such heads.
pub const LARGE_HEAD: usize = 24_576;

/// Bytes that may arrive on HTTP/2 without a request beginning or ending, in addition to awaited bodies: enough for two
/// request heads and one window of an unwanted body. Without this limit, a client could keep sending frames that are answered
/// without a request, such as PING and SETTINGS.
pub const UNSOLICITED_BYTES: usize = 128 * 1_024;
/// For each group of this many bytes sent, one more byte may arrive, because a client that reads a large response sends
/// `WINDOW_UPDATE` frames.
pub const SENT_PER_RECEIVED: usize = 4;

/// The limits of one client. A pending response is complete, but the client has not received all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// HTTP/2: number of requests on a connection that are read before the first of them is answered.
    pub unanswered: usize,
    /// HTTP/2: maximum number of pending responses on a connection.
    pub pending: usize,
    /// HTTP/2: when the process has this many pending responses, a request of this client is accepted only on a
    /// connection without pending responses. The number of connections is limited too. A response uses up to 5 kB in
    /// addition to its body, which is shared with the cache.
    pub pending_in_process: usize,
    /// When the process has this many pending responses, this client must read within the short timeout in `deadlines`.
    pub hurried_from: usize,
    /// HTTP/2: maximum number of requests that are refused while the client reads no pending response. After that, no
    /// more requests are passed to the codec, and the connection is closed gracefully. The codec keeps a record of 328
    /// bytes for each refused request, in a table that grows by doubling. Together with the pending requests there are
    /// at most 32 records.
    pub refused: usize,
}

/// Browsers need fewer streams than this to read the public pages. A client that keeps its flow-control windows open has no pending response.
const ANONYMOUS: ClientLimits = ClientLimits {
    unanswered: 1,
    pending: 8,
    pending_in_process: 8_192,
    hurried_from: 4_096,
    refused: 20,
};

/// The key may belong to a free tier or have no units left, so its requests may cost nothing. Clients without a key cannot use up
/// the process-wide limit for clients with a key.
const AUTHENTICATED: ClientLimits = ClientLimits {
    unanswered: 8,
    pending_in_process: 16_384,
    hurried_from: usize::MAX,
    ..ANONYMOUS
};

/// Admitted requests are limited per minute, and connections per application.
const ADMITTED: ClientLimits = ClientLimits {
    unanswered: STREAMS as usize,
    pending: STREAMS as usize,
    pending_in_process: 32_768,
    hurried_from: usize::MAX,
    refused: usize::MAX,
};

/// A surplus connection of an application gets one response.
const SURPLUS: ClientLimits = ClientLimits {
    pending: 0,
    hurried_from: 0,
    ..ANONYMOUS
};

impl ClientLimits {
    /// The limits of a client on a connection. A connection in excess of the limit of its application is surplus.
    pub const fn of(level: TrustLevel, is_surplus: bool) -> Self {
        match (level, is_surplus) {
            (TrustLevel::Admitted, _) => ADMITTED,
            (TrustLevel::Anonymous | TrustLevel::Authenticated, true) => SURPLUS,
            (TrustLevel::Authenticated, false) => AUTHENTICATED,
            (TrustLevel::Anonymous, false) => ANONYMOUS,
        }
    }
}

/// Maximum number of connections of an application: the setting, or the application's limit of requests per minute if
/// that is larger.
pub fn connections_of_application(setting: usize, requests_per_minute: u32) -> usize {
    setting.max(usize::try_from(requests_per_minute).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_hold_more_the_more_it_has_shown() {
        let levels = [
            TrustLevel::Anonymous,
            TrustLevel::Authenticated,
            TrustLevel::Admitted,
        ];
        let [anonymous, authenticated, admitted] =
            levels.map(|level| ClientLimits::of(level, false));
        assert_eq!(
            [anonymous, authenticated, admitted].map(|limits| limits.pending),
            [8, 8, 100]
        );
        assert_eq!(
            [anonymous, authenticated, admitted].map(|limits| limits.unanswered),
            [1, 8, 100]
        );
        let in_process =
            [anonymous, authenticated, admitted].map(|limits| limits.pending_in_process);
        assert_eq!(in_process, [8_192, 16_384, 32_768]);
        // If an application of a paid tier exceeds the limit, the requests in flight are still answered.
        assert_eq!(ClientLimits::of(TrustLevel::Admitted, true), admitted);
        assert_eq!(ClientLimits::of(TrustLevel::Authenticated, true).pending, 0);
    }

    #[test]
    fn the_setting_limits_connections_of_all_but_the_largest_applications() {
        let tiers = [1, 60, 120, 300, 1_000];
        let connections = tiers.map(|minute| connections_of_application(256, minute));
        assert_eq!(connections, [256, 256, 256, 300, 1_000]);
    }
}
