//! Assembles the objects that change applications, keys, owners and messages, and keep the keys of a server current.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use crate::accounts::TermsByTier;
use crate::admin::{Administration, FleetReports};
use crate::config::{Config, ConfigProblems, read_public_keys};
use crate::instruments::StoreInstruments;
use crate::leaks::{LeakConfig, LeakReceiver};
use crate::registry::{
    DirectoryKeeper, KeyChanges, LeakSettings, LeakedKeys, LocalCopyWriter, NoticeSweep,
    OwnerAdministration, OwnerMail, Registrar, StoreMonitor,
};
use crate::status::StatusMessages;
use scoregate_base::clock::Clock;
use scoregate_base::keys::KeyForm;
use scoregate_store::Store;

use super::notices::{notice_settings, notice_texts};
use super::store_engine::ServerStore;

/// The keys of a server.
pub struct ServerKeys {
    /// Keeps the key directory equal to the store.
    pub keeper: Arc<DirectoryKeeper>,
    /// The writer of the local copy of a shared store.
    pub(super) copy: Option<Arc<LocalCopyWriter>>,
    pub(super) monitor: Arc<StoreMonitor>,
    pub(super) leaks: Option<Arc<LeakReceiver>>,
    pub(super) notices: Option<Arc<NoticeSweep>>,
    /// The objects that commands use.
    pub administration: Arc<Administration>,
}

impl ServerKeys {
    /// The keys of a server that has opened its store. Its key directory is empty.
    pub(super) fn new(
        config: &Config,
        opened: &ServerStore,
        clock: &Clock,
        instruments: &Arc<StoreInstruments>,
        tasks: &TaskTracker,
    ) -> Result<Self, ConfigProblems> {
        let store = || Arc::clone(&opened.store);
        let directory = || Arc::clone(&opened.key_directory);
        let clock = || clock.clone();
        let metrics = || Arc::clone(instruments);
        // A store in a file is on this machine already, so only a shared store is copied.
        let copy = opened.fleet.as_ref().map(|_| {
            let freshness = Arc::clone(&opened.key_directory.freshness);
            Arc::new(LocalCopyWriter::new(
                Arc::clone(&opened.local),
                store(),
                freshness,
                clock(),
                metrics(),
            ))
        });
        let terms = TermsByTier::new(&config.tiers, config.guard_per_minute);
        let changes = KeyChanges::new(
            store(),
            Some(directory()),
            copy.clone(),
            terms,
            clock(),
            metrics(),
        );
        let changes = Arc::new(changes.telling(notice_texts(config)));
        let notices = NoticeSweep::new(&changes).map(Arc::new);
        let administration = Arc::new(administration(
            config,
            &opened.store,
            &changes,
            &clock(),
            instruments,
        ));
        let keeper = DirectoryKeeper::new(changes, directory());
        let monitor = Arc::new(StoreMonitor::new(store(), clock(), metrics()));
        let leaks = leaks(config, &administration.registrar, tasks)?;
        Ok(Self {
            keeper: Arc::new(keeper),
            copy,
            monitor,
            leaks,
            notices,
            administration,
        })
    }
}

/// The receiver of leaked keys, if it is on.
fn leaks(
    config: &Config,
    registrar: &Registrar,
    tasks: &TaskTracker,
) -> Result<Option<Arc<LeakReceiver>>, ConfigProblems> {
    let Some(LeakConfig { signers, action }) = &config.leaks else {
        return Ok(None);
    };
    let domain = notice_settings(config).domain;
    let settings = LeakSettings {
        action: *action,
        service: config.service.clone(),
        domain,
    };
    let receiver = LeakReceiver::new(LeakedKeys::new(registrar, settings), tasks.clone());
    read_public_keys(signers, &receiver.signers)?;
    Ok(Some(Arc::new(receiver)))
}

/// The objects that commands use.
pub fn administration(
    config: &Config,
    store: &Arc<dyn Store>,
    changes: &Arc<KeyChanges>,
    clock: &Clock,
    instruments: &Arc<StoreInstruments>,
) -> Administration {
    let form = KeyForm::new(&config.key_prefix, config.accept_imported);
    let store = || Arc::clone(store);
    let changes = || Arc::clone(changes);
    let registrar = Arc::new(Registrar::new(changes(), form));
    let owners = Arc::new(OwnerAdministration::new(changes()));
    let reader = || Arc::clone(&registrar);
    let recipients = Arc::clone(&owners);
    Administration {
        mail: OwnerMail::new(reader(), recipients, changes(), notice_settings(config)),
        reports: FleetReports::new(store(), reader(), config.suspects, clock.clone()),
        messages: StatusMessages::new(store(), clock.clone(), Arc::clone(instruments)),
        registrar,
        owners,
    }
}
