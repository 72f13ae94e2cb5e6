//! Assembles the objects that change applications, keys, owners and messages, and that keep a server's keys current.

use std::sync::Arc;

use crate::{
    accounts::TermsByTier,
    admin::{Administration, FleetReports},
    config::{Config, ConfigProblems, read_public_keys},
    instruments::StoreInstruments,
    leaks::{LeakConfig, LeakReceiver},
    registry::{
        DirectoryKeeper, KeyChanges, LeakSettings, LeakedKeys, LocalCopyWriter, NoticeSweep,
        OwnerAdministration, OwnerMail, Registrar, StoreMonitor,
    },
    status::StatusMessages,
};
use scoregate_base::{clock::Clock, keys::KeyForm};
use scoregate_store::Store;

use super::{
    notices::{notice_settings, notice_texts},
    start_context::StartContext,
    store_engine::ServerStore,
};

/// The objects that manage the keys of a server.
#[derive(Clone)]
pub struct ServerKeys {
    /// Keeps the key directory in sync with the store.
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
        context: &StartContext,
        opened: &ServerStore,
    ) -> Result<Self, ConfigProblems> {
        let StartContext { config, clock, .. } = context;
        let instruments = &context.instruments.store;
        let store = &opened.store;
        let directory = &opened.key_directory;
        // A file store is already on this machine, so only a shared store is copied.
        let copy = opened.fleet.as_ref().map(|_| {
            Arc::new(LocalCopyWriter::new(
                Arc::clone(&opened.local),
                store.clone(),
                Arc::clone(&directory.freshness),
                clock.clone(),
                Arc::clone(instruments),
            ))
        });
        let changes = KeyChanges::new(
            store.clone(),
            Some(Arc::clone(directory)),
            copy.clone(),
            TermsByTier::new(&config.tiers, config.guard_per_minute),
            clock.clone(),
            Arc::clone(instruments),
        );
        let changes = Arc::new(changes.telling(notice_texts(config)));
        let administration = administration(config, store, &changes, clock, instruments);
        let monitor = StoreMonitor::new(store.clone(), clock.clone(), Arc::clone(instruments));
        Ok(Self {
            copy,
            monitor: Arc::new(monitor),
            leaks: leaks(context, &administration.registrar)?,
            notices: NoticeSweep::new(&changes).map(Arc::new),
            administration: Arc::new(administration),
            keeper: Arc::new(DirectoryKeeper::new(changes, Arc::clone(directory))),
        })
    }
}

/// The receiver of leak reports, if it is enabled.
fn leaks(
    context: &StartContext,
    registrar: &Registrar,
) -> Result<Option<Arc<LeakReceiver>>, ConfigProblems> {
    let config = &context.config;
    let Some(LeakConfig { signers, action }) = &config.leaks else {
        return Ok(None);
    };
    let settings = LeakSettings {
        action: *action,
        service: config.service.clone(),
        mail: notice_settings(config),
    };
    let leaked = LeakedKeys::new(registrar, settings);
    let receiver = LeakReceiver::new(leaked, context.calls.clone());
    read_public_keys(signers, &receiver.signers)?;
    Ok(Some(Arc::new(receiver)))
}

/// The objects that commands use.
pub fn administration(
    config: &Config,
    store: &Store,
    changes: &Arc<KeyChanges>,
    clock: &Clock,
    instruments: &Arc<StoreInstruments>,
) -> Administration {
    let form = KeyForm::new(&config.key_prefix, config.accept_imported);
    let registrar = Arc::new(Registrar::new(Arc::clone(changes), form));
    let owners = Arc::new(OwnerAdministration::new(Arc::clone(changes)));
    Administration {
        mail: OwnerMail::new(
            Arc::clone(&registrar),
            Arc::clone(&owners),
            Arc::clone(changes),
            notice_settings(config),
        ),
        reports: FleetReports::new(
            store.clone(),
            Arc::clone(&registrar),
            config.suspects,
            clock.clone(),
        ),
        messages: StatusMessages::new(store.clone(), clock.clone(), Arc::clone(instruments)),
        registrar,
        owners,
    }
}
