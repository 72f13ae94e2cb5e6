//! A gateway with the embedded store, reduced to the parts that changes need.

use std::sync::Arc;

use tempfile::TempDir;

use crate::{
    accounts::{KeyDirectory, KeyFreshness, TermsByTier},
    instruments::StoreInstruments,
};
use scoregate_base::{
    clock::{Clock, ManualClock, Wall},
    keys::KeyForm,
    plans::standard_tiers,
};
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_store::{LocalFile, Store};

use crate::registry::{
    directory_keeper::DirectoryKeeper, key_changes::KeyChanges, local_copy_writer::LocalCopyWriter,
    new_application::NewApplication, owner_administration::OwnerAdministration,
    registrar::Registrar,
};

pub const NOON: Wall = Wall::from_seconds(1_763_726_400); // 2025-11-21T12:00:00Z

/// A gateway on the store in a directory.
pub struct ChangingGateway {
    pub store: Store,
    pub keys: Arc<KeyDirectory>,
    pub registrar: Registrar,
    pub owners: OwnerAdministration,
    pub keeper: DirectoryKeeper,
    pub copy: Option<Arc<LocalCopyWriter>>,
    pub manual: ManualClock,
}

/// Key changes in a store, on a running server or a stopped system.
pub fn changes(
    store: &Store,
    keys: Option<&Arc<KeyDirectory>>,
    copy: Option<&Arc<LocalCopyWriter>>,
    clock: &Clock,
) -> Arc<KeyChanges> {
    let store = store.clone();
    let terms = TermsByTier::new(&standard_tiers(), 60);
    Arc::new(KeyChanges::new(
        store,
        keys.cloned(),
        copy.cloned(),
        terms,
        clock.clone(),
        instruments(),
    ))
}

pub fn registrar(changes: &Arc<KeyChanges>) -> Registrar {
    Registrar::new(Arc::clone(changes), KeyForm::new("sg_live", false))
}

fn instruments() -> Arc<StoreInstruments> {
    Arc::new(StoreInstruments::new(&MetricsRegistry::default()))
}

impl ChangingGateway {
    /// A gateway that has loaded its keys.
    pub async fn loaded(directory: &TempDir) -> Self {
        let gateway = Self::of(directory, KeyDirectory::default(), None);
        gateway.keeper.load().await.unwrap();
        gateway
    }

    /// A gateway with a local copy in another directory. No keys are loaded.
    pub fn with_copy(directory: &TempDir, data: &TempDir) -> Self {
        Self::of(
            directory,
            KeyDirectory::shared(KeyFreshness::shared(None)),
            Some(data),
        )
    }

    fn of(directory: &TempDir, keys: KeyDirectory, data: Option<&TempDir>) -> Self {
        let store = Store::open(directory.path()).unwrap();
        let keys = Arc::new(keys);
        let (clock, manual) = Clock::manual(NOON);
        let copy = data.map(|data| {
            let local = Arc::new(LocalFile::open(data.path()).unwrap());
            let freshness = Arc::clone(&keys.freshness);
            let store = store.clone();
            Arc::new(LocalCopyWriter::new(
                local,
                store,
                freshness,
                clock.clone(),
                instruments(),
            ))
        });
        let changes = changes(&store, Some(&keys), copy.as_ref(), &clock);
        let keeper = DirectoryKeeper::new(Arc::clone(&changes), Arc::clone(&keys));
        let registrar = registrar(&changes);
        let owners = OwnerAdministration::new(changes);
        Self {
            store,
            keys,
            registrar,
            owners,
            keeper,
            copy,
            manual,
        }
    }
}

/// A new application.
pub fn station() -> NewApplication {
    NewApplication {
        name: "Weather station".into(),
        tier: "pro".into(),
        ..NewApplication::default()
    }
}
