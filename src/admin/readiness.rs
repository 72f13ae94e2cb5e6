//! Readiness of the public port: everything is loaded, no shutdown has begun, and its runtime runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::heartbeat::Heartbeat;

/// Whether the public port serves requests. `/readyz` and the status page use it.
#[derive(Debug)]
pub struct Readiness {
    /// Set once everything is loaded, cleared when shutdown begins.
    is_serving: AtomicBool,
    /// Heartbeat of the public port's runtime.
    heartbeat: Arc<Heartbeat>,
}

impl Readiness {
    /// Not ready yet.
    pub fn new(heartbeat: Arc<Heartbeat>) -> Self {
        Self { is_serving: AtomicBool::new(false), heartbeat }
    }

    /// The heartbeat of the public port's runtime.
    pub fn heartbeat(&self) -> Arc<Heartbeat> {
        Arc::clone(&self.heartbeat)
    }

    /// Sets whether requests are served.
    pub fn set(&self, is_serving: bool) {
        self.is_serving.store(is_serving, Ordering::Release);
    }

    /// Fails with the reason if the public port is not ready.
    pub fn check(&self) -> Result<(), String> {
        if !self.is_serving.load(Ordering::Acquire) {
            return Err("starting or stopping".into());
        }
        self.heartbeat.is_ready().map_err(stalled)
    }

    /// The same for a task of the public port's runtime: since it runs, so does the runtime.
    pub fn check_from_within(&self) -> Result<(), String> {
        self.heartbeat.beat();
        self.check()
    }

    /// Fails with the reason if a restart is needed.
    pub(super) fn check_alive(&self) -> Result<(), String> {
        self.heartbeat.is_alive().map_err(stalled)
    }
}

fn stalled(age: Duration) -> String {
    format!("the runtime of the public port has not run a task for {} s", age.as_secs())
}

#[cfg(test)]
mod tests {
    use metrics::Gauge;

    use super::*;
    use crate::clock::{Clock, Wall};

    #[test]
    fn a_server_is_ready_while_it_serves_and_its_runtime_runs() {
        let (clock, manual) = Clock::manual(Wall::from_seconds(0));
        let readiness = Readiness::new(Arc::new(Heartbeat::new(clock, Gauge::noop())));
        assert_eq!(readiness.check().unwrap_err(), "starting or stopping");
        readiness.set(true);
        assert_eq!(readiness.check(), Ok(()));
        manual.advance(Duration::from_secs(5));
        assert!(readiness.check().unwrap_err().contains("for 5 s"));
        assert_eq!(readiness.check_from_within(), Ok(()));
        assert_eq!(readiness.check(), Ok(()));
        readiness.set(false);
        assert_eq!(readiness.check().unwrap_err(), "starting or stopping");
    }
}
