//! The trust in the client of a connection, which depends on whether the client has sent a valid key or an admitted
//! request. The gateway sets the trust; the limits of the server depend on it (`client_limits` in `server`).

use std::{
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
};

use tokio::sync::Notify;

use crate::{accounts::Account, gateway::stages::authenticate::Caller};
use scoregate_base::{clock::Wall, evidence::HourEvidence, keys::ApplicationId};

/// The level of trust in a client. Each level includes the lower levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrustLevel {
    /// No valid key.
    #[default]
    Anonymous,
    /// A valid key. It may have no units left, so its requests may cost nothing.
    Authenticated,
    /// An admitted request of a paid tier: a request that took a minute token. This includes responses from the cache
    /// and 304s, but not `/me` and refusals before admission. A trusted proxy has this level from the beginning.
    Admitted,
}

/// The application that a connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionApplication {
    /// The id of the application.
    pub id: ApplicationId,
    /// The application's limit of requests per minute.
    pub requests_per_minute: u32,
}

/// The trust in the client of a connection. The level never falls. Relaxed atomics are sufficient: each is used
/// independently and publishes no other data.
#[derive(Debug, Default)]
pub struct ConnectionTrust {
    level: AtomicU8,
    application: OnceLock<ConnectionApplication>,
    notify: Arc<Notify>,
    /// A hash of the application, address and time of the last recorded origin.
    origin: AtomicU64,
}

impl ConnectionTrust {
    /// Creates the trust in an anonymous client. `notify` is notified when the level rises.
    pub fn new(notify: Arc<Notify>) -> Self {
        Self {
            notify,
            ..Self::default()
        }
    }

    /// The level.
    pub fn level(&self) -> TrustLevel {
        match self.level.load(Ordering::Relaxed) {
            0 => TrustLevel::Anonymous,
            1 => TrustLevel::Authenticated,
            _ => TrustLevel::Admitted,
        }
    }

    /// The application of the first valid key on this connection.
    pub fn application(&self) -> Option<ConnectionApplication> {
        self.application.get().copied()
    }

    /// Records a valid key of this application. Only the first key on a connection has an effect.
    pub fn record_key(&self, application: ConnectionApplication) {
        if self.application.set(application).is_ok() {
            self.raise_to(TrustLevel::Authenticated);
        }
    }

    /// Records that a request of a paid tier was admitted.
    pub fn record_admission(&self) {
        self.raise_to(TrustLevel::Admitted);
    }

    /// Records the key of a caller. After the first call, this costs one atomic load.
    pub(crate) fn authenticated(&self, caller: &Caller) {
        if self.level() == TrustLevel::Anonymous {
            let requests_per_minute = caller.limits.minute;
            self.record_key(ConnectionApplication {
                id: caller.account.id,
                requests_per_minute,
            });
        }
    }

    /// Whether the origin of a request has to be recorded, because it differs from the last recorded origin: another
    /// application or address, or a later time window.
    pub(crate) fn is_new_origin(&self, account: &Arc<Account>, address: IpAddr, now: Wall) -> bool {
        let address = match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        };
        let account = Arc::as_ptr(account).addr() as u64;
        let origin =
            address ^ account.rotate_left(32) ^ u64::from(HourEvidence::window_of(now)) << 40 | 1;
        if self.origin.load(Ordering::Relaxed) == origin {
            return false;
        }
        self.origin.store(origin, Ordering::Relaxed);
        true
    }

    /// Records that a request of this caller was admitted. After the first call, this costs one atomic load.
    pub(crate) fn admitted(&self, caller: &Caller) {
        if self.level() != TrustLevel::Admitted && caller.rights.is_paid() {
            self.record_admission();
        }
    }

    /// Records that the client is a trusted proxy.
    pub fn record_trusted_proxy(&self) {
        self.raise_to(TrustLevel::Admitted);
    }

    fn raise_to(&self, level: TrustLevel) {
        if self.level.fetch_max(level as u8, Ordering::Relaxed) < level as u8 {
            self.notify.notify_one();
        }
    }
}
