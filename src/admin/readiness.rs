//! Readiness of the public port: everything is loaded, no shutdown has begun, the runtime is not stalled, and the
//! gateway can serve requests for data. The last condition does not apply if no gateway can serve them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::quota::ServingFacts;

use super::heartbeat::Heartbeat;

/// Whether the public port serves requests. `/readyz` and the status page use it.
#[derive(Debug)]
pub struct Readiness {
    /// Set when everything is loaded, and cleared when shutdown begins.
    is_serving: AtomicBool,
    /// Heartbeat of the public port's runtime.
    heartbeat: Arc<Heartbeat>,
}

/// The reason why a gateway is not ready.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadiness {
    /// Not everything is loaded, or a shutdown has begun.
    #[error("starting or stopping")]
    StartingOrStopping,
    /// The last heartbeat is this old.
    #[error("the runtime of the public port has not run a task for {} s", .0.as_secs())]
    Stalled(Duration),
    /// The database was unreachable at startup.
    #[error("serving from the local copy of the keys; no units leased, database still unreachable")]
    OnLocalCopy,
    /// The database is unreachable, and other gateways hold the grace shares.
    #[error("database unreachable; other gateways hold the grace shares")]
    WithoutGrace,
    /// The database answers, but refuses the connections of this gateway.
    #[error("no units have been leased since startup, and the database refuses this gateway: {0}")]
    Refused(String),
}

impl Readiness {
    /// Creates the readiness state of a server that is not ready yet.
    pub fn new(heartbeat: Arc<Heartbeat>) -> Self {
        Self {
            is_serving: AtomicBool::new(false),
            heartbeat,
        }
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
    pub fn check(&self, facts: &ServingFacts) -> Result<(), Unreadiness> {
        let stalled = self.heartbeat.is_ready().err();
        readiness(self.is_serving.load(Ordering::Acquire), stalled, facts)
    }

    /// Like `check`, for a task on the public port's runtime. The running task shows that the runtime is not stalled.
    pub fn check_from_within(&self, facts: &ServingFacts) -> Result<(), Unreadiness> {
        self.heartbeat.beat();
        self.check(facts)
    }

    /// Fails with the reason if a restart is needed.
    pub(super) fn check_alive(&self) -> Result<(), Unreadiness> {
        self.heartbeat.is_alive().map_err(Unreadiness::Stalled)
    }
}

/// Decides whether a gateway is ready. If the database is unreachable for all gateways, the load balancer must not
/// remove all of them. So a gateway that has leased units stays ready without the database, unless other live gateways
/// hold grace shares and this one does not.
fn readiness(
    is_serving: bool,
    stalled: Option<Duration>,
    facts: &ServingFacts,
) -> Result<(), Unreadiness> {
    if !is_serving {
        return Err(Unreadiness::StartingOrStopping);
    }
    if let Some(age) = stalled {
        return Err(Unreadiness::Stalled(age));
    }
    if facts.is_alone || facts.holds_grace_share {
        return Ok(());
    }
    if facts.others_hold_grace {
        return Err(Unreadiness::WithoutGrace);
    }
    if facts.has_leased {
        return Ok(());
    }
    match &facts.refusal {
        Some(reason) => Err(Unreadiness::Refused(reason.clone())),
        None if facts.is_copied => Err(Unreadiness::OnLocalCopy),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use metrics::Gauge;

    use super::*;
    use scoregate_base::clock::{Clock, Wall};

    const DOCUMENTATION: &str = include_str!("../../docs/fleet.md");

    const NEW: ServingFacts = ServingFacts {
        is_alone: false,
        is_copied: false,
        refusal: None,
        has_leased: false,
        holds_grace_share: false,
        others_hold_grace: false,
    };

    #[test]
    fn a_server_is_ready_while_it_serves_and_its_runtime_runs() {
        let (clock, manual) = Clock::manual(Wall::from_seconds(0));
        let readiness = Readiness::new(Arc::new(Heartbeat::new(clock, Gauge::noop())));
        assert_eq!(readiness.check(&NEW), Err(Unreadiness::StartingOrStopping));
        readiness.set(true);
        assert_eq!(readiness.check(&NEW), Ok(()));
        manual.advance(Duration::from_secs(5));
        assert_eq!(
            readiness.check(&NEW),
            Err(Unreadiness::Stalled(Duration::from_secs(5)))
        );
        assert_eq!(readiness.check_from_within(&NEW), Ok(()));
        assert_eq!(readiness.check(&NEW), Ok(()));
        readiness.set(false);
        assert_eq!(readiness.check(&NEW), Err(Unreadiness::StartingOrStopping));
    }

    /// The cell of the table in the documentation. The gateway is ready in all of these cases or in none.
    fn cell(is_serving: bool, stalled: Option<Duration>, cases: &[ServingFacts]) -> &'static str {
        let is_ready = |facts: &ServingFacts| readiness(is_serving, stalled, facts).is_ok();
        let first = is_ready(&cases[0]);
        assert!(
            cases.iter().all(|facts| is_ready(facts) == first),
            "{cases:?}"
        );
        if first { "200" } else { "503" }
    }

    #[test]
    fn the_table_of_readiness_in_the_documentation_is_that_of_the_program() {
        let refusal = Some("no connection is left".to_owned());
        let stalled = Some(Duration::from_secs(5));
        let copied = ServingFacts {
            is_copied: true,
            ..NEW
        };
        let refused = [false, true].map(|is_copied| ServingFacts {
            is_copied,
            refusal: refusal.clone(),
            ..NEW
        });
        let without_grace = ServingFacts {
            others_hold_grace: true,
            ..NEW
        };
        let any = [&[NEW, copied.clone()], &refused[..]].concat();
        for (state, is_serving, stalled, cases) in [
            ("starts or stops", false, None, &any[..]),
            ("its runtime has stalled for 5 s", true, stalled, &any),
            ("read the keys from the database", true, None, &[NEW]),
            (
                "has used the local copy of the keys since startup",
                true,
                None,
                &[copied],
            ),
            (
                "is refused by a database that answers",
                true,
                None,
                &refused,
            ),
            (
                "cannot reach the database, while other gateways hold grace shares",
                true,
                None,
                &[without_grace],
            ),
        ] {
            let alike = |change: fn(&mut ServingFacts)| {
                let changed = cases.iter().cloned().map(move |mut facts| {
                    change(&mut facts);
                    facts
                });
                cell(is_serving, stalled, &changed.collect::<Vec<_>>())
            };
            let row = format!(
                "| {state} | {} | {} | {} | {} |",
                cell(is_serving, stalled, cases),
                alike(|facts| facts.has_leased = true),
                alike(|facts| facts.holds_grace_share = true),
                alike(|facts| facts.is_alone = true)
            );
            assert!(
                DOCUMENTATION.lines().any(|line| line == row),
                "docs/fleet.md lacks the row\n{row}"
            );
        }
    }
}
