//! Counts the open connections of each application. The limit is in `client_limits`.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;

use crate::gateway::{ConnectionApplication, ConnectionTrust};
use scoregate_base::keys::ApplicationId;

use super::client_limits::connections_of_application;

/// Open connections by application.
#[derive(Debug)]
pub struct ApplicationConnections {
    setting: AtomicUsize,
    open: Mutex<HashMap<ApplicationId, usize>>,
}

/// A counted connection. Dropped when the connection is closed.
#[derive(Debug)]
pub struct CountedConnection {
    connections: Arc<ApplicationConnections>,
    application: ApplicationId,
}

/// Whether a connection is counted for the application of its first key.
#[derive(Debug, Default)]
pub enum ConnectionMembership {
    /// No valid key has been sent.
    #[default]
    Undecided,
    /// The connection is counted until it is closed.
    Counted(#[expect(dead_code, reason = "only dropped")] CountedConnection),
    /// The application has too many connections. This connection is closed after a response.
    Surplus,
    /// The connection belongs to a proxy, which sends requests from many applications.
    Exempt,
}

impl ConnectionMembership {
    pub fn is_surplus(&self) -> bool {
        matches!(self, Self::Surplus)
    }

    /// Counts the connection once a valid key has been sent. Returns whether it has become surplus.
    pub fn decide(
        &mut self,
        trust: &ConnectionTrust,
        connections: &Arc<ApplicationConnections>,
    ) -> bool {
        if !matches!(self, Self::Undecided) {
            return false;
        }
        let Some(application) = trust.application() else {
            return false;
        };
        *self = connections
            .count(application)
            .map_or(Self::Surplus, Self::Counted);
        self.is_surplus()
    }
}

impl Default for ApplicationConnections {
    fn default() -> Self {
        Self {
            setting: AtomicUsize::new(usize::MAX),
            open: Mutex::default(),
        }
    }
}

impl ApplicationConnections {
    /// Changes the limit. Open connections stay open.
    pub fn allow(&self, max_per_application: usize) {
        // No other value depends on the setting. The previous limit may still apply to a connection that is being counted
        // concurrently.
        self.setting.store(max_per_application, Ordering::Relaxed);
    }

    /// Counts a connection. Returns `None` if the application has reached its limit.
    pub fn count(
        self: &Arc<Self>,
        application: ConnectionApplication,
    ) -> Option<CountedConnection> {
        let setting = self.setting.load(Ordering::Relaxed);
        let limit = connections_of_application(setting, application.requests_per_minute);
        // The comparison and the increment share one lock, so that concurrent connections cannot exceed the limit
        // together.
        let mut open = self.open.lock();
        let count = open.entry(application.id).or_default();
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(CountedConnection {
            connections: Arc::clone(self),
            application: application.id,
        })
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        if let Some(count) = open.get_mut(&self.application) {
            *count -= 1;
            // Every entry of the map has a connection, so the limit on connections also limits the size of the map.
            if *count == 0 {
                open.remove(&self.application);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_has_its_connections_and_gets_them_back() {
        let connections = Arc::new(ApplicationConnections::default());
        connections.allow(2);
        let [one, two] = ["app_0000000000A", "app_0000000000B"].map(|id| {
            let count = |requests_per_minute| {
                connections.count(ConnectionApplication {
                    id: id.parse().unwrap(),
                    requests_per_minute,
                })
            };
            let held: Vec<_> = (0..4).map_while(|_| count(1)).collect();
            assert!(
                held.len() == 2 && count(3).is_some(),
                "the limit is the larger of the setting and the requests per minute"
            );
            held
        });
        drop(one);
        assert_eq!(connections.open.lock().len(), 1);
        drop(two);
        assert!(connections.open.lock().is_empty());
    }
}
