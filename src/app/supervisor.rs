//! Notifies the service manager (systemd or compatible) that the program is ready or stopping, and sends watchdog
//! keep-alives while the public port's runtime is running. A separate thread sends the notifications, because sending
//! blocks when the manager's socket is full.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::Duration,
};

use anyhow::Context as _;
use sd_notify::NotifyState;

use crate::admin::Heartbeat;

/// States reported to the service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupervisorState {
    Ready,
    Stopping,
}

/// The channel to the sending thread. The thread ends when the channel is dropped.
pub struct Supervisor {
    stages: Sender<SupervisorState>,
    /// Disconnected when the thread has sent everything and ended.
    ended: Receiver<()>,
}

impl Supervisor {
    /// Starts the thread, which does nothing if there is no service manager.
    pub fn start(heartbeat: Arc<Heartbeat>) -> anyhow::Result<Self> {
        let (stages, notifications) = channel();
        let (done, ended) = channel();
        // Keep-alives are sent twice within the watchdog timeout.
        let every = sd_notify::watchdog_enabled()
            .filter(|limit| !limit.is_zero())
            .map(|limit| limit / 2);
        let thread = std::thread::Builder::new()
            .name("supervisor".into())
            .spawn(move || {
                serve(&notifications, &heartbeat, every);
                drop::<Sender<()>>(done);
            });
        thread.context("the thread that notifies the service manager cannot be started")?;
        Ok(Self { stages, ended })
    }

    /// Queues a notification. Never blocks.
    pub fn notify(&self, stage: SupervisorState) {
        if self.stages.send(stage).is_err() {
            tracing::warn!(
                ?stage,
                "service manager cannot be notified; the notification thread has ended"
            );
        }
    }

    /// Blocks until all notifications are sent, for at most `timeout`.
    pub fn finish(self, timeout: Duration) {
        drop(self.stages);
        if self.ended.recv_timeout(timeout) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("service manager does not accept notifications");
        }
    }
}

fn serve(stages: &Receiver<SupervisorState>, heartbeat: &Heartbeat, every: Option<Duration>) {
    loop {
        let next = every.map_or_else(
            || stages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            |every| stages.recv_timeout(every),
        );
        let state = match next {
            Ok(SupervisorState::Ready) => NotifyState::Ready,
            Ok(SupervisorState::Stopping) => NotifyState::Stopping,
            Err(RecvTimeoutError::Timeout) => match keep_alive(heartbeat) {
                Some(state) => state,
                None => continue,
            },
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if let Err(error) = sd_notify::notify(&[state]) {
            tracing::warn!(%error, "service manager cannot be notified");
        }
    }
}

/// The watchdog keep-alive, unless the public port's runtime has stalled.
fn keep_alive(heartbeat: &Heartbeat) -> Option<NotifyState<'static>> {
    match heartbeat.is_alive() {
        Ok(()) => Some(NotifyState::Watchdog),
        Err(age) => {
            let seconds = age.as_secs();
            tracing::error!(
                seconds,
                "public port runtime stalled; no watchdog notification sent"
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::clock::{Clock, Wall};
    use scoregate_observe::telemetry::metrics::MetricsRegistry;

    #[test]
    fn the_watchdog_gets_no_keep_alive_once_the_runtime_has_stalled_for_twenty_seconds() {
        let (clock, manual) = Clock::manual(Wall::from_seconds(0));
        let heartbeat = Heartbeat::new(
            clock,
            MetricsRegistry::default().gauge("scoregate_heartbeat_age_seconds"),
        );
        assert!(matches!(
            keep_alive(&heartbeat),
            Some(NotifyState::Watchdog)
        ));
        manual.advance(Duration::from_millis(19_999));
        assert!(keep_alive(&heartbeat).is_some());
        manual.advance(Duration::from_millis(1));
        assert!(keep_alive(&heartbeat).is_none());
    }
}
